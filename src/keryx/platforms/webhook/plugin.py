"""The webhook platform as a plug-in, and its settings."""

from typing import Final

from keryx.config import Configuration
from keryx.config.readers import flag, optional, text, web_address, whole
from keryx.config.setting import Setting
from keryx.errors import InvalidValue
from keryx.platforms.adapter import Adapter
from keryx.platforms.plugin import PlatformPlugin

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
    help="The address on which the webhook listens.",
)
PORT = Setting(
    name="platforms.webhook.port",
    read=whole(0, 65_535),
    default=8460,
    place="own",
    help="The port on which the webhook listens; 0 takes a free one.",
)
CALLBACK: Setting[str | None] = Setting(
    name="platforms.webhook.callback",
    read=optional(web_address),
    default=None,
    place="own",
    help="The address to which answers are posted.",
)
SECRET: Setting[str | None] = Setting(
    name="platforms.webhook.secret",
    read=optional(text),
    default=None,
    place="secret",
    help="The secret that signs webhooks in both directions.",
)


def _make(configuration: Configuration) -> Adapter | None:
    from keryx.platforms.webhook.adapter import WebhookAdapter, WebhookSettings
    from keryx.platforms.webhook.wire import Secret

    values = configuration.values
    if not values.of(ENABLED):
        return None
    secret = values.of(SECRET)
    if secret is None:
        raise InvalidValue(
            f"{ENABLED.name}: the platform needs a secret; write {SECRET.variable}=whsec_… into "
            f"{configuration.secrets_file} (mode 0600)"
        )
    try:
        secrets = tuple(map(Secret.parse, secret.split()))
    except InvalidValue as error:
        raise InvalidValue(f"{values.origin_of(SECRET)}: {error}") from error
    return WebhookAdapter(
        WebhookSettings(
            secrets=secrets, host=values.of(HOST), port=values.of(PORT), callback=values.of(CALLBACK)
        )
    )


PLUGIN: Final = PlatformPlugin(settings=(ENABLED, HOST, PORT, CALLBACK, SECRET), make=_make)
