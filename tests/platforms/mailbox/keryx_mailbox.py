"""A platform of another package: each message is a file in a folder, and answers are written beside it.

It imports only Keryx's contracts for plug-ins. The test builds a wheel from it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from keryx.config import Configuration
from keryx.config.readers import optional, text, whole
from keryx.config.setting import Setting
from keryx.core.conversations.rules.part import Part, TextPart
from keryx.core.conversations.rules.source import Source
from keryx.core.deliveries.rules.delivery import Outcome, Sent
from keryx.core.deliveries.rules.pieces import Piece, TextPiece
from keryx.core.deliveries.rules.text import text_pieces
from keryx.core.people.rules.access import Refused
from keryx.core.turns.rules.inbox import Inbound
from keryx.errors import InvalidValue
from keryx.platforms.adapter import Adapter, Capabilities, Outgoing, Update
from keryx.platforms.plugin import PlatformPlugin

LOOK_SECONDS: Final = 0.05

_log = logging.getLogger("keryx_mailbox")

FOLDER: Setting[str | None] = Setting(
    name="platforms.mailbox.folder",
    read=optional(text),
    default=None,
    is_path=True,
    help="The folder with the messages.",
)
TEXT_MAX = Setting(
    name="platforms.mailbox.text_max",
    read=whole(10, 10_000),
    default=1_000,
    help="How many characters one answer may have.",
)
TOKEN: Setting[str | None] = Setting(
    name="platforms.mailbox.token",
    read=optional(text),
    default=None,
    place="secret",
    help="Opens the mailbox.",
)


class MailboxAdapter(Adapter):
    """One mailbox."""

    platform = "mailbox"
    account: str | None = None

    def __init__(self, folder: Path, *, text_max: int) -> None:
        self.capabilities = Capabilities(text_max=text_max, deduplicates=True)
        self._folder = folder

    async def connect(self) -> None:
        """Create the folder if it does not exist."""
        self._folder.mkdir(exist_ok=True)

    async def receive(self) -> AsyncGenerator[Update, None]:
        """Yield a message for each file ``<user>.<number>.in``, in order."""
        told: set[str] = set()
        while True:
            for path in sorted(self._folder.glob("*.in")):
                if path.name not in told:
                    told.add(path.name)
                    yield self._message(path)
            await asyncio.sleep(LOOK_SECONDS)

    def _message(self, path: Path) -> Inbound:
        user = path.name.partition(".")[0]
        source = Source(platform=self.platform, chat_id=user, chat_type="dm", user_id=user, user_name=user)
        return Inbound(source=source, ref=path.name, parts=(TextPart(text=path.read_text(encoding="utf-8")),))

    async def acknowledge(self, update: Update, *, refused: Refused | None = None) -> None:
        """Delete the file of the message."""
        _log.info("%s %s", "stored" if refused is None else "refused", update.ref)
        (self._folder / update.ref).unlink(missing_ok=True)

    def pieces(self, parts: tuple[Part, ...]) -> tuple[Piece, ...]:
        """Return the texts."""
        return text_pieces(parts, text_max=self.capabilities.text_max)

    async def send(self, outgoing: Outgoing) -> Outcome:
        """Write an answer to a file."""
        path = self._folder / f"{outgoing.to.chat_id}.{outgoing.key}.out"
        assert isinstance(outgoing.piece, TextPiece)
        path.write_text(outgoing.piece.text, encoding="utf-8")
        _log.info("delivered %s", path.name)
        return Sent(message_id=path.name)


def _make(configuration: Configuration) -> MailboxAdapter | None:
    values = configuration.values
    folder = values.of(FOLDER)
    if folder is None:
        return None
    if values.of(TOKEN) is None:
        raise InvalidValue(
            f"{FOLDER.name}: the mailbox needs a token; write {TOKEN.variable}=… into {configuration.secrets_file}"
        )
    return MailboxAdapter(Path(folder), text_max=values.of(TEXT_MAX))


def _check(configuration: Configuration) -> None:
    if configuration.values.of(FOLDER) == str(configuration.data_dir):
        origin = configuration.values.origin_of(FOLDER)
        raise InvalidValue(f"{origin}: {FOLDER.name}: this is Keryx's own folder; choose another one")


PLUGIN: Final = PlatformPlugin(settings=(FOLDER, TEXT_MAX, TOKEN), check=_check, make=_make)
