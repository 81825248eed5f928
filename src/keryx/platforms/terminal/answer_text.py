"""Show a growing answer block by block: each complete block at once and for good, and no text twice.

Pure, except for the function that shows a block. The shown text is always the beginning of the turn's text since its
last step, so the stored answer can be compared with it, and only the rest is shown. The incomplete end can be drawn in
the meantime.
"""

import re
from collections.abc import Callable
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")


def complete_end(text: str, start: int = 0) -> int:
    """Return the end of the last complete Markdown block after ``start``, or ``start`` if there is none.

    A block is complete when a line that begins another block follows it, or when it is a closed code block.
    """
    end = at = start
    fence: str | None = None
    after_blank = False
    while at < len(text):
        newline = text.find("\n", at)
        if newline < 0:
            # The line may continue; but if it does not begin with white space, it ends the block before it.
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
    """Return the last lines of an incomplete block. If a code block's first line is cut off, repeat its fence.

    The fence does not name the language: colouring growing code takes longer than writing it.
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
    """Return the fence that is open after a line, given the fence that is open before it; None outside code."""
    mark = _FENCE.match(line)
    if fence is None:
        return mark[1] if mark else None
    return None if mark and mark[1].startswith(fence) and not mark[2].strip() else fence


class GrowingAnswer:
    """The text of the running turn, shown block by block."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._turn_id: int | None = None
        self._text = ""
        self._shown = 0
        self._is_live = False
        self._after: int | None = None
        """The message that the text follows; None for text from the store, which does not tell the message."""
        self._restarted: int | None = None
        """The turn that began a new text, after all of its earlier text was shown."""
        self._step = (0, 0)
        """The last step that was shown: its turn, and its message."""
        self._interrupted: dict[int, str] = {}
        """The text so far of turns that another turn interrupted. Their answers continue from it."""

    @property
    def turn_id(self) -> int | None:
        """The turn that the text belongs to; None if there is no text."""
        return self._turn_id

    @property
    def turn_ids(self) -> tuple[int, ...]:
        """The turns whose end is not shown yet: the interrupted turns, and the current turn."""
        return (*self._interrupted, *(() if self._turn_id is None else (self._turn_id,)))

    @property
    def unfinished(self) -> str:
        """The text that is not shown for good yet, because its block may continue."""
        return self._text[self._shown :].strip("\n")

    def add(self, turn_id: int, *, after: int, offset: int, text: str) -> None:
        """Add a live piece of the text that follows a message. After a gap, the rest waits for the stored answer."""
        if turn_id == self._step[0] and after < self._step[1]:
            return  # the stored step contained this piece
        is_known = not self._is_live and self._text.startswith(text)
        is_new_text = self._after not in (None, after) or (offset == 0 and self._text and not is_known)
        if turn_id != self._turn_id or is_new_text:
            self._begin(turn_id)
        self._is_live, self._after = True, after
        if offset <= len(self._text):
            self._grow(text[len(self._text) - offset :])

    def add_stored(self, turn_id: int, text: str) -> None:
        """Take the stored text since the last step. Live pieces arrive before they are stored."""
        if turn_id == self._turn_id and (self._is_live or self._text.startswith(text)):
            return
        if turn_id != self._turn_id or not text.startswith(self._text):
            self._begin(turn_id)
        self._grow(text[len(self._text) :])

    def end_step(self, turn_id: int, text: str, *, seq: int) -> None:
        """Take the stored text of a turn before a call; text that was shown live is not shown again."""
        self._step = (turn_id, seq)
        if turn_id != self._turn_id:
            self.end(turn_id, text)
        elif self._after is not None and self._after >= seq:
            # The live text already follows the call.
            self._show_text("" if self._restarted == turn_id else text)
        else:
            self.end(turn_id, text if text.startswith(self._text.rstrip()) else None)

    def end(self, turn_id: int, text: str | None) -> None:
        """Take the final text of a turn (None for its text so far), and show the part that is not shown yet."""
        if turn_id != self._turn_id:
            shown = self._interrupted.pop(turn_id, "")
            self._show_text((text or "").removeprefix(shown))
            return
        if text is not None and text.startswith(self._text.rstrip()):
            self._text = text
        elif text is not None:
            self._show_rest()
            self._show_text(text)
        self.flush()

    def flush(self) -> None:
        """Show the rest of the text, and begin with an empty text."""
        self._show_rest()
        self._turn_id, self._text, self._shown, self._is_live, self._after = None, "", 0, False, None

    def _begin(self, turn_id: int) -> None:
        if self._turn_id is not None and self._turn_id != turn_id:
            self._interrupted[self._turn_id] = self._text
        self._restarted = turn_id if turn_id == self._turn_id else None
        self.flush()
        self._turn_id = turn_id

    def _grow(self, text: str) -> None:
        self._text += text
        end = complete_end(self._text, self._shown)
        if end > self._shown:
            self._show_text(self._text[self._shown : end])
            self._shown = end

    def _show_rest(self) -> None:
        self._show_text(self._text[self._shown :])
        self._shown = len(self._text)

    def _show_text(self, text: str) -> None:
        if text.strip():
            self._show(text.strip("\n"))
