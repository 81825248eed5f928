"""Read-only commands: a standing approval may cover them with any further words."""

import pytest

from keryx.core.approvals.rules.approval_rule import coverage
from keryx.core.approvals.rules.harmless_commands import harmless_beginning


@pytest.mark.parametrize(
    ("command", "beginning"),
    [
        ("ls", "ls *"),
        ("ls -la src/keryx", "ls *"),
        ("cat README.md", "cat *"),
        ("grep -rn TODO src", "grep *"),
        ("wc -l a.py b.py", "wc *"),
        ("git status", "git status *"),
        ("git status --short", "git status *"),
        ("git log --oneline -n 3 main..next -- src", "git log *"),
        ("git diff --stat HEAD", "git diff *"),
    ],
)
def test_a_read_only_command_is_covered_with_other_words(command: str, beginning: str) -> None:
    assert harmless_beginning(command) == beginning
    assert coverage(beginning, [command]) == beginning


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "python3.11 a.py",
        "npx cowsay",
        "uv run a",
        "docker ps",
        "curl example.org",
        "make",
        "find . -delete",
        "awk -f a",
        "sort a -o b",
        "uniq a b",
        "sudo ls",
        "./ls",
        "/tmp/ls",
        "A=1 ls",
        "",
    ],
)
def test_any_other_program_is_covered_only_with_the_same_words(command: str) -> None:
    assert harmless_beginning(command) is None


@pytest.mark.parametrize(
    "command",
    [
        "git",
        "git push",
        "git clean -fdx",
        "git branch -D main",
        "git -c core.pager=x log",
        "git -C sub log",
        "git grep -Oless x",
        "git diff --ext-diff",
        "git diff --ext",
        "git log -p --textconv",
        "git diff --output=a.py",
        "git diff --outp=a.py",
        "git show --output a.py",
        "git cat-file --filters HEAD:a",
    ],
)
def test_git_commands_that_write_or_run_programs_are_not_covered(command: str) -> None:
    assert harmless_beginning(command) is None


@pytest.mark.parametrize(
    "command",
    [
        "cat /home/ana/.ssh/id_ed25519",
        "cat ../secrets",
        "cat a/../../secrets",
        "ls ..",
        "grep -f/etc/passwd x",
        "grep --file=/etc/passwd x",
        "grep --file=../x y",
        "git show HEAD:../x",
        "git diff --no-index /etc/passwd a",
    ],
)
def test_paths_outside_the_folder_are_not_covered(command: str) -> None:
    assert harmless_beginning(command) is None


@pytest.mark.parametrize(
    "more", [";", "&", "|", ">a", "$A", "`", "(", "\n", "~", "*", "'a'", '"a"', "\\", "{a,b}", "#"]
)
def test_words_with_a_special_meaning_for_a_shell_are_covered_only_unchanged(more: str) -> None:
    assert harmless_beginning(f"ls {more}") is None
