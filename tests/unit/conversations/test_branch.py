"""Branches: paths equal copied lists and stay flat, and versions are counted."""

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.branch import (
    SEQ_MAX,
    Branch,
    BranchReason,
    PathMessage,
    Segment,
    branch_at,
    edit_point,
    owner_of,
    path,
    redo_targets,
    retry_point,
    turn_starts,
    undo_point,
    versions,
)
from keryx.core.conversations.rules.message import Role
from keryx.core.values.turn_states import TurnId
from keryx.errors import InvalidValue

ROOT = Branch(session_id="s", no=0)


def child(no: int, parent: int, seq: int, *, reason: BranchReason = "retry", session: str = "s") -> Branch:
    return Branch(
        session_id=session, no=no, parent_session_id="s", parent_no=parent, parent_seq=seq, reason=reason
    )


def segment(no: int, first: int, last: int = SEQ_MAX, session: str = "s") -> Segment:
    return Segment(session_id=session, branch_no=no, first_seq=first, last_seq=last)


def said(*roles: Role) -> list[PathMessage]:
    return [PathMessage(seq=10 * place, role=role) for place, role in enumerate(roles, start=1)]


Place = tuple[str, int, int]


@dataclass
class World:
    """Sessions with branches in two forms: as rows under test, and as copied lists."""

    branches: list[Branch] = field(default_factory=lambda: [ROOT])
    rows: list[Place] = field(default_factory=list)
    copies: dict[tuple[str, int], list[Place]] = field(default_factory=lambda: {("s", 0): []})
    last_seq: dict[str, int] = field(default_factory=lambda: {"s": 0})

    def path(self, session: str, no: int) -> list[Segment]:
        return path(self.branches, session_id=session, no=no)

    def append(self, session: str, no: int) -> None:
        self.last_seq[session] += 1
        place = (session, no, self.last_seq[session])
        self.rows.append(place)
        self.copies[session, no].append(place)

    def branch(self, session: str, no: int, *, keep: int, to: str) -> None:
        kept = self.copies[session, no][:keep]
        seq = kept[-1][2] if kept else 0
        new_no = sum(branch.session_id == to for branch in self.branches)
        self.branches.append(
            branch_at(
                self.path(session, no),
                seq,
                session_id=to,
                no=new_no,
                reason="fork" if to != session else "edit",
            )
        )
        self.copies[to, new_no] = kept
        self.last_seq.setdefault(to, seq)

    def read(self, segments: list[Segment]) -> list[Place]:
        return [
            row
            for part in segments
            for row in sorted(self.rows)
            if (row[0], row[1]) == (part.session_id, part.branch_no)
            and part.first_seq <= row[2]
            and row[2] <= part.last_seq
        ]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    world = World()
    for step in range(draw(st.integers(1, 14))):
        session, no = draw(st.sampled_from(sorted(world.copies)))
        if draw(st.booleans()):
            for _ in range(draw(st.integers(1, 3))):
                world.append(session, no)
        else:
            keep = draw(st.integers(0, len(world.copies[session, no])))
            world.branch(session, no, keep=keep, to=draw(st.sampled_from([session, f"fork{step}"])))
    return world


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_a_path_reads_what_copied_lists_would_hold(world: World) -> None:
    for (session, no), copy in world.copies.items():
        segments = world.path(session, no)
        assert world.read(segments) == copy
        assert [place[2] for place in copy] == sorted({place[2] for place in copy})
        for place in copy:
            owner = owner_of(segments, place[2])
            assert owner is not None
            assert (owner.session_id, owner.branch_no) == place[:2]


@given(worlds())
@settings(max_examples=100, deadline=None)
def test_versions_begin_where_copied_lists_differ(world: World) -> None:
    for (session, no), copy in world.copies.items():
        found = versions(world.branches, session_id=session, no=no)
        for (other_session, other), theirs in world.copies.items():
            if other_session != session or other == no:
                continue
            shared = 0
            while copy[shared : shared + 1] and copy[shared : shared + 1] == theirs[shared : shared + 1]:
                shared += 1
            if shared < min(len(copy), len(theirs)):
                seq = copy[shared - 1][2] if shared else 0
                assert no in found[seq].branch_nos
                assert len(found[seq].branch_nos) > 1


def test_repeated_retries_stay_flat() -> None:
    world = World()
    world.append("s", 0)
    for no in range(50):
        world.append("s", no)
        world.branch("s", no, keep=1, to="s")
    assert world.path("s", 50) == [segment(0, 1, 1), segment(50, 2)]
    assert {branch.parent_no for branch in world.branches[1:]} == {0}


def test_a_path_crosses_into_the_session_it_was_forked_from() -> None:
    fork = child(0, 1, 9, reason="fork", session="f")
    assert path([ROOT, child(1, 0, 4), fork], session_id="f", no=0) == [
        segment(0, 1, 4),
        segment(1, 5, 9),
        segment(0, 10, session="f"),
    ]


def test_an_ancestor_without_messages_of_its_own_is_not_on_the_path() -> None:
    skipped = child(2, 1, 3)
    assert path([ROOT, child(1, 0, 4), skipped], session_id="s", no=2) == [
        segment(0, 1, 3),
        segment(2, 4),
    ]


def test_a_missing_parent_and_a_cycle_are_refused() -> None:
    with pytest.raises(InvalidValue, match="branch 7 of session s does not exist"):
        path([ROOT], session_id="s", no=7)
    with pytest.raises(InvalidValue, match="its own ancestor"):
        path([child(1, 2, 5), child(2, 1, 4)], session_id="s", no=1)


@pytest.mark.parametrize(
    ("parent_session_id", "parent_no", "parent_seq"),
    [(None, 0, 4), ("s", None, 4), ("s", 0, 0), (None, None, 4), ("s", 0, -1)],
)
def test_an_incomplete_parent_cannot_be_constructed(
    parent_session_id: str | None, parent_no: int | None, parent_seq: int
) -> None:
    with pytest.raises(InvalidValue, match="give all three or none"):
        Branch(
            session_id="s",
            no=1,
            parent_session_id=parent_session_id,
            parent_no=parent_no,
            parent_seq=parent_seq,
        )


def test_an_unknown_reason_cannot_be_constructed() -> None:
    with pytest.raises(InvalidValue, match="is not one of root, undo"):
        replace(ROOT, reason="whim")  # type: ignore[arg-type]


def test_a_message_outside_the_path_has_no_owner() -> None:
    segments = [segment(0, 1, 4), segment(1, 9, 12)]
    assert owner_of(segments, 4) == segments[0]
    assert owner_of(segments, 0) is None
    assert owner_of(segments, 5) is None
    assert owner_of(segments, 13) is None
    with pytest.raises(InvalidValue, match="message 13 is not on the path"):
        branch_at(segments, 13, session_id="s", no=2, reason="edit")


def test_a_branch_at_0_has_no_parent() -> None:
    assert branch_at([segment(0, 1)], 0, session_id="s", no=1, reason="undo") == Branch(
        session_id="s", no=1, reason="undo"
    )


def test_undo_keeps_the_messages_before_the_turn() -> None:
    messages = said("user", "assistant", "user", "assistant", "tool", "assistant")
    assert undo_point(messages) == 20
    assert undo_point(messages, turns=2) == 0
    assert undo_point(messages, turns=2, before=7) == 7
    assert undo_point(messages, turns=3) is None
    with pytest.raises(InvalidValue, match="from 1 on"):
        undo_point(messages, turns=0)


def test_retry_keeps_the_question() -> None:
    messages = said("user", "assistant", "user", "user", "assistant", "tool", "assistant")
    assert retry_point(messages) == 40
    assert retry_point(messages, seq=20) == 10
    assert retry_point(messages, seq=40) == 40
    assert retry_point(said("user")) == 10
    assert retry_point(said("system", "assistant")) is None


def test_edit_keeps_the_messages_before_the_edited_one() -> None:
    messages = said("user", "assistant", "user")
    assert edit_point(messages, seq=30) == 20
    assert edit_point(messages, seq=10) == 0
    assert edit_point(messages, seq=10, before=5) == 5
    with pytest.raises(InvalidValue, match="message 25 is not on this branch"):
        edit_point(messages, seq=25)


def test_a_message_that_steered_a_turn_begins_no_turn() -> None:
    first, second, third = TurnId(1), TurnId(2), TurnId(3)
    messages = [
        PathMessage(seq=1, role="user", turn_id=first),
        PathMessage(seq=2, role="user", turn_id=first),
        PathMessage(seq=3, role="assistant", turn_id=first),
        PathMessage(seq=4, role="user", turn_id=first),
        PathMessage(seq=5, role="assistant", turn_id=first),
        PathMessage(seq=6, role="user", turn_id=second),
        PathMessage(seq=7, role="user", turn_id=third),
    ]
    assert [messages[index].seq for index in turn_starts(messages)] == [1, 6, 7]
    assert retry_point(messages, seq=5) == 2
    assert retry_point(messages, seq=6) == 6


def test_people_see_which_version_is_shown() -> None:
    branches = [ROOT, child(1, 0, 4), child(2, 0, 4), child(3, 0, 2)]
    shown = versions(branches, session_id="s", no=1)
    assert shown.keys() == {4, 2}
    assert (shown[4].branch_nos, shown[4].label) == ((0, 1, 2), "2/3")
    assert (shown[2].branch_nos, shown[2].label) == ((1, 3), "1/2")
    assert versions([ROOT], session_id="s", no=0) == {}


def test_a_version_names_its_newest_branch() -> None:
    branches = [ROOT, child(1, 0, 4), child(2, 1, 9)]
    assert versions(branches, session_id="s", no=0)[4].branch_nos == (0, 2)


def test_versions_of_the_first_message_are_counted() -> None:
    branches = [ROOT, Branch(session_id="s", no=1, reason="edit")]
    assert versions(branches, session_id="s", no=1)[0].label == "2/2"


def test_a_fork_counts_the_inherited_messages_as_its_first_version() -> None:
    branches = [ROOT, child(0, 0, 6, reason="fork", session="f"), child(1, 0, 4, session="f")]
    shown = versions(branches, session_id="f", no=1)
    assert (shown[4].branch_nos, shown[4].label) == ((0, 1), "2/2")


def test_redo_goes_back_step_by_step() -> None:
    branches = [ROOT, child(1, 0, 4), child(2, 0, 3, reason="undo"), child(3, 0, 2, reason="undo")]
    newest = [redo_targets(branches, session_id="s", no=no)[:1] for no in (3, 2, 1, 0)]
    assert newest == [[2], [1], [0], []]


def test_redo_skips_branches_that_parted_elsewhere() -> None:
    branches = [ROOT, child(1, 0, 2), child(2, 0, 4)]
    assert redo_targets(branches, session_id="s", no=2) == [0]
