"""One torture run: set-up, load, faults, settling, and the checks."""

import asyncio
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Final

from keryx.core.deliveries.views.message_fates import count_unsettled, list_fates
from keryx.core.turns.rules.inbox import Fate
from keryx.core.upkeep.views.invariants import check_invariants
from keryx.errors import KeryxError
from keryx.platforms.webhook.wire import PLATFORM
from keryx.testing.torture.checks import Evidence, check_all
from keryx.testing.torture.double import until
from keryx.testing.torture.faults import Faults
from keryx.testing.torture.options import LEASE_SECONDS, Options
from keryx.testing.torture.report import Measured, Report
from keryx.testing.torture.setup import TortureSetup, set_up

DRAIN_SECONDS: Final = LEASE_SECONDS + 60.0
"""The time limit for all answers after the last fault."""
LOOK_SECONDS: Final = 0.2
STARTED: Final = "gateways start and conversations continue"


async def torture(options: Options, *, tell: Callable[[str], None]) -> Report:
    """Run in a temporary folder; delete the folder if all promises held, else name it in the report."""
    folder = Path(tempfile.mkdtemp(prefix="keryx-torture-"))
    began_at = time.monotonic()
    try:
        async with set_up(options, folder) as setup:
            faults = Faults(setup, options, tell)
            await _carry_out(setup, faults, options, tell)
            evidence = await _gather(setup, faults)
    except (KeryxError, asyncio.CancelledError):
        # The run failed, or a person ended it: there is nothing to check.
        shutil.rmtree(folder, ignore_errors=True)
        raise
    report = Report(
        seed=options.seed,
        where=options.where,
        seconds=time.monotonic() - began_at,
        messages=len(setup.records.messages),
        chats=options.chats,
        tried=faults.tried,
        measured={what: Measured(seconds=tuple(times)) for what, times in faults.seconds.items()},
        counts=setup.records.counts,
        fates=Counter(fate for _, fate in evidence.fates),
        breaches={**check_all(evidence), STARTED: faults.breaches},
    )
    return clear_away(folder, evidence, report)


async def _carry_out(
    setup: TortureSetup, faults: Faults, options: Options, tell: Callable[[str], None]
) -> None:
    await faults.start_all()
    tell(f"{options.where} started; {options.chats} chats begin to speak")
    setup.load.start()
    await faults.run()
    records = setup.records
    await until(lambda: len(records.messages) >= options.messages, seconds=DRAIN_SECONDS + options.messages)
    tell(f"{len(records.messages)} messages sent; waiting until all work has ended")
    setup.double.stop_faults()
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            await setup.load.end()
            await setup.double.wait_for_repeats()
            while await setup.read(lambda tx: count_unsettled(tx, platform=PLATFORM)):
                await setup.database.changed(since=setup.database.change_no, timeout_seconds=LOOK_SECONDS)
    except TimeoutError:
        tell(f"not all work ended within {DRAIN_SECONDS:.0f} s")


async def _gather(setup: TortureSetup, faults: Faults) -> Evidence:
    codes = await asyncio.gather(*(node.terminate() for node in setup.nodes))
    fates: list[tuple[str, Fate | None]] = []
    after = 0
    while page := await setup.read(partial(list_fates, platform=PLATFORM, after=after)):
        fates += [(item.ref, item.fate) for item in page]
        after = page[-1].id
    found = await setup.read(check_invariants)
    return Evidence(
        records=setup.records,
        effects=setup.effect_log.read(),
        fates=fates,
        thaws=faults.thaws,
        invariants=[f"{breach.rule} in {breach.session_id}: {breach.what}" for breach in found],
        ends=dict(zip((node.name for node in setup.nodes), codes, strict=True)),
    )


def clear_away(folder: Path, evidence: Evidence, report: Report) -> Report:
    """Delete the folder if all promises held; else write the records into it and name it in the report."""
    if report.held:
        shutil.rmtree(folder, ignore_errors=True)
        return report
    records = evidence.records
    written = {
        "asked": [
            {**asdict(each), "taken_at": records.accepted.get(each.id)} for each in records.messages.values()
        ],
        "shown": [asdict(each) for each in records.shown],
        "fates": evidence.fates,
        "thaws": [asdict(each) for each in evidence.thaws],
    }
    report = replace(report, folder=folder)
    (folder / "records.json").write_text(json.dumps(written, indent=1), encoding="utf-8")
    (folder / "report.json").write_text(report.to_json(), encoding="utf-8")
    return report
