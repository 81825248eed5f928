"""Stories that random histories told first: each is played in a simulated world, and every promise is judged."""

from keryx.gateway.dispatch import GROWING
from keryx.platforms.adapter import Outgoing, TextPiece
from keryx.testing.platform import Trouble
from keryx.testing.simulator.books import Saying
from keryx.testing.simulator.script import numbers_in
from keryx.testing.simulator.theatre import Story, Theatre
from keryx.testing.simulator.world import World


def breaches(story: Story) -> list[str]:
    """Play a story in memory and return what was broken in it."""
    theatre = Theatre()
    try:
        return theatre.play(story).breaches
    finally:
        theatre.close()


def test_a_connection_that_is_made_again_is_no_reason_to_speak_before_the_platform_wants_it() -> None:
    asked: list[str] = []

    async def story(world: World) -> list[Saying]:
        def cut_at_the_first(outgoing: Outgoing) -> Trouble | None:
            asked.append(outgoing.key)
            if len(asked) > 1:
                return None
            world.platform.cut()
            return "limit"

        world.let_in("ana")
        world.platform.before_send = cut_at_the_first
        world.start("node")
        said = world.platform.say("#1 slow", chat="ana")
        return [Saying(number=1, chat="ana", ref=said.ref)]

    assert breaches(story) == []
    assert len(asked) > 1


def test_an_answer_that_grew_where_it_was_first_asked_is_said_there_once() -> None:
    sayings: list[Saying] = []
    ana, desk = frozenset({"ana"}), frozenset({"desk"})

    async def story(world: World) -> list[Saying]:
        def say(text: str, chat: str) -> None:
            said = world.platform.say(text, chat=chat)
            beside = desk if chat == "ana" else ana
            sayings.extend(
                Saying(number=number, chat=chat, ref=said.ref, beside=beside) for number in numbers_in(text)
            )

        def go_on(outgoing: Outgoing) -> None:
            piece = outgoing.piece
            assert isinstance(piece, TextPiece)
            if piece.text == "Answer to #1":
                say("/attach 1", "ana")
            elif "now part of" in piece.text:
                say("#2 slow broken", "ana")
            elif piece.text.endswith(GROWING) and len(sayings) == 2:
                say("!steer #3", "desk")

        world.let_in("ana")
        world.platform.before_send = go_on
        world.start("node")
        say("#1", "desk")
        return sayings

    assert breaches(story) == []
    assert [saying.number for saying in sayings] == [1, 2, 3]
