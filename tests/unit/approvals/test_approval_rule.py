"""The coverage of a standing approval: never wider than the person who gave it could read."""

import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.approvals.rules.approval_rule import (
    PATTERN_MAX,
    WHOLE_TOOL,
    ApprovalRule,
    CallToApprove,
    coverage,
    describe_coverage,
)

WORD = st.text(string.ascii_letters + string.digits + "._/-", min_size=1, max_size=8)
SHELL = [
    "echo",
    "touch",
    "x",
    " ",
    ";",
    "&",
    "&&",
    "|",
    "\n",
    "$(",
    ")",
    "`",
    "<",
    ">",
    "\\",
    "'",
    '"',
    "#",
    "*",
]
PIECES = st.lists(
    st.sampled_from(["git", "sh", "sudo", "a", " ", "*", "=", ";", "$", "/", "-"]), max_size=5
).map("".join)
MORE = [" ", "\t", "\r", "\n", "=", "{", "}", "!", "~", "\x00", "\u2028"]


def wish(covers: str | None, *, tool: str = "terminal") -> CallToApprove:
    return CallToApprove(call_id="c", tool=tool, question="?", covers=covers)


def test_a_tool_without_patterns_is_covered_as_a_whole() -> None:
    assert coverage(None, ["what; ever"]) == WHOLE_TOOL
    assert describe_coverage("remember", WHOLE_TOOL) == "every use of remember"
    assert describe_coverage("terminal", "git *") == "terminal: git *"


@pytest.mark.parametrize(
    "text",
    ["git", "git status", " git log -3 ", "git commit -m 'it works'", "git add *.py", "git show HEAD~1"],
)
def test_a_pattern_covers_texts_that_begin_with_it(text: str) -> None:
    assert coverage("git *", ["/home/ana", text]) == "git *"


@pytest.mark.parametrize(
    "text",
    [
        "git status; rm -rf /",
        "git status && rm -rf /",
        "git status & rm -rf /",
        "git log | sh",
        "git status\nrm -rf /",
        "git status\r\nrm -rf /",
        "git log $(rm -rf /)",
        "git log `rm -rf /`",
        "git log ${IFS}",
        "git log > /etc/passwd",
        "git log < /etc/passwd",
        "git log \\\nrm",
        "git -c alias.x=!rm x",
        "(git status)",
        "git \x1b[2K",
        "git \u202etxt",
        "gitk",
        "rm -rf / git ",
        "",
    ],
)
def test_a_text_that_does_more_than_its_pattern_says_is_not_covered(text: str) -> None:
    assert coverage("git *", [text]) is None


def test_all_arguments_are_checked() -> None:
    assert coverage("git *", ["git status", "/tmp; rm -rf /"]) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "*",
        "A=1 *",
        "sudo *",
        "/usr/bin/env *",
        "bash *",
        "sh*",
        "/usr/bin/nohup x *",
        "* git",
        "git * push",
        "git  *",
        "g?t *",
        "git; *",
        "gít *",
        " git *",
        "x" * (PATTERN_MAX + 1),
    ],
)
def test_a_pattern_that_promises_nothing_is_not_accepted(pattern: str) -> None:
    text = pattern.replace("*", "x")
    assert coverage(pattern, [text, text.strip()]) is None


def test_a_pattern_without_a_star_covers_only_an_equal_text() -> None:
    assert coverage("make check", ["make check"]) == "make check"
    assert coverage("make check", ["make check all"]) is None
    assert coverage("sudo A=1 make", ["sudo A=1 make"]) == "sudo A=1 make"
    assert coverage("make; rm x", ["make; rm x"]) is None


@given(stem=WORD, rest=st.text(max_size=20), forbidden=st.sampled_from(list(";&|<>()$`\\!\n\r\x00")))
def test_no_pattern_covers_a_text_with_a_character_of_the_shell(stem: str, rest: str, forbidden: str) -> None:
    half = len(rest) // 2
    # Only within words: white space around a text does not belong to the text.
    text = f"{stem} {rest[:half]}{forbidden}{rest[half:]}x"
    assert coverage(f"{stem} *", [text]) is None


@given(pattern=PIECES, text=PIECES)
def test_a_covered_text_begins_with_the_pattern(pattern: str, text: str) -> None:
    covers = coverage(pattern, [text])
    assert covers in (None, pattern)
    if covers is not None:
        words = pattern.removesuffix("*").split()
        assert text.split()[: len(words) - 1] == words[:-1]
        assert "*" in pattern or text.strip() == pattern
        assert text.strip().startswith(pattern.removesuffix("*").rstrip())


@given(tool=st.sampled_from(["terminal", "remember"]), rule=WORD, asked=st.none() | WORD)
def test_a_rule_covers_the_same_pattern_of_the_same_tool_and_the_whole_tool_covers_all(
    tool: str, rule: str, asked: str | None
) -> None:
    given_for = ApprovalRule(id=1, tool="terminal", pattern=rule)
    assert given_for.covers(wish(asked, tool=tool)) == (tool == "terminal" and rule == asked)
    whole = ApprovalRule(id=2, tool="terminal", pattern=WHOLE_TOOL)
    assert whole.covers(wish(asked, tool=tool)) == (tool == "terminal")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an empty folder, next to a folder with the only program."""
    place = tmp_path_factory.mktemp("shell")
    (place / "bin").mkdir()
    (place / "work").mkdir()
    touch = place / "bin" / "touch"
    touch.write_text("#!/bin/sh\n: > ../touched\n")
    touch.chmod(0o755)
    return place


@settings(max_examples=150, deadline=None)
@given(tail=st.lists(st.sampled_from(SHELL + MORE), max_size=8).map("".join))
def test_a_real_shell_runs_no_other_program_for_a_covered_text(bench: Path, tail: str) -> None:
    command = f"echo {tail}touch x"
    if coverage("echo *", [command]) is None:
        return
    subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=bench / "work",
        env={"PATH": str(bench / "bin")},
        check=False,
        capture_output=True,
    )
    assert not (bench / "touched").exists()
    assert list((bench / "work").iterdir()) == []


def test_a_real_shell_would_run_the_other_program(bench: Path) -> None:
    """The test above can fail: a text that is not covered runs the program."""
    subprocess.run(
        ["/bin/sh", "-c", "echo a; touch x"],
        cwd=bench / "work",
        env={"PATH": str(bench / "bin")},
        check=True,
        capture_output=True,
    )
    assert (bench / "touched").exists()
    (bench / "touched").unlink()
