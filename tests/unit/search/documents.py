"""Documents, built segments and their entries, for the tests of the index."""

from random import Random

from keryx.core.search.rules.blocks import TermEntry
from keryx.core.search.rules.build_segment import BuiltSegment, IndexDocument, build_segment
from keryx.core.search.rules.scope_terms import document_scopes


def keep_control() -> None:
    """Do nothing: no other thread waits in these tests."""


def document(id_: int, text: str, *, at: int | None = None, session: str = "s") -> IndexDocument:
    scopes = document_scopes(session_id=session, audience_id=1, platform="local", role="user")
    return IndexDocument(id=id_, created_at=id_ if at is None else at, text=text, scopes=scopes)


def build(*documents: IndexDocument) -> BuiltSegment:
    return build_segment(documents, yield_control=keep_control)


def as_dict(entries: list[TermEntry]) -> dict[str, tuple[list[int], bytes, bytes]]:
    return {term: (list(docs), bytes(counts), bytes(positions)) for term, docs, counts, positions in entries}


def random_documents(seed: int, count: int, *, first_id: int = 1) -> list[IndexDocument]:
    random = Random(seed)
    words = ["alpha", "beta", "gamma", "delta", "数据库", "c++", "x" * 80]
    return [
        document(
            first_id + index,
            " ".join(random.choice(words) for _ in range(random.randrange(8))),
            at=random.randrange(50),
            session=f"s{random.randrange(3)}",
        )
        for index in range(count)
    ]
