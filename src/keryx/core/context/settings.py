"""The settings of the context: what the agent is told about who speaks."""

from typing import Any, Final

from keryx.config.readers import flag, optional, text
from keryx.config.setting import Setting

HASH_USER_IDS = Setting(
    name="prompt.hash_user_ids",
    read=flag,
    default=False,
    place="own",
    help="Whether the agent is told a stand-in for the ids of users instead of the ids themselves.",
)
ID_SALT: Setting[str | None] = Setting(
    name="prompt.id_salt",
    read=optional(text),
    default=None,
    place="secret",
    help="What the stand-ins are made with; else a file of the profile. Gateways on several machines share one.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (HASH_USER_IDS, ID_SALT)
