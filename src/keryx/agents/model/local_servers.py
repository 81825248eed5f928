"""Model servers that people run on their own machine, and where each listens unless it is told otherwise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    """A kind of server that speaks OpenAI's chat API."""

    title: str
    """Its name as its makers write it."""
    port: int

    @property
    def address(self) -> str:
        """The base URL for clients."""
        return f"http://localhost:{self.port}/v1"


LOCAL_SERVERS: Final[Mapping[str, LocalServer]] = {
    "ollama": LocalServer(title="Ollama", port=11434),
    "lmstudio": LocalServer(title="LM Studio", port=1234),
    "llamacpp": LocalServer(title="llama.cpp", port=8080),
    "vllm": LocalServer(title="vLLM", port=8000),
}
"""By the provider in the names of their models."""
