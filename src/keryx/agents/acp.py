"""The ACP agent: a program that speaks the Agent Client Protocol answers, and uses its own tools.

Our transcript stays the truth. Which conversation of the program continues it stands in the messages themselves, so it
holds over restarts and branches: where the program cannot go on from exactly there, it is told the conversation as
text. What it did itself is kept as calls with their results, and never run by us. A permission it asks for is an
approval like any other: the turn waits in the store; the program's own waiting is only a shortcut (decision 19).
"""

import asyncio
import hashlib
import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import Final, cast

from keryx.agents.acp_past import (
    Key,
    Permission,
    key_of,
    mark_of,
    news_in,
    permission_in,
    place_of,
    split_at_answer,
    text_of_news,
    whole_text,
)
from keryx.agents.acp_turn import AcpTurn, arguments_of
from keryx.agents.acp_words import PERMISSION, Asking, Link, Over, Picture, Reports, Spoke, Used, Wish
from keryx.agents.agent import AgentFailed, Answer, Brief, Stage
from keryx.agents.briefing import answered_by, is_group, spoken
from keryx.agents.program import ProgramSettings
from keryx.domain.message import MediaPart, Message, NewMessage, ToolCallPart
from keryx.domain.prompt import context_block
from keryx.values import dataclass

SILENT_PURPOSES: Final = ("flush", "title", "compress")
TALKS_MAX: Final = 500

ReadMedia = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]
Connect = Callable[[ProgramSettings, Path], Awaitable[Link]]


@dataclass(slots=True, kw_only=True)
class _Talk:
    """One conversation of the program, which continues one of ours."""

    link: Link
    session: str
    context: str = ""
    """What it was told last of where it is."""
    heard_seq: int = 0
    """The last message it was told."""
    asking: Asking | None = None
    used: dict[str, Used] = field(default_factory=dict)
    parked: tuple[str, Wish] | None = None
    """What it waits to be allowed, and the call by which a person is asked."""
    allowed: Key | None = None
    """What a person allowed when it did not wait any more: it need not ask again."""
    ending: "asyncio.Task[None] | None" = None


async def no_media(_hashes: Sequence[str]) -> Mapping[str, bytes]:
    """Read nothing."""
    return {}


class AcpAgent:
    """Answers with an ACP program, one process for all conversations, started by the first turn."""

    def __init__(
        self,
        settings: ProgramSettings,
        *,
        errors: Path,
        reports: Reports,
        read_media: ReadMedia = no_media,
        talks_max: int = TALKS_MAX,
    ) -> None:
        self._settings = settings
        self._errors = errors
        self._reports = reports
        self._read_media = read_media
        self._talks_max = talks_max
        self._program = hashlib.sha256("\0".join(settings.command).encode()).hexdigest()[:16]
        self._link: Link | None = None
        self._starting = asyncio.Lock()
        self._talks: dict[str, _Talk] = {}

    async def run(self, brief: Brief, stage: Stage) -> Answer:
        """Answer one turn, or raise ``AgentFailed``."""
        if brief.purpose in SILENT_PURPOSES:
            return Answer(message=None, silent=True)
        link = await self._ready()
        await stage.note_model(answered_by(f"acp:{link.name}"))
        talk, text = await self._take_up(brief, link)
        turn = AcpTurn(
            brief=brief,
            stage=stage,
            reports=self._reports,
            mark=mark_of(self._program, talk.session),
            used=talk.used,
        )
        try:
            if text is not None:
                await self._ask(talk, brief, text)
            return Answer(message=await self._listen(talk, turn))
        except asyncio.CancelledError:
            self._let_go(brief.session_id, talk)
            raise
        except Exception:
            # Where it waits to be allowed, the turn waits with it.
            if talk.parked is None:
                self._let_go(brief.session_id, talk)
            raise

    async def warm_up(self) -> None:
        """Start the program; whether that worked, the first turn tells."""
        with suppress(AgentFailed):
            await self._ready()

    async def close(self) -> None:
        """End the program."""
        async with self._starting:
            link, self._link = self._link, None
            if link is not None:
                await link.close()
        endings = [talk.ending for talk in self._talks.values() if talk.ending is not None]
        await asyncio.gather(*endings, return_exceptions=True)
        self._talks.clear()

    async def _ready(self) -> Link:
        """Return the program, started, or started again if it has ended."""
        async with self._starting:
            if self._link is not None and self._link.is_gone:
                gone, self._link = self._link, None
                await gone.close()
            if self._link is None:
                module = await asyncio.to_thread(importlib.import_module, "keryx.agents.acp_link")
                self._link = await cast(Connect, module.connect)(self._settings, self._errors)
            return self._link

    async def _take_up(self, brief: Brief, link: Link) -> tuple[_Talk, str | None]:
        """Return the program's conversation that continues ours, and what to say in it; None where it waits for us."""
        place = place_of(brief.messages, program=self._program)
        talk = await self._known(brief.session_id)
        if talk is not None and (place is None or talk.session != place.session or talk.link is not link):
            self._let_go(brief.session_id, talk)
            talk = None
        if talk is None and place is not None and await link.load(place.session, self._folder(brief)):
            talk = _Talk(link=link, session=place.session, heard_seq=place.seq)
        if talk is None or place is None:
            talk = _Talk(link=link, session=await link.open(self._folder(brief)))
            past, since = split_at_answer(brief.messages)
        else:
            past, since = (), place.since
        self._keep(brief.session_id, talk)
        permission = permission_in(brief.messages, since)
        news = news_in(since, heard_seq=talk.heard_seq)
        if talk.parked is not None and await self._go_on(talk, permission, is_alone=not news):
            return talk, None
        talk.allowed = permission.key if permission is not None and permission.is_given else None
        # A prompt that came to nothing is said again.
        text = text_of_news(news or news_in(since, heard_seq=0), permission, is_group=is_group(brief))
        return talk, whole_text(brief, past, text)

    async def _known(self, session_id: str) -> _Talk | None:
        """Return the conversation that is known for ours, when the program is done with what it was told to leave."""
        talk = self._talks.get(session_id)
        if talk is not None and talk.ending is not None:
            await asyncio.shield(talk.ending)
        return self._talks.get(session_id)

    async def _go_on(self, talk: _Talk, permission: Permission | None, *, is_alone: bool) -> bool:
        """Tell the waiting program what a person decided; say whether it waited for that, and for nothing else."""
        assert talk.parked is not None
        (call_id, wish), talk.parked = talk.parked, None
        is_answered = permission is not None and permission.call_id == call_id
        if permission is not None and is_answered and is_alone and talk.asking and not talk.asking.is_over:
            wish.answer(allowed=permission.is_given)
            return True
        await self._end(talk)
        return False

    async def _ask(self, talk: _Talk, brief: Brief, text: str) -> None:
        """Say something to the program."""
        context = context_block(brief.context)
        if context != talk.context:
            text, talk.context = f"{context}\n{text}", context
        pictures = await self._pictures(talk, brief)
        talk.used.clear()
        talk.asking = talk.link.ask(talk.session, text, pictures)
        talk.heard_seq = max((m.seq for m in brief.messages if isinstance(m, Message)), default=0)

    async def _listen(self, talk: _Talk, turn: AcpTurn) -> NewMessage:
        """Show and keep what the program says and does, until it is over."""
        while True:
            assert talk.asking is not None
            event = await talk.asking.next()
            match event:
                case Spoke():
                    await turn.show(event)
                case Used():
                    await turn.use(event)
                case Wish():
                    await self._wish(event, talk, turn)
                case Over():
                    await turn.keep_unfinished()
                    if event.has_failed or not turn.later:
                        return turn.answer(event)
                    later, turn.later = turn.later, []
                    await turn.part()
                    said = [spoken(each, is_group=is_group(turn.brief)) for each in later]
                    await self._ask(talk, turn.brief, "\n\n".join(said))

    async def _wish(self, wish: Wish, talk: _Talk, turn: AcpTurn) -> None:
        """Ask a person, unless that was decided; mostly the stage ends the turn here, and the program waits."""
        if talk.allowed == key_of(wish.title, wish.kind, wish.given):
            talk.allowed = None
            wish.answer(allowed=True)
            return
        call = ToolCallPart(
            call_id=turn.fresh_id("permission"),
            name=PERMISSION,
            arguments={"kind": wish.kind, **arguments_of(wish.title, wish.given)},
        )
        talk.parked = call.call_id, wish
        done = await turn.step(call)
        talk.parked = None
        wish.answer(allowed=not any(result.is_error for result in done.results))

    def _let_go(self, session_id: str, talk: _Talk) -> None:
        """Tell the program to end what it does in a conversation, without waiting for it."""
        talk.parked = None
        if talk.asking is None or talk.asking.is_over:
            return

        async def end() -> None:
            if not await self._end(talk) and self._talks.get(session_id) is talk:
                del self._talks[session_id]

        talk.ending = asyncio.create_task(end(), name="keryx-acp-cancel")

    async def _end(self, talk: _Talk) -> bool:
        """End what the program does in a conversation, and say whether it did; if not, that is not used again."""
        asking, talk.asking = talk.asking, None
        if asking is None:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.cancel_seconds):
                await asking.cancel()
                return True
        return False

    def _keep(self, session_id: str, talk: _Talk) -> None:
        """Know a conversation, the last ones of many."""
        self._talks.pop(session_id, None)
        self._talks[session_id] = talk
        for old in list(self._talks)[: -self._talks_max]:
            self._let_go(old, self._talks.pop(old))

    def _folder(self, brief: Brief) -> str:
        return brief.context.workspace or str(self._settings.folder)

    async def _pictures(self, talk: _Talk, brief: Brief) -> list[Picture]:
        """Return the images that people showed since it was told something, where it takes any."""
        shown = [
            (part.blob, part.media_type)
            for message in news_in(brief.messages, heard_seq=talk.heard_seq)
            for part in message.parts
            if isinstance(part, MediaPart) and part.blob and part.media_type.startswith("image/")
        ]
        if not shown or not talk.link.takes_pictures:
            return []
        contents = await self._read_media([blob for blob, _ in shown])
        return [Picture(media_type=kind, content=contents[blob]) for blob, kind in shown if blob in contents]
