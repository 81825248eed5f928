"""The look of the terminal, and the text that reaches it."""

import io

from rich.console import Console

from keryx.platforms.terminal.screen import Screen, keep_breaks


def screen(*, at_terminal: bool) -> tuple[Screen, io.StringIO]:
    written = io.StringIO()
    console = Console(file=written, force_terminal=at_terminal, width=60, color_system=None, _environ={})
    return Screen(console), written


def test_at_a_terminal_answers_are_markdown_and_lines_stay_lines() -> None:
    shown, written = screen(at_terminal=True)
    shown.answer("**Bold** and\nanother line\n\n```\na  b\nc\n```")
    lines = [line.strip() for line in written.getvalue().splitlines()]
    assert lines[:2] == ["Bold and", "another line"]
    assert "a  b" in lines
    assert "c" in lines


def test_growing_text_is_drawn_like_finished_text_within_the_rows() -> None:
    shown, _ = screen(at_terminal=True)
    text = "**Bold** " + "and more words " * 20
    for columns in (20, 59, 60, 100):
        drawn = shown.draw(text, (), columns=columns, rows=8)
        assert 2 < len(drawn) <= 8
        assert all(len(line) <= columns for line in drawn)
        assert "words" in "".join(drawn[-3:])
    assert shown.draw("```python\n" + "x = 1\n" * 99 + "y = 2", (), columns=60, rows=4)[-3].strip() == "y = 2"
    assert not set("\x1b") & set("".join(shown.draw("\x1b[2J", (), columns=60, rows=4)))
    assert shown.draw(" ", (), columns=60, rows=4) == shown.draw("word", (), columns=60, rows=0) == []


def test_no_line_is_padded_with_blanks() -> None:
    shown, _ = screen(at_terminal=True)
    written: list[str] = []
    shown.write_with(written.append, redraw=lambda: None)
    text = "# The herald\n\nHe **spoke** to kings.\n\n- one"
    shown.answer(text)
    for line in "".join(written).splitlines() + shown.draw(text, (), columns=60, rows=9):
        assert line == line.rstrip()


def test_without_a_terminal_answers_are_plain_text() -> None:
    shown, written = screen(at_terminal=False)
    shown.answer("**Bold** and [not markup] " + 10 * "long ")
    shown.received("Ana [red]", "hello")
    shown.greet("Nobody")
    assert written.getvalue().splitlines()[:4] == [
        "**Bold** and [not markup] " + 10 * "long ",
        "",
        "Ana [red]: hello",
        "Nobody answers here. /help lists the commands.",
    ]


def test_no_text_controls_the_terminal() -> None:
    for at_terminal in (True, False):
        shown, written = screen(at_terminal=at_terminal)
        shown.answer("\x1b]0;owned\x07 a\r\nb\rc")
        shown.received("\x1b[2J", "\x9b2J")
        shown.show_text("\x1bc")
        shown.note("\x00")
        assert not set("\x1b\x07\x00\r\x9b") & set(written.getvalue())


def test_line_breaks_in_code_are_not_changed() -> None:
    assert keep_breaks("a\nb\n\n```\nc\nd\n```\ne\nf") == "a  \nb\n\n```\nc\nd\n```\ne  \nf"
