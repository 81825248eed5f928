"""The invariants of covers."""

from collections.abc import Iterator

from keryx.core.context.tables import covers
from keryx.core.conversations.rules.branch import path
from keryx.core.conversations.tables import branch_paths, branches
from keryx.core.values.invariant import Breach
from keryx.errors import InvalidValue
from keryx.store.database import ReadTx


def follow_covers(tx: ReadTx) -> Iterator[Breach]:
    """Yield the covers whose range is not on the path of their branch."""
    for session_id in tx.values("cover_invariants.list_covered"):
        yield from _follow(tx, session_id)


def _follow(tx: ReadTx, session_id: str) -> Iterator[Breach]:
    known = branches.list_branches(tx, session_id)
    for cover in covers.list_covers(tx, session_id):
        try:
            covered = path(known, session_id=session_id, no=cover.branch_no)
        except InvalidValue as error:
            yield Breach(rule="I8", session_id=session_id, what=f"summary {cover.no}: {error}")
            continue
        if not all(branch_paths.is_on_path(tx, covered, seq) for seq in (cover.first_seq, cover.last_seq)):
            what = f"summary {cover.no} covers messages that do not exist"
            yield Breach(rule="I8", session_id=session_id, what=what)
