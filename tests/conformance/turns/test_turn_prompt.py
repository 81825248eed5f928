"""The system prompt and tools of a turn are stored word for word, each content once."""

from hashlib import sha256

import pytest

from keryx.clock import DAY
from keryx.core.conversations.rules.session import SessionId
from keryx.core.media import tables as blobs
from keryx.core.media.transactions import collect_blobs
from keryx.core.turns.transactions.record_step import record_prompt
from keryx.core.turns.views.turn import TurnPrompt, show_prompt
from keryx.core.upkeep.transactions.purge_session import purge_session
from keryx.errors import NotFound
from keryx.store.database import Database
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

TOOLS = "[]"


@pytest.fixture
async def stage(database: Database, clock: FakeClock) -> Stage:
    stage = Stage(database=database, clock=clock)
    await stage.meet("ana")
    return stage


async def run(stage: Stage, prompt: str, *models: str) -> SessionId:
    """Let a turn ask these models, one after the other, and return its session."""
    session_id = (await stage.accept("one", ref=stage.ids.token())).session_id
    begun = await stage.begin()
    for model in models or ("m",):
        await stage.do(
            lambda tx, model=model: record_prompt(  # type: ignore[misc]
                tx, begun.held, model=model, prompt=prompt, tools=TOOLS
            )
        )
    await stage.finish(begun, "Hello")
    return session_id


async def test_a_turn_records_its_last_model_and_the_exact_texts(stage: Stage) -> None:
    prompt = "Be brief.\x00\ud800"
    await run(stage, prompt, "small", "m\x00")
    ((turn_id, person_id),) = await stage.rows("SELECT id, person_id FROM turns")
    kept = await stage.look(lambda tx: show_prompt(tx, int(str(turn_id)), person_id=int(str(person_id))))
    assert kept == TurnPrompt(model="m\ufffd", prompt=prompt, tools=TOOLS)
    with pytest.raises(NotFound):
        await stage.look(lambda tx: show_prompt(tx, int(str(turn_id)), person_id=999))
    ((digest,),) = await stage.rows("SELECT prompt_hash FROM turns")
    assert digest == sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()


async def test_a_turn_without_a_model_request_has_no_prompt(stage: Stage) -> None:
    await stage.accept("one")
    begun = await stage.begin()
    ((person_id,),) = await stage.rows("SELECT person_id FROM turns")
    assert await stage.look(lambda tx: show_prompt(tx, begun.turn_id, person_id=int(str(person_id)))) is None


async def test_a_text_is_stored_once_and_kept_while_its_session_exists(stage: Stage) -> None:
    for prompt in ("Be brief.", "Be brief.", "Be long."):
        session_id = await run(stage, prompt)
        stage.clock.advance(2 * DAY)
        assert await stage.do(collect_blobs) == []
    assert await stage.rows("SELECT COUNT(*), COUNT(data) FROM blobs") == [(3, 3)]
    (person_id,) = (await stage.rows("SELECT owner_id FROM sessions"))[0]
    await stage.do(lambda tx: purge_session(tx, session_id, person_id=int(str(person_id))))
    stage.clock.advance(2 * DAY)
    assert len(await stage.do(collect_blobs)) == 3


async def test_an_unused_text_that_is_stored_again_is_not_collected(stage: Stage) -> None:
    digest = sha256(TOOLS.encode()).hexdigest()
    size = len(TOOLS)
    await stage.do(
        lambda tx: blobs.add_blob(
            tx, hash=digest, media_type="application/json", size_bytes=size, data=TOOLS.encode()
        )
    )
    stage.clock.advance(DAY - 1)
    await run(stage, "Be brief.")
    ((created_at,),) = await stage.rows(f"SELECT created_at FROM blobs WHERE hash = '{digest}'")
    assert created_at == stage.clock.now(), "a concurrent collection keeps it"
