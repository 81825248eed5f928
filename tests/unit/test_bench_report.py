"""What a measuring run says at its end."""

from bench.report import Row, below, verdict


def test_a_run_counts_its_targets_and_names_those_it_missed() -> None:
    held, missed, unknown = (below(1.0, "seconds", value) for value in (0.5, 2.0, None))
    rows = [
        Row(measure="start", unit="seconds", figures={}, checks=(held, unknown)),
        Row(measure="stop", unit="seconds", figures={}, checks=(missed,)),
    ]
    assert verdict(rows) == "Targets: 1 held, 1 not judged, 1 MISSED: stop (≤ 1 s)"
    assert verdict(rows[:1]) == "Targets: 1 held, 1 not judged, 0 MISSED"
