"""How full a model's context is, and with what. Pure."""

from collections.abc import Iterator

from keryx.domain.part import check_count
from keryx.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """Tokens of a question, by what they are, and how many the model can read.

    The whole is the provider's count where it gave one; the parts are estimates, and the history is the rest.
    """

    window: int
    system: int
    tools: int
    history: int
    attachments: int

    def __post_init__(self) -> None:
        check_count("gauge", **dict(self.parts()), window=self.window)

    def parts(self) -> Iterator[tuple[str, int]]:
        """Yield what the context is made of, by name, in the order of the question."""
        yield "system", self.system
        yield "tools", self.tools
        yield "history", self.history
        yield "attachments", self.attachments

    @property
    def total(self) -> int:
        """All of it."""
        return sum(tokens for _, tokens in self.parts())

    def lines(self) -> list[str]:
        """Return it as people are told."""
        percent = 100 * self.total // max(1, self.window)
        made_of = ", ".join(f"{name} {tokens:,}" for name, tokens in self.parts())
        return [
            f"Context at the last question: {self.total:,} of {self.window:,} tokens ({percent} %).",
            f"Of these, about: {made_of}.",
        ]
