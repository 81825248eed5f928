"""Which commands a lasting yes may cover with whatever words follow: those that only look."""

import pytest

from keryx.domain.approval_rule import coverage
from keryx.domain.harmless import harmless_beginning


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
def test_a_command_that_only_looks_is_covered_with_other_words(command: str, beginning: str) -> None:
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
def test_any_other_program_is_covered_only_as_it_was_asked_about(command: str) -> None:
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
def test_what_git_writes_or_runs_is_asked_about(command: str) -> None:
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
def test_what_lies_outside_the_folder_is_asked_about(command: str) -> None:
    assert harmless_beginning(command) is None


@pytest.mark.parametrize(
    "more", [";", "&", "|", ">a", "$A", "`", "(", "\n", "~", "*", "'a'", '"a"', "\\", "{a,b}", "#"]
)
def test_words_that_mean_more_to_a_shell_are_covered_only_as_they_stand(more: str) -> None:
    assert harmless_beginning(f"ls {more}") is None
