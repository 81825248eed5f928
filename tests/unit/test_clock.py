"""The machine's clock."""

from pathlib import Path

from keryx.clock import DAY, SystemClock, read_boot_id


def test_the_machines_clocks_go_forward() -> None:
    clock = SystemClock()
    first, second = clock.now(), clock.now()
    assert first <= second
    assert clock.monotonic() <= clock.monotonic()
    assert 50 * 365 * DAY < first < 200 * 365 * DAY


def test_the_same_boot_has_the_same_id() -> None:
    assert SystemClock().boot_id() == SystemClock().boot_id() != ""


def test_a_boot_without_a_kernel_id_is_identified_by_its_minute(tmp_path: Path) -> None:
    assert read_boot_id(tmp_path / "missing").startswith("minute-")
