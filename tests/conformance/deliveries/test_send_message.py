"""Sending along a route: to the person's own chats, to others only with the owner's approval, and never twice."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from keryx.core.accounts.transactions import take_connector
from keryx.core.conversations.rules.source import LOCAL_CLI, Source, one_shot_source
from keryx.core.deliveries.rules.route import SplitChat
from keryx.core.deliveries.transactions.send_message import MessageQueued, OutgoingMessage, send_message
from keryx.core.deliveries.transactions.set_home import set_home
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import people
from keryx.core.turns.tables import turns
from keryx.core.turns.transactions.begin_turn import BegunTurn
from keryx.errors import InvalidValue, NotAllowed
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from keryx.testing.platform import FakePlatform
from tests.conformance.stage import Stage


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    """Ana is the owner, Ben a member; both write directly and in a group, Ana on Signal as well."""
    stage = Stage(database=database, clock=clock)

    def meet(tx: object) -> Person:
        return people.ensure_owner(tx)  # type: ignore[arg-type]

    ana = await stage.do(meet)
    for number, source in enumerate((dm(), dm(platform="signal"), dm("!ana:home", platform="matrix"))):
        await stage.do(
            lambda tx, source=source: tx.run(  # type: ignore[misc]
                "people.add_identity",
                platform=source.platform,
                account="",
                user_id=source.user_id,
                person_id=ana.id,
                name="Ana",
            )
        )
        await stage.exchange(f"hello {number}", source=source)
    await stage.meet("ben")
    await stage.exchange("hi", source=dm("ben"))
    await stage.exchange("hi all", source=group())
    await stage.exchange("hi all too", source=group("ben"))
    return stage


async def begun_at(stage: Stage, source: Source) -> BegunTurn:
    await stage.accept(f"go {source}", source=source)
    return await stage.begin()


async def send(
    stage: Stage,
    begun: BegunTurn,
    route: str,
    *,
    key: str = "k",
    to_others: bool = False,
    splitters: Mapping[str, SplitChat] | None = None,
) -> MessageQueued:
    turn = await stage.look(lambda tx: turns.get_turn(tx, begun.turn_id))
    assert turn.person_id is not None
    letter = OutgoingMessage(text="the news", route=route, key=key, splitters=splitters or {})
    person_id = turn.person_id
    return await stage.do(
        lambda tx: send_message(
            tx, letter, session_id=begun.lease.session_id, person_id=person_id, to_others=to_others
        )
    )


async def queued(stage: Stage) -> list[str]:
    rows = await stage.rows("SELECT address FROM outbox WHERE parts LIKE '%the news%' ORDER BY id")
    return [address for (address,) in rows]


async def test_a_message_reaches_the_persons_own_chats_by_id_name_and_origin(stage: Stage) -> None:
    begun = await begun_at(stage, dm())
    posted = await send(stage, begun, "origin, signal:Ana, matrix:!ana:home")
    assert await queued(stage) == ["telegram:ana", "signal:ana", "matrix:!ana%3Ahome"]
    assert posted.places[1] == "signal:ana (DM with Ana)"
    assert not posted.to_file
    assert (await send(stage, begun, "local", key="l")).to_file


async def test_a_platform_reads_the_chat_and_thread_of_a_route_itself(stage: Stage) -> None:
    begun = await begun_at(stage, dm())
    with pytest.raises(InvalidValue, match="no such chat"):
        await send(stage, begun, "matrix:!ana:home:42")
    await send(stage, begun, "matrix:!ana:home:42", splitters={"matrix": FakePlatform().adapter().split_chat})
    assert await queued(stage) == ["matrix:!ana%3Ahome:42"]


async def test_a_repeated_call_sends_once(stage: Stage) -> None:
    begun = await begun_at(stage, dm())
    assert await send(stage, begun, "signal:ana") == await send(stage, begun, "signal:ana")
    assert await queued(stage) == ["signal:ana"]
    await send(stage, begun, "signal:ana", key="another")
    assert await queued(stage) == ["signal:ana", "signal:ana"]


async def test_a_message_from_a_group_may_go_to_the_group_or_to_the_asker(stage: Stage) -> None:
    begun = await begun_at(stage, group("ben"))
    await send(stage, begun, "origin,telegram:ben")
    assert await queued(stage) == ["telegram:family", "telegram:ben"]


@pytest.mark.parametrize("to_others", [False, True])
async def test_a_member_reaches_no_chat_of_others(stage: Stage, *, to_others: bool) -> None:
    begun = await begun_at(stage, dm("ben"))
    for route in ("telegram:family", "telegram:ana", "signal:ana", "signal"):
        with pytest.raises((InvalidValue, NotAllowed)):
            await send(stage, begun, route, to_others=to_others)
    with pytest.raises(NotAllowed, match="Only the owner may send to"):
        await send(stage, begun, "local", to_others=to_others)
    assert await queued(stage) == []


async def test_a_home_channel_that_others_read_needs_the_owners_approval(stage: Stage) -> None:
    await stage.do(lambda tx: set_home(tx, group(), by=people.ensure_owner(tx).id))
    begun = await begun_at(stage, dm())
    with pytest.raises(NotAllowed, match="telegram:family is read by others than this conversation"):
        await send(stage, begun, "all")
    await send(stage, begun, "telegram,telegram:Family,telegram:ben", to_others=True)
    assert await queued(stage) == ["telegram:family", "telegram:ben"]


async def test_an_unknown_route_is_refused_with_the_nearest_names(stage: Stage) -> None:
    begun = await begun_at(stage, dm())
    for route, told in (
        ("telegramm:ana", "did you mean telegram"),
        ("telegram:anna", "no such chat; did you mean ana"),
        ("signal", "there is no home channel; name a chat"),
        ("signal:", "give a chat after the colon"),
    ):
        with pytest.raises(InvalidValue, match=told):
            await send(stage, begun, route)
    assert await queued(stage) == []


async def test_nothing_is_sent_after_the_turn_has_ended(stage: Stage) -> None:
    begun = await begun_at(stage, dm())
    await stage.finish(begun)
    with pytest.raises(NotAllowed, match="The turn is over"):
        await send(stage, begun, "origin")


async def test_each_chat_is_reached_through_the_account_used_there(stage: Stage) -> None:
    second = replace(dm("!ana:home", platform="matrix"), account="second", chat_id="#rome")
    await stage.exchange("hello there", source=second)
    begun = await begun_at(stage, dm())
    await send(stage, begun, "matrix:!ana:home, matrix:#rome")
    assert await queued(stage) == ["matrix:!ana%3Ahome", "matrix@second:#rome"]


async def test_the_terminal_is_reached_and_a_passing_place_is_not(stage: Stage) -> None:
    place = one_shot_source("1")
    await stage.exchange("hello terminal", source=LOCAL_CLI)
    await stage.do(lambda tx: take_connector(tx, platform="local", account="print-1", holder="print"))
    await stage.exchange("a question", source=place)
    begun = await begun_at(stage, dm())
    await send(stage, begun, "local:cli")
    await stage.finish(begun)
    begun = await begun_at(stage, place)
    await send(stage, begun, "local:cli, origin", key="p")
    assert await queued(stage) == ["local:cli", "local:cli", "local@print-1:cli"]
