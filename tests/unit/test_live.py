"""What is being said reaches whoever watches, and nobody else."""

from keryx.live import WAITING_MAX, Delta, Live


def delta(number: int, session_id: str = "s") -> Delta:
    return Delta(session_id=session_id, turn_id=1, after=1, kind="text", offset=number, text="x")


async def test_watchers_of_a_session_get_its_deltas() -> None:
    live = Live()
    live.publish(delta(0))
    async with live.watch("s") as one, live.watch("s") as other:
        live.publish(delta(1))
        live.publish(delta(2, "elsewhere"))
        assert [one.get_nowait(), other.get_nowait()] == [delta(1), delta(1)]
        assert one.empty()


async def test_a_slow_watcher_misses_the_oldest_deltas() -> None:
    live = Live()
    async with live.watch("s") as queue:
        for number in range(WAITING_MAX + 1):
            live.publish(delta(number))
        assert queue.qsize() == WAITING_MAX
        assert queue.get_nowait() == delta(1)
