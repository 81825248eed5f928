"""The usage of a model's context window. Pure."""

from collections.abc import Iterator

from keryx.core.conversations.rules.part import check_count
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextUsage:
    """The tokens of a request to the model, by kind, and the context window.

    The total is the provider's count if there is one. The parts are estimates, and the history is the rest.
    """

    window: int
    system: int
    tools: int
    history: int
    attachments: int

    def __post_init__(self) -> None:
        check_count("context usage", **dict(self.parts()), window=self.window)

    def parts(self) -> Iterator[tuple[str, int]]:
        """Yield the parts of the context by name, in the order of the request."""
        yield "system", self.system
        yield "tools", self.tools
        yield "history", self.history
        yield "attachments", self.attachments

    @property
    def total(self) -> int:
        """The sum of the parts."""
        return sum(tokens for _, tokens in self.parts())

    def lines(self) -> list[str]:
        """Return lines that describe the usage to people."""
        percent = 100 * self.total // max(1, self.window)
        made_of = ", ".join(f"{name} {tokens:,}" for name, tokens in self.parts())
        return [
            f"Context at the last question: {self.total:,} of {self.window:,} tokens ({percent} %).",
            f"Of these, about: {made_of}.",
        ]
