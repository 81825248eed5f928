"""Notes: kept once, edited and forgotten without loss, undone, and never shown to other audiences."""

import asyncio
from functools import partial

import pytest

from keryx.clock import HOUR
from keryx.core.context.tables import memories
from keryx.core.context.transactions.manage_memory import (
    MEMORY_LENGTH_MAX,
    NoteKept,
    edit_memory,
    forget,
    remember,
    undo_memory,
)
from keryx.core.context.views.prompt_facts import find_memories, show_context
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.source import Source
from keryx.errors import InvalidValue, NotFound
from keryx.store.database import Database
from keryx.testing.builders import dm, group
from keryx.testing.clock import FakeClock
from tests.conformance.stage import Stage

pytestmark = pytest.mark.anyio


class Chat:
    """A session of Ana, and its notes."""

    def __init__(self, stage: Stage, session_id: SessionId, person_id: int, source: Source) -> None:
        self.stage = stage
        self.session_id = session_id
        self.person_id = person_id
        self.source = source

    async def keep(self, text: str) -> NoteKept:
        return await self.stage.do(lambda tx: remember(tx, self.session_id, text, person_id=self.person_id))

    async def edit(self, memory_id: int, text: str) -> NoteKept:
        return await self.stage.do(
            lambda tx: edit_memory(tx, self.session_id, memory_id, text, person_id=self.person_id)
        )

    async def forget(self, memory_id: int, *, forgotten: bool = True) -> bool:
        return await self.stage.do(
            lambda tx: forget(tx, memory_id, person_id=self.person_id, forgotten=forgotten)
        )

    async def undo(self) -> str | None:
        undone = await self.stage.do(lambda tx: undo_memory(tx, self.session_id, person_id=self.person_id))
        return None if undone is None else undone.kind

    async def kept(self) -> list[str]:
        audience_id = (await self.stage.session(self.session_id)).audience_id
        found = await self.stage.look(
            lambda tx: memories.list_memories(tx, audience_id=audience_id, limit=100)
        )
        return [memory.text for memory in reversed(found)]

    async def says(self, text: str) -> str:
        """Return what is said back to a command."""
        await self.stage.accept(text, source=self.source, ref=self.stage.ids.token())
        return (await self.stage.said())[-1][1]


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage(database=database, clock=clock)


@pytest.fixture
async def chat(stage: Stage) -> Chat:
    ana = await stage.meet("ana")
    return Chat(stage, await stage.exchange("I like figs"), ana.id, dm())


async def test_the_same_note_is_kept_once(chat: Chat) -> None:
    first = await chat.keep("Likes figs")
    assert first.is_new
    assert await chat.keep("  likes  FIGS. ") == NoteKept(memory_id=first.memory_id, is_new=False)
    assert await chat.kept() == ["Likes figs"]
    await chat.forget(first.memory_id)
    again = await chat.keep("Likes figs")
    assert again.is_new
    assert again.memory_id != first.memory_id


async def test_of_several_people_who_keep_the_same_note_at_once_one_does(chat: Chat) -> None:
    work = partial(remember, session_id=chat.session_id, text="Likes figs", person_id=chat.person_id)
    kept = await asyncio.gather(*(chat.stage.database.write(work) for _ in range(6)))
    assert [each.is_new for each in kept].count(True) == 1
    assert len({each.memory_id for each in kept}) == 1


async def test_a_note_without_words_or_too_long_is_refused(chat: Chat) -> None:
    for text in (" ", "x" * (MEMORY_LENGTH_MAX + 1)):
        with pytest.raises(InvalidValue, match="a memory of"):
            await chat.keep(text)


async def test_an_edit_is_a_new_note_and_keeps_authors_and_times(chat: Chat) -> None:
    old = await chat.keep("Lives in Rome")
    chat.stage.clock.advance(HOUR)
    new = await chat.edit(old.memory_id, "Lives in Oslo")
    assert await chat.kept() == ["Lives in Oslo"]
    note = await chat.stage.look(lambda tx: memories.get_memory(tx, new.memory_id, person_id=chat.person_id))
    before = await chat.stage.look(
        lambda tx: memories.get_memory(tx, old.memory_id, person_id=chat.person_id)
    )
    assert (note.replaces_id, note.author_id, note.session_id) == (before.id, chat.person_id, chat.session_id)
    assert (before.text, before.seq, before.forgotten_at) == ("Lives in Rome", 2, note.created_at)
    assert before.created_at == note.created_at - HOUR
    assert await chat.edit(new.memory_id, "Lives in Oslo") == NoteKept(memory_id=new.memory_id, is_new=False)
    assert (await chat.edit(new.memory_id, "lives in oslo")).is_new


async def test_an_edit_makes_no_duplicate_and_restores_nothing(chat: Chat) -> None:
    figs, tea = await chat.keep("Likes figs"), await chat.keep("Likes tea")
    with pytest.raises(InvalidValue, match=f"Note {figs.memory_id} says that already"):
        await chat.edit(tea.memory_id, "likes figs")
    await chat.forget(tea.memory_id)
    with pytest.raises(InvalidValue, match=f"/memory restore {tea.memory_id} brings it back"):
        await chat.edit(tea.memory_id, "Likes milk")
    assert await chat.kept() == ["Likes figs"]


async def test_a_note_can_be_forgotten_and_restored(chat: Chat) -> None:
    kept = await chat.keep("Likes figs")
    assert await chat.forget(kept.memory_id)
    assert not await chat.forget(kept.memory_id)
    assert await chat.kept() == []
    again = await chat.keep("Likes figs")
    with pytest.raises(InvalidValue, match=f"Note {again.memory_id} says that already"):
        await chat.forget(kept.memory_id, forgotten=False)
    await chat.forget(again.memory_id)
    assert await chat.forget(kept.memory_id, forgotten=False)
    assert not await chat.forget(kept.memory_id, forgotten=False)
    assert await chat.kept() == ["Likes figs"]


async def test_every_change_is_undone_the_last_one_first(chat: Chat) -> None:
    states: list[list[str]] = [await chat.kept()]

    async def note() -> None:
        states.append(await chat.kept())

    figs = await chat.keep("Likes figs")
    await note()
    tea = await chat.keep("Likes tea")
    await note()
    milk = await chat.edit(tea.memory_id, "Likes milk")
    await note()
    await chat.forget(figs.memory_id)
    await note()
    await chat.keep("likes FIGS")
    await note()
    await chat.forget(milk.memory_id)
    await note()
    await chat.forget(tea.memory_id, forgotten=False)
    await note()
    kinds = []
    while len(states) > 1:
        assert await chat.kept() == states.pop()
        kinds.append(await chat.undo())
    assert kinds == ["restored", "forgotten", "kept", "forgotten", "edited", "kept", "kept"]
    assert await chat.kept() == states.pop() == []
    assert await chat.undo() is None


async def test_nobody_sees_changes_or_undoes_the_notes_of_others(chat: Chat) -> None:
    stage = chat.stage
    ben = await stage.meet("ben")
    other = Chat(stage, await stage.exchange("hi", source=dm("ben")), ben.id, dm("ben"))
    kept = await chat.keep("Likes figs")
    with pytest.raises(NotFound, match="no note"):
        await other.forget(kept.memory_id)
    with pytest.raises(NotFound, match="no note"):
        await other.edit(kept.memory_id, "Likes pigs")
    with pytest.raises(NotFound):
        await stage.do(lambda tx: remember(tx, chat.session_id, "Likes pigs", person_id=ben.id))
    assert await other.undo() is None
    assert await other.says(f"/memory {kept.memory_id}") == (
        f"There is no note {kept.memory_id} that you may see."
    )
    assert (await other.keep("likes figs")).is_new, "the same note of two people is two notes"
    assert await chat.kept() == ["Likes figs"]


async def test_notes_of_a_group_are_changed_only_in_the_group(chat: Chat) -> None:
    stage = chat.stage
    family = Chat(stage, await stage.exchange("hi", source=group()), chat.person_id, group())
    kept, own = await family.keep("Meets on Sunday"), await chat.keep("Likes figs")
    assert await chat.says("/memory") == f"{own.memory_id}. Likes figs"
    assert await family.says("/memory") == f"{kept.memory_id}. Meets on Sunday"
    for text in (f"/memory {kept.memory_id}", f"/memory forget {kept.memory_id}"):
        assert await chat.says(text) == f"There is no note {kept.memory_id} that you may see here."
    assert await family.says(f"/memory edit {own.memory_id} x") == (
        f"There is no note {own.memory_id} that you may see here."
    )
    for each, notes in ((chat, ("Likes figs",)), (family, ("Meets on Sunday",))):
        facts = await stage.look(
            lambda tx, each=each: show_context(tx, each.session_id, person_id=each.person_id)  # type: ignore[misc]
        )
        assert facts.memories == notes
        found = await stage.look(
            lambda tx, each=each: find_memories(  # type: ignore[misc]
                tx, each.session_id, person_id=each.person_id, words="likes figs meets sunday", limit=9
            )
        )
        assert tuple(note.text for note in found) == notes


async def test_the_command_shows_edits_forgets_and_undoes(chat: Chat) -> None:
    number = (await chat.keep("Lives in Rome")).memory_id
    chat.stage.clock.advance(HOUR)
    assert await chat.says("/memory") == f"{number}. Lives in Rome"
    assert await chat.says(f"/memory {number}") == (
        f"{number}. Lives in Rome\nKept 1 h ago by Ana, in {chat.session_id}, at message 2."
    )
    new = number + 1
    assert await chat.says(f"/memory edit {number} Lives in\nOslo") == (
        f"Kept as note {new}. /memory undo takes it back."
    )
    assert await chat.says("/memory oslo") == f"{new}. Lives in\nOslo"
    assert (await chat.says(f"/memory {new}")).splitlines()[-1] == f"It replaced {number}: Lives in Rome"
    assert (await chat.says(f"/memory {number}")).splitlines()[-1] == (
        f"Forgotten less than a minute ago; /memory restore {number} brings it back."
    )
    assert await chat.says(f"/memory forget {new}") == (
        f"Note {new} is forgotten. /memory undo takes it back."
    )
    assert await chat.says(f"/memory forget {new}") == f"Note {new} is forgotten already."
    assert await chat.says("/memory") == "Nothing is remembered yet. Ask the agent to remember something."
    assert await chat.says("/memory undo") == f"Note {new} is kept again: Lives in Oslo"
    assert await chat.says(f"/memory restore {new}") == f"Note {new} is kept already."
    assert await chat.says("/memory undo") == f"Note {number} is as it was before it was edited."
    assert await chat.says("/memory undo") == f"Note {number} is no longer kept: Lives in Rome"
    assert await chat.says("/memory undo") == "There is nothing to take back."
    assert await chat.says(f"/memory restore {number}") == (
        f"Note {number} is kept again. /memory undo takes it back."
    )
    assert await chat.says("/memory UNDO") == f"Note {number} is forgotten again: Lives in Rome"


async def test_an_invalid_change_changes_nothing_and_is_explained(chat: Chat) -> None:
    await chat.keep("Likes figs")
    wrong = ("edit", "edit 1", "edit one two", "forget", "forget me not", "forget 1 2", "undo 1", "restore")
    for each in wrong:
        assert "/memory edit <number> <text>" in await chat.says(f"/memory {each}")
    assert await chat.kept() == ["Likes figs"]


async def test_words_that_only_begin_like_a_change_are_searched(chat: Chat) -> None:
    kept = await chat.keep("Editing films")
    assert await chat.says("/memory editing") == f"{kept.memory_id}. Editing films"


async def test_an_old_note_is_recalled_by_the_last_message(chat: Chat) -> None:
    await chat.keep("Is allergic to nuts")
    for number in range(30):
        await chat.keep(f"Saw film {number}")

    async def told() -> tuple[str, ...]:
        facts = await chat.stage.look(lambda tx: show_context(tx, chat.session_id, person_id=chat.person_id))
        return facts.memories

    before = await told()
    assert before == await told()
    assert "Is allergic to nuts" not in before
    await chat.stage.exchange("May I eat a nut?", "no")
    after = await told()
    assert after[0] == "Is allergic to nuts"
    assert after[1:] == before[1:]
