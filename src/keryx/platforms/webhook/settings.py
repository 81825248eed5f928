"""The settings of the webhook platform."""

from typing import Any, Final

from keryx.config.readers import flag, optional, text, web_address, whole
from keryx.config.setting import Setting

ENABLED = Setting(
    name="platforms.webhook.enabled",
    read=flag,
    default=False,
    place="own",
    help="Whether programs may send messages by signed webhooks.",
)
HOST = Setting(
    name="platforms.webhook.host",
    read=text,
    default="127.0.0.1",
    place="own",
    help="The address the webhook listens on.",
)
PORT = Setting(
    name="platforms.webhook.port",
    read=whole(0, 65_535),
    default=8460,
    place="own",
    help="The port it listens on; 0 takes a free one.",
)
CALLBACK: Setting[str | None] = Setting(
    name="platforms.webhook.callback",
    read=optional(web_address),
    default=None,
    place="own",
    help="The address answers are posted to.",
)
SECRET: Setting[str | None] = Setting(
    name="platforms.webhook.secret",
    read=optional(text),
    default=None,
    place="secret",
    help="Signs webhooks both ways.",
)
ROWS: Final[tuple[Setting[Any], ...]] = (ENABLED, HOST, PORT, CALLBACK, SECRET)
