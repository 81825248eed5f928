"""The settings of the context: how the prompt names users."""

from typing import Any, Final

from keryx.config.readers import flag, optional, text
from keryx.config.setting import Setting

HASH_USER_IDS = Setting(
    name="prompt.hash_user_ids",
    read=flag,
    default=False,
    place="own",
    help="Whether the agent sees a hash of each user's id instead of the id.",
)
ID_SALT: Setting[str | None] = Setting(
    name="prompt.id_salt",
    read=optional(text),
    default=None,
    place="secret",
    help="The salt of these hashes; by default a file of the profile. Gateways on several machines share one salt.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (HASH_USER_IDS, ID_SALT)
