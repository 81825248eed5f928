"""The webhook platform as a plug-in."""

from typing import Final

from keryx.config import Configuration
from keryx.errors import InvalidValue
from keryx.platforms.adapter import Adapter
from keryx.platforms.plugin import PlatformPlugin
from keryx.platforms.webhook.settings import CALLBACK, ENABLED, HOST, PORT, ROWS, SECRET


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


PLUGIN: Final = PlatformPlugin(settings=ROWS, make=_make)
