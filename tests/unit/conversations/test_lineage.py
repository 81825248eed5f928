"""Links between sessions."""

from typing import Any

import pytest

from keryx.core.conversations.rules.session import SessionLink
from keryx.errors import InvalidValue


def test_each_kind_of_link_says_where_a_session_came_from() -> None:
    SessionLink(kind="reset", from_session_id="a", to_session_id="b", created_at=1)
    SessionLink(kind="delegation", from_session_id="a", to_session_id="b", created_at=1)
    SessionLink(kind="fork", from_session_id="a", to_session_id="b", at_seq=0, created_at=1)
    SessionLink(kind="import", to_session_id="b", origin="hermes:42", created_at=1)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"kind": "cousin", "from_session_id": "a"}, "is not one of reset, fork, delegation, import"),
        ({"kind": "reset", "from_session_id": "b"}, "cannot be linked to itself"),
        ({"kind": "reset"}, "names the session it comes from"),
        ({"kind": "fork", "from_session_id": "a"}, "names the last message that both sessions share"),
        (
            {"kind": "fork", "from_session_id": "a", "at_seq": -1},
            "names the last message that both sessions share",
        ),
        ({"kind": "import"}, "names its origin"),
    ],
)
def test_a_wrong_link_cannot_be_constructed(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidValue, match=complaint):
        SessionLink(to_session_id="b", created_at=1, **fields)
