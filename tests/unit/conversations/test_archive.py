"""Exported lines contain everything about a session; inconsistent lines are refused."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.archive import (
    Archive,
    ArchiveParser,
    BranchLine,
    CoverLine,
    Line,
    LinkLine,
    MessageLine,
    SessionLine,
    TagLine,
    TurnLine,
    format_line,
    parse_line,
)
from keryx.core.conversations.rules.message import TextPart, ToolCallPart, encode_parts
from keryx.core.conversations.rules.source import LOCAL_CLI
from keryx.errors import InvalidValue

SESSION = SessionLine(id="20260101_000000_0000000a", source=LOCAL_CLI, started_at=1, last_active_at=2)
MESSAGE = MessageLine(branch_no=0, seq=1, role="user", body='"Hello"', created_at=3)
BRANCH = BranchLine(no=1, reason="undo", created_at=4, parent_no=0, parent_seq=1)
TURN = TurnLine(
    no=1, branch_no=0, state="finished", purpose="reply", begun_at=5, ended_at=6, model="m", zone="UTC"
)
COVER = CoverLine(
    no=1, branch_no=0, first_seq=1, last_seq=2, summary="s", tokens_before=9, tokens_after=1, created_at=7
)
LINES: list[Line] = [
    replace(SESSION, title="Rome", title_by="person", closed_at=8, close_reason="done", pinned_at=9),
    TagLine(tag="trip"),
    LinkLine(kind="import", created_at=1, origin="hermes:1"),
    BRANCH,
    BranchLine(no=2, reason="undo", created_at=4),
    COVER,
    TURN,
    MESSAGE,
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: type(line).__name__)
def test_a_line_survives_formatting_and_parsing(line: Line) -> None:
    assert parse_line(format_line(line)) == line


@given(st.text(st.characters(exclude_categories=[])) | st.just('{"a": [1, NaN]}') | st.just("[" * 5000))
@settings(max_examples=100)
def test_any_stored_text_of_a_message_survives_formatting_and_parsing(body: str) -> None:
    line = replace(MESSAGE, body=body)
    assert parse_line(format_line(line)) == line


@given(st.lists(st.text(st.characters(exclude_categories=[])), min_size=1))
@settings(max_examples=100)
def test_any_text_parts_survive_formatting_and_parsing(texts: list[str]) -> None:
    call = ToolCallPart(call_id="c", name="n", arguments={"x": 1.5})
    body = encode_parts((*(TextPart(text=text) for text in texts), call))
    assert parse_line(format_line(replace(MESSAGE, body=body))) == replace(MESSAGE, body=body)


def test_parts_are_written_so_that_other_programs_can_read_them() -> None:
    assert json.loads(format_line(MESSAGE))["parts"] == "Hello"
    assert json.loads(format_line(replace(MESSAGE, body='"torn')))["body"] == '"torn'


def test_half_a_surrogate_pair_in_foreign_parts_becomes_storable() -> None:
    foreign = '{"type":"message","branch_no":0,"seq":1,"role":"user","created_at":3,"parts":["\\ud800","ö"]}'
    line = parse_line(foreign)
    assert isinstance(line, MessageLine)
    line.body.encode()
    assert json.loads(line.body) == ["\ud800", "ö"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("torn {", "not a line of an exported session"),
        ("[1]", "not a line of an exported session"),
        ('{"type":"ghost"}', "not a line of an exported session"),
        ('{"type":"session","format":99}', "format 99"),
        ('{"type":"tag"}', "a tag line .* lacks one of tag"),
        ('{"type":"tag","tag":7}', "tag of a tag line cannot be 7"),
        (format_line(MESSAGE).replace('"seq":1', '"seq":"1"'), "seq of a message line"),
        (format_line(MESSAGE).replace('"seq":1', '"seq":true'), "seq of a message line"),
        (format_line(MESSAGE).replace('"seq":1', f'"seq":{2**70}'), "seq of a message line"),
        (format_line(MESSAGE).replace('"seq":1', '"seq":0'), "message 0"),
        (format_line(MESSAGE).replace('"user"', '"ghost"'), "role 'ghost'"),
        (
            format_line(SESSION).replace('{"platform":"local","chat_id":"cli","chat_type":"dm"}', "1"),
            "platform",
        ),
        (format_line(LINES[0]).replace('"person"', '"ghost"'), "title_by 'ghost'"),
        (format_line(LINES[0]).replace('"title":"Rome",', ""), "title and title_by"),
        (format_line(LINES[0]).replace('"closed_at":8,', ""), "closed_at and close_reason"),
        (format_line(LINES[2]).replace('"import"', '"ghost"'), "link kind 'ghost'"),
        (format_line(TURN).replace('"finished"', '"ghost"'), "turn 1"),
        (format_line(COVER).replace('"tokens_after":1', '"tokens_after":9'), "cover 1"),
        (
            format_line(COVER).replace('"tokens_after":1', '"tokens_after":1,"input_tokens":-1'),
            "counts begin",
        ),
    ],
)
def test_a_line_that_does_not_fit_is_refused_with_its_reason(text: str, complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        parse_line(text)


def test_lines_of_several_sessions_are_split_at_the_session_lines() -> None:
    parser = ArchiveParser()
    other = replace(SESSION, id="20260101_000000_0000000b")
    assert parser.end() is None
    assert parser.add(format_line(SESSION)) is None
    assert parser.add("  ") is None
    assert parser.add(format_line(MESSAGE)) is None
    first = parser.add(format_line(other))
    assert first == Archive(session=SESSION, messages=(MESSAGE,))
    assert parser.end() == Archive(session=other)


def test_lines_before_any_session_are_refused() -> None:
    with pytest.raises(InvalidValue, match="begins with its session line"):
        ArchiveParser().add(format_line(MESSAGE))


def test_all_lines_of_a_session_are_gathered() -> None:
    parser = ArchiveParser()
    for line in LINES:
        parser.add(format_line(line))
    archive = parser.end()
    assert archive is not None
    assert (archive.session, archive.tags, archive.messages) == (LINES[0], (LINES[1],), (MESSAGE,))
    assert [branch.no for branch in archive.known_branches(SESSION.id)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"messages": (MESSAGE, MESSAGE)}, "the same number"),
        ({"branches": (BRANCH, BRANCH)}, "the same number"),
        ({"turns": (TURN, TURN)}, "the same number"),
        ({"messages": (replace(MESSAGE, branch_no=7),)}, "branch or turn of message 1"),
        (
            {"messages": (replace(MESSAGE, branch_no=1),), "branches": (BRANCH,)},
            "branch or turn of message 1",
        ),
        ({"messages": (replace(MESSAGE, turn=4),)}, "branch or turn of message 1"),
        ({"branches": (replace(BRANCH, parent_no=9),)}, "branch 9"),
        ({"branches": (replace(BRANCH, parent_no=1),)}, "its own ancestor"),
        ({"session": replace(SESSION, active_branch_no=3)}, "branch 3"),
    ],
)
def test_lines_that_contradict_each_other_are_refused(broken: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        Archive(**({"session": SESSION} | broken))  # type: ignore[arg-type]


def test_a_first_branch_with_its_own_line_is_not_duplicated() -> None:
    archive = Archive(session=SESSION, branches=(BranchLine(no=0, reason="root", created_at=1),))
    assert len(archive.known_branches(SESSION.id)) == 1
