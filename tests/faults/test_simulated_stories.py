"""Stories that random histories found: each is played in a simulated world, and all promises are checked."""

from keryx.core.deliveries.rules.pieces import TextPiece
from keryx.gateway.deliveries import PREVIEW_SUFFIX
from keryx.platforms.adapter import Outgoing
from keryx.testing.platform import PlatformFault
from keryx.testing.simulator.records import SentMessage
from keryx.testing.simulator.script import numbers_in
from keryx.testing.simulator.simulation import Simulation, Story
from keryx.testing.simulator.world import World


def breaches(story: Story) -> list[str]:
    """Play a story in memory and return its breaches."""
    simulation = Simulation()
    try:
        return simulation.play(story).breaches
    finally:
        simulation.close()


def test_a_new_connection_still_obeys_the_platform_s_rate_limit() -> None:
    asked: list[str] = []

    async def story(world: World) -> list[SentMessage]:
        def cut_at_the_first(outgoing: Outgoing) -> PlatformFault | None:
            asked.append(outgoing.key)
            if len(asked) > 1:
                return None
            world.platform.cut()
            return "limit"

        world.let_in("ana")
        world.platform.before_send = cut_at_the_first
        world.start("node")
        said = world.platform.say("#1 slow", chat="ana")
        return [SentMessage(number=1, chat="ana", ref=said.ref)]

    assert breaches(story) == []
    assert len(asked) > 1


def test_an_answer_with_a_preview_in_the_asking_chat_is_sent_there_once() -> None:
    sent: list[SentMessage] = []
    ana, desk = frozenset({"ana"}), frozenset({"desk"})

    async def story(world: World) -> list[SentMessage]:
        def say(text: str, chat: str) -> None:
            said = world.platform.say(text, chat=chat)
            beside = desk if chat == "ana" else ana
            sent.extend(
                SentMessage(number=number, chat=chat, ref=said.ref, beside=beside)
                for number in numbers_in(text)
            )

        def go_on(outgoing: Outgoing) -> None:
            piece = outgoing.piece
            assert isinstance(piece, TextPiece)
            if piece.text == "Answer to #1":
                say("/attach 1", "ana")
            elif "now part of" in piece.text:
                say("#2 slow broken", "ana")
            elif piece.text.endswith(PREVIEW_SUFFIX) and len(sent) == 2:
                say("!steer #3", "desk")

        world.let_in("ana")
        world.platform.before_send = go_on
        world.start("node")
        say("#1", "desk")
        return sent

    assert breaches(story) == []
    assert [message.number for message in sent] == [1, 2, 3]
