"""Scripted servers that refuse like vLLM, Ollama, LM Studio and llama.cpp; the words are those of their errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keryx.core.values.json_value import JsonValue
from keryx.testing.model_server import Asked, Refusal, Reply

SYSTEM_FIRST = "System message must be at the beginning."
ALTERNATE = (
    "After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."
)
NO_SYSTEM = "System role not supported"
TWO_ROLES = "Only user and assistant roles are supported!"

Template = Callable[[Asked], str | None]
"""Returns why the chat template of a model refuses a request, or None."""


def qwen(asked: Asked) -> str | None:
    """Refuse a system message that is not first."""
    return SYSTEM_FIRST if "system" in roles(asked)[1:] else None


def mistral(asked: Asked) -> str | None:
    """Let users and model take turns; calls and their results do not count."""
    spoken = [
        str(each["role"])
        for each in asked.messages
        if each["role"] == "user" or (each["role"] == "assistant" and not each.get("tool_calls"))
    ]
    takes_turns = spoken == ["user", "assistant"] * (len(spoken) // 2) + ["user"] * (len(spoken) % 2)
    return (qwen(asked) and ALTERNATE) or (None if takes_turns else ALTERNATE)


def gemma(asked: Asked) -> str | None:
    """Know no system message."""
    return NO_SYSTEM if "system" in roles(asked) else mistral(asked)


def old_mistral(asked: Asked) -> str | None:
    """Know nobody but the user and the model."""
    return TWO_ROLES if {*roles(asked)} - {"user", "assistant"} else mistral(asked)


def roles(asked: Asked) -> list[str]:
    return [str(each["role"]) for each in asked.messages]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strict:
    """A server by the form of its errors. It plays the replies in order, as far as the template lets it."""

    wrap: Callable[[str], Refusal]
    template: Template
    replies: Sequence[Reply]
    takes_tools: bool = True
    no_tools: str = "registry.ollama.ai/library/gemma:2b does not support tools"

    def script(self, refused: list[str]) -> Callable[[Asked], Reply | Refusal]:
        left = iter(self.replies)

        def answer(asked: Asked) -> Reply | Refusal:
            problem = (
                self.no_tools if asked.body.get("tools") and not self.takes_tools else self.template(asked)
            )
            if problem is None:
                return next(left)
            refused.append(problem)
            return self.wrap(problem)

        return answer


def vllm(problem: str) -> Refusal:
    error: JsonValue = {"message": problem, "type": "BadRequestError", "param": None, "code": 400}
    return Refusal(status=400, body={"error": error})


def old_vllm(problem: str) -> Refusal:
    return Refusal(
        status=400,
        body={"object": "error", "message": problem, "type": "BadRequestError", "param": None, "code": 400},
    )


def ollama(problem: str) -> Refusal:
    error: JsonValue = {"message": problem, "type": "api_error", "param": None, "code": None}
    return Refusal(status=400, body={"error": error})


def lm_studio(problem: str) -> Refusal:
    told = (
        f'Error rendering prompt with jinja template: "{problem}".\n\n'
        "This is usually an issue with the model's prompt template."
    )
    return Refusal(status=400, body={"error": told})


def lm_studio_in_stream(problem: str) -> Refusal:
    told = f'Error rendering prompt with jinja template: "{problem}".'
    return Refusal(status=200, body={"error": {"message": told}}, in_stream=True)


def llama_cpp(problem: str) -> Refusal:
    told = (
        "\n------------\nWhile executing CallExpression at line 85, column 32 in source:\n"
        f"...first %}}↵            {{{{- raise_exception('{problem[:30]}...\n"
        f"                                           ^\nError: Jinja Exception: {problem}"
    )
    error: JsonValue = {"code": 500, "message": told, "type": "server_error"}
    return Refusal(status=500, body={"error": error})
