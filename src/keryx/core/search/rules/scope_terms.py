"""Scope terms: whose a document is and what filters ask for, as terms of the index.

The second character of a scope term is its kind: s session, a audience, p platform, r role, f author, h feature.
Session marks tell a query which segments to skip when it searches one session.
"""

import zlib
from collections.abc import Iterable, Sequence
from typing import Final

from keryx.core.search.rules.blocks import TermEntry
from keryx.core.search.rules.document_sets import Runs, to_runs
from keryx.core.search.rules.index_format import SCOPE, TERM_MAX
from keryx.core.search.rules.tokens import tokenize

MARK_BYTES: Final = 4
SESSION_SCOPE: Final = f"{SCOPE}s"
"""How the scope terms of sessions begin."""


def scope_term(kind: str, value: object) -> str:
    """Return the term that stands for the documents of one scope."""
    return f"{SCOPE}{kind}{value}"[:TERM_MAX]


def document_scopes(
    *,
    session_id: str,
    audience_id: int,
    platform: str,
    role: str | None = None,
    author_words: Iterable[str] = (),
    features: Iterable[str] = (),
) -> tuple[str, ...]:
    """Return the scope terms of a document. A session card has no role, author or features."""
    scopes = [
        scope_term("s", session_id),
        scope_term("a", audience_id),
        scope_term("p", platform_token(platform)),
    ]
    if role is not None:
        scopes.append(scope_term("r", role))
    scopes.extend(scope_term("f", word) for word in author_words)
    scopes.extend(scope_term("h", feature) for feature in features)
    return tuple(scopes)


def author_words(name: str | None, person_id: int | None) -> set[str]:
    """Return the words by which ``from:`` finds an author."""
    return {*tokenize(name or "").words, *([] if person_id is None else [str(person_id)])}


def platform_token(platform: str) -> str:
    """Return a platform's name in the form in which filters compare it."""
    return " ".join(tokenize(platform).words)


def scope_entry(term: str, docs: Sequence[int]) -> TermEntry:
    """Return the entry of a scope term: its documents, or the (last, first) of each run where that is shorter."""
    runs = to_runs(docs)
    if 2 * len(runs.firsts) < len(docs):
        docs = [number for pair in zip(runs.lasts, runs.firsts, strict=True) for number in pair]
    return term, docs, bytes(len(docs)), b""


def scope_docs(docs: Sequence[int]) -> Sequence[int] | Runs:
    """Return the documents of a scope term. Its numbers begin with a larger one only if they are runs."""
    return Runs(docs[1::2], docs[0::2]) if len(docs) > 1 and docs[0] >= docs[1] else docs


def session_mark(term: str) -> bytes:
    """Return the mark of a session's scope term: a short hash, which other sessions may share."""
    return zlib.crc32(term.encode()).to_bytes(MARK_BYTES, "big")


def join_marks(several: Iterable[bytes]) -> bytes:
    """Return the marks of several segments as those of one."""
    all_marks = {marks[at : at + MARK_BYTES] for marks in several for at in range(0, len(marks), MARK_BYTES)}
    return b"".join(sorted(all_marks))
