"""Routes and addresses: parsing, nearest names, resolving, canonical text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.deliveries.rules.route import (
    ORIGIN,
    Address,
    LocalFile,
    Route,
    ToChat,
    ToHome,
    Word,
    parse_route,
    resolve_route,
    split_at_first_colon,
    stored_route,
)
from keryx.errors import InvalidValue


def split_matrix(text: str) -> tuple[str, str | None]:
    """Split a room and a thread: a room id has a colon before its server; a thread is an event id."""
    room, mark, event = text.partition(":$")
    return room, f"${event}" if mark else None


SPLITTERS = {"telegram": split_at_first_colon, "slack": split_at_first_colon, "matrix": split_matrix}
CHATS = {"slack": {"C1": "ops", "C2": "General", "C3": "twin", "C4": "Twin"}, "telegram": {}}
HOME = Address(platform="telegram", account="bot1", chat_id="7")
ROOM = Address(platform="matrix", chat_id="!r:x.org")
HOMES = {"telegram": HOME, "matrix": ROOM}
ASKER = Source(
    platform="slack", account="team2", chat_id="C1", chat_type="thread", thread_id="42", user_id="U1"
)


def read(text: str) -> Route:
    return parse_route(text, splitters=SPLITTERS)


def resolve(
    text: str, *, origin: Source | None = ASKER, scheduled: bool = False
) -> list[Address | LocalFile]:
    accounts = {"telegram": "bot1", "slack": "team1"}
    return resolve_route(read(text), origin=origin, homes=HOMES, first_accounts=accounts, scheduled=scheduled)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("origin", ("origin",)),
        ("local", ("local",)),
        (" All ", ("all",)),
        ("Telegram", (ToHome(platform="telegram"),)),
        ("telegram:-100", (ToChat(platform="telegram", chat_id="-100"),)),
        ("telegram:-100:42", (ToChat(platform="telegram", chat_id="-100", thread_id="42"),)),
        ("matrix:!r:x.org", (ToChat(platform="matrix", chat_id="!r:x.org"),)),
        ("matrix:!r:x.org:$e", (ToChat(platform="matrix", chat_id="!r:x.org", thread_id="$e"),)),
        ("telegram:a%2Cb%25", (ToChat(platform="telegram", chat_id="a,b%"),)),
        ("origin, local,origin", ("origin", "local")),
    ],
)
def test_a_route_is_read_as_the_product_defines_it(text: str, targets: tuple[object, ...]) -> None:
    assert read(text).targets == targets


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("telegran", "did you mean telegram"),
        ("telegran:7", "did you mean telegram"),
        ("orign", "did you mean origin"),
        ("zzz", "known: origin, local, all, telegram, slack, matrix"),
        ("", "no platform ''"),
        ("origin,", "no platform ''"),
        ("local:file", "no platform 'local'"),
        ("telegram:", "give a chat"),
        ("telegram:7:", "give a chat"),
    ],
)
def test_a_wrong_route_is_refused_with_the_correct_form(text: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        read(text)


def test_a_known_chat_is_found_by_id_or_by_its_only_name() -> None:
    def chat(text: str) -> object:
        return parse_route(text, splitters=SPLITTERS, chats=CHATS).targets[0]

    assert chat("slack:C1") == chat("slack:OPS") == ToChat(platform="slack", chat_id="C1")
    assert chat("slack:general:9") == ToChat(platform="slack", chat_id="C2", thread_id="9")
    assert chat("matrix:!new:x") == ToChat(platform="matrix", chat_id="!new:x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("slack:opps", "did you mean ops"),
        ("slack:twin", "2 chats have this name; use the id: C3, C4"),
        ("telegram:7", "none is known yet"),
    ],
)
def test_an_unknown_chat_is_refused_with_the_nearest_names(text: str, said: str) -> None:
    with pytest.raises(InvalidValue, match=said):
        parse_route(text, splitters=SPLITTERS, chats=CHATS)


def test_a_route_without_a_target_is_refused() -> None:
    with pytest.raises(InvalidValue, match="target"):
        Route(targets=())


WORDS: list[Word] = ["origin", "local", "all"]
TEXT = st.text(alphabet="a%2C5,-!", min_size=1, max_size=6)
TARGETS = (
    st.sampled_from(WORDS)
    | st.builds(ToHome, platform=st.sampled_from(["telegram", "matrix"]))
    | st.builds(ToChat, platform=st.just("telegram"), chat_id=TEXT, thread_id=st.none() | TEXT)
)


@settings(max_examples=100)
@given(st.lists(TARGETS, min_size=1, max_size=4, unique=True))
def test_a_route_survives_printing_and_parsing(targets: list[Word | ToHome | ToChat]) -> None:
    route = Route(targets=tuple(targets))
    assert read(str(route)) == route


def test_origin_is_the_chat_and_thread_that_asked_through_the_same_account() -> None:
    assert resolve(str(ORIGIN)) == [Address(platform="slack", account="team2", chat_id="C1", thread_id="42")]
    assert resolve("origin", origin=LOCAL_CLI) == [Address(platform="local", chat_id="cli")]


def test_local_is_a_file_and_a_platform_its_home_channel() -> None:
    assert resolve("local,telegram") == [LocalFile(), HOME]


def test_all_is_every_home_channel() -> None:
    assert resolve("all") == [ROOM, HOME]


def test_a_chat_is_reached_through_the_asking_account_or_the_platforms_first() -> None:
    assert resolve("slack:C9:1") == [Address(platform="slack", account="team2", chat_id="C9", thread_id="1")]
    assert resolve("slack:C9", origin=None) == [Address(platform="slack", account="team1", chat_id="C9")]
    assert resolve("matrix:!q:x") == [Address(platform="matrix", chat_id="!q:x")]


def test_each_place_is_returned_once() -> None:
    assert resolve("telegram:7,telegram,all") == [HOME, ROOM]


def test_a_target_without_an_address_becomes_a_file_that_names_it() -> None:
    assert resolve("origin,slack", origin=None) == [
        LocalFile(instead_of="origin"),
        LocalFile(instead_of="slack"),
    ]
    assert resolve_route(read("all"), origin=None, homes={}, first_accounts={}) == [
        LocalFile(instead_of="all")
    ]


def test_scheduled_output_also_goes_to_a_file() -> None:
    assert resolve("telegram", scheduled=True) == [HOME, LocalFile()]
    assert resolve("local,telegram", scheduled=True) == [LocalFile(), HOME]


PARTS = st.text(alphabet="a:@%", min_size=1, max_size=4)
ADDRESSES = st.builds(
    Address,
    platform=st.sampled_from(["slack", "matrix"]),
    account=st.none() | PARTS,
    chat_id=PARTS,
    thread_id=st.none() | PARTS,
)


@settings(max_examples=100)
@given(ADDRESSES, ADDRESSES)
def test_the_text_of_an_address_is_its_identity(first: Address, second: Address) -> None:
    assert Address.parse(str(first)) == first
    assert (str(first) == str(second)) is (first == second)


def test_an_address_is_written_in_the_form_of_the_keys() -> None:
    address = Address(platform="matrix", account="@b:x", chat_id="!r:x", thread_id="$e")
    assert str(address) == "matrix@%40b%3Ax:!r%3Ax:$e"


@pytest.mark.parametrize(
    "text", ["", "slack", "slack:", "slack:C1:", "slack:C1:2:3", "slack@:C1", "No:1", "slack:a%"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        Address.parse(text)


@pytest.mark.parametrize(
    "text", ["origin", "telegram", "telegram:1:2,local", "matrix:!a:home,all", "x:a%2Cb"]
)
def test_a_stored_route_is_read_back_unchanged(text: str) -> None:
    assert str(stored_route(text)) == text
