"""An answer as it grows: what is complete of it is shown for good at once, and nothing of it twice.

Pure but for the one function it shows with. What is shown is always the beginning of what the turn has said since its
last step, so the stored answer can be compared with it and only the rest be shown. What is not complete can be looked
at meanwhile.
"""

import re
from collections.abc import Callable
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def complete_end(text: str, start: int = 0) -> int:
    """Return where the last complete Markdown block after ``start`` ends; ``start`` itself where there is none.

    A block is complete when a line that begins another one follows it, or when it is a code block that is closed.
    """
    end = at = start
    fence: str | None = None
    after_blank = False
    while at < len(text):
        newline = text.find("\n", at)
        if newline < 0:
            # The line may go on; but what does not begin with white space ends the block before it.
            return at if after_blank and fence is None and not text[at].isspace() else end
        line = text[at : newline + 1]
        is_code, fence = fence is not None, _fence_after(fence, line)
        if is_code:
            if fence is None:
                end = at + len(line)
        elif not line.strip():
            after_blank = True
        else:
            if after_blank and not line[0].isspace():
                end = at
            after_blank = False
        at += len(line)
    return end


def last_lines(text: str, count: int) -> str:
    """Return the last lines of a block that is not complete, such that code among them is known as code.

    Which language it is in, is left out of code that grows: to colour it takes longer than to write it.
    """
    lines = text.split("\n")
    fence: str | None = None
    opened = 0
    for number, line in enumerate(lines):
        before, fence = fence, _fence_after(fence, line)
        if before is None and fence is not None:
            opened = number
    start = max(0, len(lines) - count)
    if fence is None:
        return "\n".join(lines[start:])
    return "\n".join([*lines[start:opened], fence, *lines[max(start, opened + 1) :]])


def _fence_after(fence: str | None, line: str) -> str | None:
    """Return the marks that open the code a line is followed by, given those before it; None where it is no code."""
    mark = _FENCE.match(line)
    if fence is None:
        return mark[1] if mark else None
    return None if mark and mark[1].startswith(fence) and not mark[2].strip() else fence


class Speech:
    """What a turn says, shown block by block."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._turn_id: int | None = None
        self._text = ""
        self._shown = 0
        self._is_live = False
        self._after: int | None = None
        """The message it was said after; None where that is not known, because the store told of it."""
        self._begun_anew: int | None = None
        """The turn that began to say something else, all that it had said before being shown."""
        self._step = (0, 0)
        """The last step that was taken: its turn, and its message."""
        self._left: dict[int, str] = {}
        """What turns had said that others broke into: their answers go on from there."""

    @property
    def turn_id(self) -> int | None:
        """Whose words they are; None when nobody speaks."""
        return self._turn_id

    @property
    def turn_ids(self) -> tuple[int, ...]:
        """Whose end is not shown yet: those whom others broke into, and who speaks now."""
        return (*self._left, *(() if self._turn_id is None else (self._turn_id,)))

    @property
    def unfinished(self) -> str:
        """What was said and is not shown, because more of it may come."""
        return self._text[self._shown :].strip("\n")

    def add(self, turn_id: int, *, after: int, offset: int, text: str) -> None:
        """Take a piece of what is said after a message; one after a gap is left for the end."""
        if turn_id == self._step[0] and after < self._step[1]:
            return  # the step that was stored since then had it all
        is_known = not self._is_live and self._text.startswith(text)
        is_anew = self._after not in (None, after) or (offset == 0 and self._text and not is_known)
        if turn_id != self._turn_id or is_anew:
            self._begin(turn_id)
        self._is_live, self._after = True, after
        if offset <= len(self._text):
            self._grow(text[len(self._text) - offset :])

    def so_far(self, turn_id: int, text: str) -> None:
        """Take all that is said since the last step as far as the store knows, which is later than who hears it."""
        if turn_id == self._turn_id and (self._is_live or self._text.startswith(text)):
            return
        if turn_id != self._turn_id or not text.startswith(self._text):
            self._begin(turn_id)
        self._grow(text[len(self._text) :])

    def step(self, turn_id: int, text: str, *, seq: int) -> None:
        """Take what a turn said before a call, as it is stored; what was heard otherwise is not said again."""
        self._step = (turn_id, seq)
        if turn_id != self._turn_id:
            self.end(turn_id, text)
        elif self._after is not None and self._after >= seq:
            # What is heard by now comes after the call.
            self._tell("" if self._begun_anew == turn_id else text)
        else:
            self.end(turn_id, text if text.startswith(self._text.rstrip()) else None)

    def end(self, turn_id: int, text: str | None) -> None:
        """Take what a turn said in the end, and show what is not shown of it; None for what was said so far."""
        if turn_id != self._turn_id:
            left = self._left.pop(turn_id, "")
            self._tell((text or "")[len(left) if (text or "").startswith(left) else 0 :])
            return
        if text is not None and text.startswith(self._text.rstrip()):
            self._text = text
        elif text is not None:
            self._show_rest()
            self._tell(text)
        self.flush()

    def flush(self) -> None:
        """Show the rest of what was said, and forget it."""
        self._show_rest()
        self._turn_id, self._text, self._shown, self._is_live, self._after = None, "", 0, False, None

    def _begin(self, turn_id: int) -> None:
        if self._turn_id is not None and self._turn_id != turn_id:
            self._left[self._turn_id] = self._text
        self._begun_anew = turn_id if turn_id == self._turn_id else None
        self.flush()
        self._turn_id = turn_id

    def _grow(self, text: str) -> None:
        self._text += text
        end = complete_end(self._text, self._shown)
        if end > self._shown:
            self._tell(self._text[self._shown : end])
            self._shown = end

    def _show_rest(self) -> None:
        self._tell(self._text[self._shown :])
        self._shown = len(self._text)

    def _tell(self, text: str) -> None:
        if text.strip():
            self._show(text.strip("\n"))
