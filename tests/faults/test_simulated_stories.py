"""Stories that random histories told first: each is played in a simulated world, and every promise is judged."""

from keryx.platforms.adapter import Outgoing
from keryx.testing.platform import Trouble
from keryx.testing.simulator.books import Saying
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
