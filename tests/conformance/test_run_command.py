"""Every command does what its help says, and shows only what the chat may see."""

from dataclasses import replace

import pytest

from keryx.clock import HOUR, MINUTE
from keryx.commands.table import COMMANDS
from keryx.config import Answering, Settings
from keryx.core.approvals.rules.approval import APPROVAL_LIFETIME
from keryx.core.context.rules.usage import ESTIMATED
from keryx.core.context.transactions.manage_memory import remember
from keryx.core.context.views.prompt_facts import show_context
from keryx.core.conversations.rules.command import ParsedCommand
from keryx.core.conversations.rules.session import SessionId
from keryx.core.conversations.rules.session_key import SessionKey
from keryx.core.conversations.rules.session_settings import Personality
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.core.conversations.tables import branches, session_keys
from keryx.core.conversations.transactions.change_session import pin
from keryx.core.conversations.transactions.command_context import CommandContext, CommandOutcome, NeedsAnswer
from keryx.core.conversations.transactions.manage_project import archive_project
from keryx.core.deliveries.rules.delivery import NextDelivery
from keryx.core.deliveries.tables import home_channels, outbox
from keryx.core.people.rules.access import Grant
from keryx.core.people.rules.person import Person
from keryx.core.people.tables import access, people
from keryx.core.people.transactions.pair_stranger import IssuedCode, offer_pairing
from keryx.core.processes import tables as processes
from keryx.core.processes.rules import NoticePolicy
from keryx.core.turns.tables import leases, turns
from keryx.core.turns.transactions.flush_session import give_way
from keryx.ids import Ids
from keryx.store.database import Database, Tx
from keryx.testing.clock import FakeClock
from tests.conformance.talk import FAMILY, PHONE, Talk

CLI_KEY = SessionKey("agent:main:local:dm:cli")
PHONE_KEY = SessionKey("agent:main:telegram:dm:7")
FAMILY_KEY = SessionKey("agent:main:telegram:group:-1")


class Chat:
    """A chat in which a person gives commands."""

    def __init__(self, talk: Talk, person: Person, key: SessionKey, source: Source) -> None:
        self.talk = talk
        self.person = person
        self.key = key
        self.source = source
        self.settings = Settings()

    async def run(self, text: str) -> CommandOutcome:
        parsed = COMMANDS.parse(text)
        assert isinstance(parsed, ParsedCommand)

        def work(tx: Tx) -> CommandOutcome:
            current = session_keys.find_key(tx, self.key)
            assert current is not None
            context = CommandContext(
                session_id=SessionId(current.session_id),
                key=self.key,
                person=self.person,
                source=self.source,
                settings=self.settings,
                ids=self.talk.ids,
                commands=COMMANDS,
                give_way=give_way,
            )
            return COMMANDS.run(tx, parsed, context=context)

        return await self.talk.database.write(work)

    async def reply(self, text: str) -> str:
        outcome = await self.run(text)
        assert outcome.needs_answer is None
        assert outcome.reply is not None
        return outcome.reply


@pytest.fixture
async def talk(database: Database, ids: Ids) -> Talk:
    return await Talk.begin(database, ids)


@pytest.fixture
async def chat(talk: Talk) -> Chat:
    """The owner's terminal, after one exchange."""
    await talk.session("Figs for dinner", "With ham", key=CLI_KEY)
    return Chat(talk, talk.owner, CLI_KEY, LOCAL_CLI)


@pytest.fixture
async def family(talk: Talk) -> Chat:
    """A group in which Ben, a member, gives commands."""
    session_id = await talk.session("Hello all", "Hello", key=FAMILY_KEY, source=FAMILY)
    ben = await talk.stranger()
    audience_id = (await talk.record(session_id)).audience_id
    await talk.database.write(lambda tx: people.join_audience(tx, person_id=ben.id, audience_id=audience_id))
    return Chat(talk, ben, FAMILY_KEY, FAMILY)


async def shown(chat: Chat) -> SessionId:
    record = await chat.talk.database.read(lambda tx: session_keys.find_key(tx, chat.key))
    assert record is not None
    return SessionId(record.session_id)


async def test_every_command_of_the_table_replies(chat: Chat) -> None:
    for command in COMMANDS.commands:
        outcome = await chat.run(f"/{command.name}")
        begins_turn = command.name in ("retry", "compress")
        assert outcome.reply or outcome.needs_answer or begins_turn, command.name


async def test_a_command_refuses_arguments_that_it_does_not_take(chat: Chat) -> None:
    first = await shown(chat)
    outcome = await chat.run("/new about the roof")
    told = "/new takes no arguments. Send it alone, and the rest as a separate message."
    assert (outcome.reply, outcome.is_declined) == (told, True)
    assert await shown(chat) == first
    # /stop ignores its arguments.
    assert await chat.reply("/stop please") == "Nothing is running here."


async def test_new_and_resume_switch_between_sessions(chat: Chat) -> None:
    first = await shown(chat)
    assert await chat.reply("/new") == "Fresh conversation. /resume brings the last one back."
    assert await shown(chat) != first
    outcome = await chat.run("/resume")
    assert outcome.reply == "Going on with 'Figs for dinner'."
    assert outcome.session_id == first == await shown(chat)
    assert await chat.reply("/resume") == "There is no other conversation to go on with."


async def test_sessions_are_listed_with_the_numbers_resume_takes(chat: Chat, clock: FakeClock) -> None:
    first = await shown(chat)
    clock.advance(2 * HOUR)
    other = await chat.talk.session("Rome trip", "Nice")
    pinned = await chat.talk.session("Pinned one")
    await chat.talk.database.write(lambda tx: pin(tx, pinned, person_id=chat.person.id))
    assert (await chat.reply("/sessions")).splitlines() == [
        "1. * Pinned one (1 message, less than a minute ago)",
        "2. Rome trip (2 messages, less than a minute ago)",
        "3. → Figs for dinner (2 messages, 2 h ago)",
        "/resume <number> goes on with one.",
    ]
    assert (await chat.run("/resume 2")).session_id == other
    assert (
        await chat.reply("/resume 9")
        == "There is no number 9. /sessions lists the conversations with their numbers."
    )
    assert (await chat.reply(f"/resume {'9' * 5_000}")).startswith("There is no conversation called '999")
    assert (await chat.run(f"/resume {first}")).session_id == first
    assert (await chat.run("/resume rome TRIP")).session_id == other
    assert (await chat.run("/resume figs")).session_id == first
    assert (await chat.run("/resume trip")).session_id == other
    assert (
        await chat.reply("/resume oslo")
        == "There is no conversation called 'oslo' here. /sessions lists them."
    )
    again = await chat.talk.session("Rome trip")
    answer = await chat.reply("/resume rome trip")
    assert answer.startswith("Several conversations are called so")
    assert again in answer
    assert other in answer


async def test_an_empty_list_gets_a_reply(talk: Talk) -> None:
    await talk.session(key=CLI_KEY)
    chat = Chat(talk, talk.owner, CLI_KEY, LOCAL_CLI)
    assert await chat.reply("/sessions") == "There are no conversations yet. Write something to start one."


async def test_a_group_sees_nothing_of_private_conversations(chat: Chat, family: Chat) -> None:
    answer = await family.reply("/sessions")
    assert "Figs" not in answer
    assert "Hello all" in answer
    private = await shown(chat)
    assert "There is no conversation called" in await family.reply(f"/resume {private}")
    in_group = Chat(chat.talk, chat.talk.owner, FAMILY_KEY, FAMILY)
    assert "There is no conversation called" in await in_group.reply("/resume figs")


async def test_attach_and_detach(chat: Chat) -> None:
    phone_id = await chat.talk.session("On the phone", key=PHONE_KEY, source=PHONE)
    assert await chat.reply("/attach") == "Say which: /attach <number, name or id>. /sessions lists them."
    assert "There is no conversation called" in await chat.reply("/attach nothing")
    assert (await chat.reply("/detach")).startswith("No other chat shows this conversation")
    assert await chat.reply("/attach on the") == "This chat is now part of 'On the phone'. /detach ends that."
    assert await shown(chat) == phone_id
    assert await chat.reply("/attach on the") == "This chat is part of that conversation already."
    assert "Shown in 2 chats." in await chat.reply("/status")
    assert (
        await chat.reply("/attach figs")
        == "That conversation is not open anywhere. /resume goes on with it here."
    )
    assert await chat.reply("/detach") == "This chat has left the conversation and has a fresh one."
    assert await shown(chat) != phone_id


async def test_fork_continues_in_a_new_conversation(chat: Chat) -> None:
    first = await shown(chat)
    outcome = await chat.run("/fork")
    assert outcome.reply == "This is a fork now; /resume brings back where it came from."
    assert outcome.session_id == await shown(chat) != first
    assert await chat.talk.texts(outcome.session_id) == ["Figs for dinner", "With ham"]
    fresh = (await chat.run("/new")).session_id
    assert await chat.reply("/fork") == "Nothing was said here yet, so there is nothing to fork."
    assert await shown(chat) == fresh


async def test_undo_and_redo(chat: Chat) -> None:
    await chat.talk.say(await shown(chat), "And wine?", "Red")
    assert await chat.reply("/undo") == "Took back the last turn; 2 messages are left. /redo brings it back."
    assert await chat.reply("/redo") == "Back again: 4 messages."
    assert await chat.reply("/undo 5") == (
        "There are only 2 turns to take back: write /undo 2 for all of them."
    )
    await chat.reply("/undo")
    assert await chat.reply("/undo 2") == "There is only one turn to take back: write /undo."
    assert await chat.reply("/redo") == "Back again: 4 messages."
    assert (
        await chat.reply("/undo 2")
        == "Took back the last 2 turns; 0 messages are left. /redo brings it back."
    )
    assert await chat.reply("/undo") == "There is nothing here to take back."
    assert "give a number of turns" in await chat.reply("/undo many")
    await chat.run("/new")
    assert await chat.reply("/redo") == "Nothing was taken back here."
    assert await chat.reply("/retry") == "There is nothing to answer again."


async def test_retry_has_the_message_answered_again_without_a_reply(chat: Chat) -> None:
    session_id = await shown(chat)
    outcome = await chat.run("/retry")
    assert (outcome.reply, outcome.needs_answer) == (None, None)
    await chat.talk.answer(session_id, "With cheese")
    assert await chat.talk.texts(session_id) == ["Figs for dinner", "With cheese"]


async def test_commands_that_need_more_than_the_store_wait_for_the_surface(chat: Chat) -> None:
    for text, wanted in {
        "/search figs": NeedsAnswer(kind="search", argument="figs"),
        "/platforms": NeedsAnswer(kind="platforms", argument=""),
        "/compress Preview": NeedsAnswer(kind="compress", argument="Preview"),
    }.items():
        assert (await chat.run(text)).needs_answer == wanted
    assert await chat.reply("/search") == "Say what to look for: /search <words>."


async def test_stop_stops_the_running_turn(chat: Chat) -> None:
    session_id = await shown(chat)
    assert await chat.reply("/stop") == "Nothing is running here."
    await chat.talk.ask(session_id, "go", ref="1")
    begun = await chat.talk.turn(session_id)
    assert "A turn is running" in await chat.reply("/undo")
    assert "The agent is working." in await chat.reply("/status")
    assert "1 waiting for an answer." in await chat.reply("/status")
    assert await chat.reply("/stop") == "Stopping."
    turn = await chat.talk.database.read(lambda tx: turns.get_turn(tx, begun.turn_id))
    assert turn.stop_requested_at is not None


async def test_title(chat: Chat) -> None:
    assert await chat.reply("/title") == "This conversation is called 'Figs for dinner'."
    assert await chat.reply("/title  My   dinner") == "This conversation is now called 'My dinner'."
    await chat.run("/new")
    assert await chat.reply("/title") == "It has no title yet."


async def test_a_program_that_answers_has_its_own_models(chat: Chat) -> None:
    chat.settings = Settings(answering=Answering(default="a program", takes_models=False))
    told = "Answers here come from a program. It chooses its own models, so /model changes nothing."
    assert await chat.reply("/model openai:big-1") == told


async def test_model_and_personality(chat: Chat) -> None:
    session_id = await shown(chat)
    assert await chat.reply("/model") == (
        "Answers here come from the configured model. /model <provider:name> chooses another model, "
        "such as /model openai:gpt-5."
    )
    back = "/model none goes back to the configured model."
    assert await chat.reply("/model openai: big-1") == (
        f"From the next turn on, openai:big-1 answers here. {back}"
    )
    assert await chat.reply("/model") == f"The model here is openai:big-1. {back}"
    assert await chat.reply("/model opnai:big-1") == (
        "There is no provider 'opnai'. Did you mean openai or openai-chat or openai-codex?"
    )
    assert await chat.reply("/model gpt-5") == (
        "'gpt-5' names no model; write it as provider:name, such as openai:gpt-5."
    )
    assert await chat.reply("/model") == f"The model here is openai:big-1. {back}"
    assert await chat.reply("/model none") == "From the next turn on, the configured model answers here."
    assert (await chat.talk.record(session_id)).model is None


async def test_a_personality_is_chosen_from_those_configured(chat: Chat) -> None:
    session_id = await shown(chat)
    assert "None is configured" in await chat.reply("/personality")
    assert await chat.reply("/personality pirate") == (
        "There is no personality 'pirate'. None is configured: add some under `personalities` in the configuration."
    )
    texts = {"Pirate": "Arr", "poet": "In verse."}
    chat.settings = Settings(
        personalities={name: Personality(name=name, text=text) for name, text in texts.items()}
    )
    choice = "/personality <name> sets one of Pirate, poet; /personality none removes it."
    assert await chat.reply("/personality") == f"The agent has no personality here. {choice}"
    assert (
        await chat.reply("/personality pirate") == "From the next turn on, the agent speaks as Pirate here."
    )
    assert await chat.reply("/personality") == f"The agent speaks as Pirate here. {choice}"
    facts = await chat.talk.database.read(lambda tx: show_context(tx, session_id, person_id=chat.person.id))
    assert facts.personality == "Arr"
    assert await chat.reply("/personality piratte") == (
        f"There is no personality 'piratte'. Did you mean Pirate? {choice}"
    )
    assert (
        await chat.reply("/personality none") == "From the next turn on, the agent has no personality here."
    )
    assert (await chat.talk.record(session_id)).personality is None


async def test_project(chat: Chat) -> None:
    session_id = await shown(chat)
    assert (await chat.reply("/project")).startswith("This conversation is in no project of yours.")
    assert await chat.reply("/project  Rome  trip") == "This conversation is now in the project 'Rome trip'."
    assert await chat.reply("/project") == "This conversation is in the project 'Rome trip'."
    project_id = (await chat.talk.record(session_id)).project_id
    assert project_id is not None
    await chat.talk.database.write(lambda tx: archive_project(tx, project_id, person_id=chat.person.id))
    assert (await chat.reply("/project")).startswith("This conversation is in no project of yours.")
    await chat.reply("/project Rome trip")
    assert (await chat.talk.record(session_id)).project_id == project_id
    assert await chat.reply("/project none") == "This conversation is in no project now."
    assert "100 characters" in await chat.reply("/project " + "x" * 101)


async def test_memory_is_shown_to_its_audience(chat: Chat, family: Chat) -> None:
    session_id = await shown(chat)
    assert await chat.reply("/memory") == "Nothing is remembered yet. Ask the agent to remember something."

    def note(tx: Tx) -> None:
        for number in range(21):
            remember(tx, session_id, f"Fig {number}", person_id=chat.person.id)

    await chat.talk.database.write(note)
    answer = (await chat.reply("/memory")).splitlines()
    assert answer[0].endswith(". Fig 20")
    assert answer[-1] == "… and 1 more; name words to find them."
    found = (await chat.reply("/memory FIG 0")).splitlines()
    assert [line.partition(". ")[2] for line in found] == ["Fig 20", "Fig 10", "Fig 0"]
    assert await chat.reply("/memory plum") == "Nothing is remembered about that."
    misspelled = "Nothing is remembered about that. Did you mean /memory forget?"
    assert await chat.reply("/memory frget 2") == misspelled
    assert await family.reply("/memory") == "Nothing is remembered yet. Ask the agent to remember something."


async def test_usage(chat: Chat) -> None:
    assert await chat.reply("/usage") == (
        "This conversation (an unknown model): 4 tokens in (0 cached), 2 out, less than $0.0001.\n"
        "Tool calls in it: 0.\n"
        f"Today (an unknown model): 4 tokens in (0 cached), 2 out, less than $0.0001.\n{ESTIMATED}"
    )


async def test_status(chat: Chat, clock: FakeClock) -> None:
    session_id = await shown(chat)
    clock.advance(5 * MINUTE)
    assert await chat.reply("/status") == (
        f"Figs for dinner ({session_id})\n2 messages; last active 5 min ago.\nNothing is running."
    )
    await chat.run("/new")
    assert (await chat.reply("/status")).startswith("Untitled (")


async def test_why_shows_the_fate_of_the_last_message_and_its_answer(chat: Chat) -> None:
    session_id = await shown(chat)
    assert await chat.reply("/why") == "No message has come in yet.\nNo answer has gone out yet."
    await chat.talk.ask(session_id, "go", ref="1", source=PHONE)
    assert "waits for its turn." in await chat.reply("/why")
    await chat.talk.answer(session_id, "gone")
    assert "was answered (turn" in await chat.reply("/why")
    assert "waits to be sent on telegram." in await chat.reply("/why")
    await chat.talk.database.write(_fail_delivery)
    assert (
        "could not be sent on telegram after 2 attempts; it may have been shown twice: chat is gone."
        in await chat.reply("/why")
    )


def _fail_delivery(tx: Tx) -> None:
    for after in (
        NextDelivery(state="ready", due_at=tx.now, maybe_repeated=True, reason="no receipt"),
        NextDelivery(state="dead", reason="chat is gone"),
    ):
        [delivery] = outbox.list_due(tx, platform="telegram", account="", limit=10)
        assert outbox.claim(tx, delivery.id, holder="g", epoch=1)
        assert outbox.record(tx, outbox.get_delivery(tx, delivery.id), after)


async def test_why_shows_the_reset_by_which_a_conversation_began(chat: Chat) -> None:
    old = await shown(chat)
    await chat.run("/new")
    new = await shown(chat)
    await chat.talk.database.write(
        lambda tx: branches.add_link(tx, kind="reset", to_session_id=new, from_session_id=old)
    )
    assert f"began by a reset less than a minute ago; /resume {old} returns" in await chat.reply("/why")


async def test_processes(chat: Chat) -> None:
    session_id = await shown(chat)
    assert (await chat.reply("/processes")).startswith("This conversation has no background processes. ")

    def start(tx: Tx) -> None:
        first, second = [
            processes.add_process(
                tx,
                session_id=session_id,
                owner_id=chat.person.id,
                notice=NoticePolicy(),
                command=command,
                workspace=None,
                backend="local",
                host=None,
                folder=None,
                has_pty=0,
                pins_until_at=None,
            )
            for command in ("make  all", "sleep 9")
        ]
        assert second > first
        processes.end_process(tx, first, state="exited", exit_code=2, output_bytes=0)

    await chat.talk.database.write(start)
    lines = (await chat.reply("/processes")).splitlines()
    assert [line.split(". ", 1)[1] for line in lines] == [
        "sleep 9: running, less than a minute ago",
        "make all: exited with 2, less than a minute ago",
    ]


async def test_schedules_are_made_listed_and_ended(chat: Chat, family: Chat) -> None:
    assert (await chat.reply("/schedule")).startswith("Nothing is scheduled.")
    assert (await chat.reply("/schedule when")).startswith("/schedule takes list, add or remove.")
    assert (await chat.reply("/schedule add every 2h")).startswith(
        "Give the time and the task, with | between them. Write"
    )
    made = await chat.reply("/schedule add every 2h | look at the mail")
    number = made.removeprefix("Scheduled as number ").split(";")[0]
    assert made.endswith("UTC.")
    assert await chat.reply("/schedule add every 2h | look at the mail") == (
        "There is a schedule 'look at the mail' already; word the task differently."
    )
    assert "wrong number of fields" in await chat.reply("/schedule add never | x")
    assert (await chat.reply("/schedule list")).splitlines()[
        0
    ] == f"{number}. look at the mail: every 2h, next in 2 h"
    assert (
        await chat.reply("/schedule remove")
        == "Give the number: /schedule remove <number>. /schedule lists the numbers."
    )
    in_group = Chat(chat.talk, chat.talk.owner, FAMILY_KEY, FAMILY)
    assert (await in_group.reply("/schedule")).startswith("Nothing is scheduled.")
    assert (await in_group.reply("/schedule add @daily | say good night")).startswith("Scheduled")
    assert "say good night" in await in_group.reply("/schedule")
    assert await chat.reply(f"/schedule remove {number}") == "'look at the mail' will not run again."
    assert await chat.reply(f"/schedule remove {number}") == "'look at the mail' had ended already."
    assert "no schedule" in (await family.reply(f"/schedule remove {number}")).lower()


async def ask_approval(talk: Talk, session_id: SessionId, *, ref: str, question: str, person_id: int) -> int:
    await talk.ask(session_id, "do it", ref=ref)
    begun = await talk.turn(session_id)

    def wait(tx: Tx) -> int:
        row = tx.row(
            "approvals.add",
            session_id=session_id,
            turn_id=begun.turn_id,
            call_id=ref,
            person_id=person_id,
            question=question,
            covers=None,
            expires_at=tx.now + APPROVAL_LIFETIME,
        )
        assert row is not None
        turns.wait(tx, begun.turn_id)
        leases.release_lease(tx, begun.lease)
        return int(row[0])

    return await talk.database.write(wait)


async def test_approve_and_deny(chat: Chat, clock: FakeClock) -> None:
    session_id = await shown(chat)
    assert await chat.reply("/approve") == "Nothing waits for your answer here."
    first = await ask_approval(
        chat.talk, session_id, ref="1", question="Send the mail?", person_id=chat.person.id
    )
    assert await chat.reply("/approve what") == (
        f"{first}. Send the mail?\nGive the number of one: /approve <number> or /deny <number>."
    )
    assert "The agent is waiting for you." in await chat.reply("/status")
    assert await chat.reply("/deny") == "Refused."
    assert await chat.reply(f"/approve {first}") == "That was denied already."
    assert "no question" in (await chat.reply("/approve 99999")).lower()
    ben = await chat.talk.stranger()
    await chat.reply("/stop")
    second = await ask_approval(chat.talk, session_id, ref="2", question="Sure?", person_id=ben.id)
    assert await chat.reply(f"/approve {second}") == "That question was not put to you."
    await chat.reply("/stop")
    third = await ask_approval(chat.talk, session_id, ref="3", question="Now?", person_id=chat.person.id)
    clock.advance(APPROVAL_LIFETIME)
    assert await chat.reply(f"/approve {third}") == "That question has expired; the agent was told so."
    await chat.reply("/stop")
    await ask_approval(chat.talk, session_id, ref="4", question="And now?", person_id=chat.person.id)
    assert await chat.reply("/approve") == "Allowed."


async def test_sethome(chat: Chat, family: Chat) -> None:
    assert await family.reply("/sethome") == "You may not use /sethome here."
    in_group = Chat(chat.talk, chat.talk.owner, FAMILY_KEY, FAMILY)
    assert await in_group.reply("/sethome") == "This chat is now the home channel of telegram."
    known = await chat.talk.database.read(home_channels.list_homes)
    assert known["telegram"].address.chat_id == "-1"


async def test_link_proves_that_two_accounts_are_one_person(chat: Chat, family: Chat) -> None:
    assert await family.reply("/link") == "Others read this chat: use /link in a direct message."
    offered = await chat.reply("/link")
    code = offered.removeprefix("Your code is ").split(".")[0]
    assert "within 1 h" in offered
    assert await chat.reply(f"/link {code}") == "Both accounts are linked already."
    code = (await chat.reply("/link")).removeprefix("Your code is ").split(".")[0]
    bens = Source(platform="signal", chat_id="b", chat_type="dm", user_id="b")
    key = SessionKey("agent:main:signal:dm:b")
    await chat.talk.session("x", key=key, source=bens)
    ben = Chat(chat.talk, family.person, key, bens)
    assert await ben.reply("/link ABCD1234") == (
        "code 'ABCD1234': it has 8 characters, letters but no I, L and O, and digits but no 0 and 1"
    )
    assert await ben.reply("/link AAAAAAAA") == "That code is not valid: check it, or get a new one."
    assert await ben.reply(f"/link {code}") == "This account and CLI terminal both belong to owner now."


async def test_after_a_link_each_account_continues_the_others_conversation(chat: Chat, talk: Talk) -> None:
    ben = await talk.stranger()
    key, source = SessionKey("agent:main:matrix:dm:9"), replace(PHONE, platform="matrix", chat_id="9")
    begun = await talk.session_of(ben, "Olives for lunch", key=key, source=source)
    code = (await chat.reply("/link")).removeprefix("Your code is ").split(".")[0]
    await Chat(talk, ben, key, source).reply(f"/link {code}")
    there = Chat(talk, talk.owner, key, source)
    for place in (chat, there):
        listed = await place.reply("/sessions")
        assert ("Figs for dinner" in listed, "Olives for lunch" in listed) == (True, True)
    assert (await chat.run("/attach olives")).session_id == begun
    assert (await chat.run("/detach")).session_id != begun
    assert (await there.run("/resume figs")).session_id != begun
    assert (await chat.run(f"/resume {begun}")).session_id == begun
    assert (await chat.run("/fork")).reply == "This is a fork now; /resume brings back where it came from."
    assert await talk.broken() == []


async def test_private_messages_of_a_linked_account_stay_out_of_groups(
    chat: Chat, family: Chat, talk: Talk
) -> None:
    ben = await talk.stranger()
    key, source = SessionKey("agent:main:matrix:dm:9"), replace(PHONE, platform="matrix", chat_id="9")
    begun = await talk.session_of(ben, "Olives for lunch", key=key, source=source)
    code = (await chat.reply("/link")).removeprefix("Your code is ").split(".")[0]
    await Chat(talk, ben, key, source).reply(f"/link {code}")
    assert "Olives" not in await family.reply("/sessions")
    assert (await family.reply(f"/resume {begun}")).startswith("There is no conversation called")
    together = (await family.run("/status")).session_id
    assert (await chat.reply(f"/attach {together}")).startswith("There is no conversation called")


async def test_link_works_only_from_the_higher_role_and_never_to_a_blocked_person(chat: Chat) -> None:
    bens = Source(platform="signal", chat_id="b", chat_type="dm", user_id="b")
    key = SessionKey("agent:main:signal:dm:b")
    await chat.talk.session("x", key=key, source=bens)
    ben = Chat(chat.talk, await chat.talk.stranger(), key, bens)
    code = (await ben.reply("/link")).removeprefix("Your code is ").split(".")[0]
    assert (await chat.reply(f"/link {code}")).startswith("This account has more rights than the other")
    code = (await ben.reply("/link")).removeprefix("Your code is ").split(".")[0]
    await chat.talk.database.write(lambda tx: access.block(tx, ben.person.id))
    assert (await chat.reply(f"/link {code}")).startswith("One of the two accounts is blocked")
    for _ in range(4):
        await chat.reply("/link AAAAAAAA")
    assert await chat.reply("/link AAAAAAAA") == "Too many wrong codes: try again in 1 h."


async def stranger_asks(talk: Talk, user_id: str, name: str | None = None) -> IssuedCode:
    source = Source(
        platform="signal", chat_id=user_id, chat_type="dm", user_id=user_id, user_name=name or f"U{user_id}"
    )
    outcome = await talk.database.write(lambda tx: offer_pairing(tx, source, talk.ids))
    assert isinstance(outcome, IssuedCode)
    return outcome


async def test_pair_accepts_or_refuses_strangers(chat: Chat, talk: Talk) -> None:
    assert (await chat.reply("/pair")).startswith("Nobody asks to be let in. /pair approve <number or code>")
    assert (await chat.reply("/pair approve")).startswith("/pair approve <number or code>")
    first, second, third = [await stranger_asks(talk, user_id) for user_id in "123"]
    assert (await chat.reply("/pair")).splitlines()[0] == (
        f"{first.request_no}. U1 on signal, less than a minute ago"
    )
    assert await chat.reply(f"/pair approve {first.request_no}") == "U1 is let in as a member."
    assert await chat.reply(f"/pair approve {first.request_no}") == (
        "There is no such request: it was answered, or has expired."
    )
    assert await chat.reply(f"/pair approve {second.code} Guest") == "U2 is let in as a guest."
    assert await chat.reply("/pair approve AAAAAAAA") == "That code is not valid: check it, or get a new one."
    assert "there is one owner already" in await chat.reply(f"/pair approve {third.request_no} owner")
    assert await chat.reply(f"/pair deny {third.request_no}") == "The request was denied."
    assert (await chat.reply(f"/pair deny {third.request_no}")).startswith("There is no such request")
    due = await talk.database.read(lambda tx: outbox.list_due(tx, platform="signal", account="", limit=9))
    assert [delivery.chat_id for delivery in due] == ["1", "2"]


async def test_pair_shows_people_and_changes_their_roles(chat: Chat, talk: Talk) -> None:
    for user_id, name in (("1", "Cleo"), ("2", "Ben Bo"), ("3", "Cleo")):
        await chat.reply(f"/pair approve {(await stranger_asks(talk, user_id, name)).request_no}")
    owner, first, ben, second, _ = (await chat.reply("/pair people")).splitlines()
    assert owner.endswith("owner, owner on telegram")
    assert ben.endswith(". Ben Bo, member on signal")
    number = first.partition(".")[0]
    assert await chat.reply("/pair role ben bo guest") == "Ben Bo is a guest now."
    assert await chat.reply(f"/pair block {number}") == (
        f"Cleo is blocked. /pair unblock {number} ends that."
    )
    listed = await chat.reply("/pair people")
    assert f"{number}. Cleo, member on signal, blocked" in listed
    assert "Ben Bo, guest" in listed
    assert await chat.reply(f"/pair unblock {number}") == "Cleo is no longer blocked."
    assert await chat.reply("/pair block cleo") == (
        f"Several people are called so; give the number of one:\n{first}\n{second}"
    )
    assert (
        await chat.reply("/pair block Dora") == "Nobody here is called 'Dora'. /pair people lists the people."
    )
    assert await chat.reply("/pair block owner") == "The owner's own role and access cannot be changed."
    assert await chat.reply("/pair block") == "Give a name or a number. /pair people lists the people."
    assert (await chat.reply("/pair role ben bo")).startswith("Give a person and a role")
    assert "there is one owner already" in await chat.reply("/pair role ben bo owner")


async def test_a_linked_person_is_shown_as_one_person(chat: Chat, talk: Talk) -> None:
    for user_id, name in (("1", "Cleo"), ("2", "Ben Bo"), ("3", "Cleo")):
        await chat.reply(f"/pair approve {(await stranger_asks(talk, user_id, name)).request_no}")
    _, *listed, _ = (await chat.reply("/pair people")).splitlines()
    first, ben, second = [int(line.partition(".")[0]) for line in listed]

    def link(tx: Tx) -> None:
        access.merge_people(tx, from_person_id=first, to_person_id=talk.owner.id)
        access.merge_people(tx, from_person_id=ben, to_person_id=second)

    await talk.database.write(link)
    owner, cleo, _ = (await chat.reply("/pair people")).splitlines()
    assert owner.endswith(". owner, owner on signal, telegram")
    assert cleo == f"{second}. Cleo, member on signal"
    assert (await chat.reply("/pair block cleo")).startswith("Cleo is blocked.")


async def test_pair_allows_and_forbids_commands_and_toolsets_for_roles(chat: Chat, family: Chat) -> None:
    chat.settings = Settings(platforms=frozenset({"local", "telegram"}))
    assert (await chat.reply("/pair grants")).startswith(
        "There are no grants: each role has its default rights.\n/pair allow"
    )
    assert await chat.reply("/pair forbid member command /usage") == "Forbidden: member command usage."
    assert await family.reply("/usage") == "You may not use /usage here."
    assert await chat.reply("/pair allow member command * telegram") == (
        "Allowed: member command * telegram."
    )
    assert await family.reply("/pair") == "Ben is a member: only the owner decides who may do what."
    assert await chat.reply("/pair allow owner toolset terminal telegram") == (
        "Allowed: owner toolset terminal telegram."
    )
    assert (await chat.reply("/pair grants")).splitlines()[:3] == [
        "forbid member command usage",
        "allow member command * telegram",
        "allow owner toolset terminal telegram",
    ]
    assert (
        await chat.reply("/pair forget member command usage") == "Deleted the grant for member command usage."
    )
    assert (await chat.reply("/pair forget member command usage")).startswith("There is no grant for")
    for wrong, told in (
        ("member", "/pair allow <role>"),
        ("member tool x", "/pair allow <role>"),
        ("king command usage", "role 'king'"),
        ("member command usag", "There is no command /usag. Did you mean /usage?"),
        ("member toolset 1", "toolset '1'"),
        ("member command usage Ä", "platform"),
        ("member command usage telegarm", "there is no platform 'telegarm'; did you mean telegram?"),
    ):
        assert (await chat.reply(f"/pair allow {wrong}")).startswith(told)
    chat.settings = Settings(platforms=frozenset({"local"}))
    assert await chat.reply("/pair forget member command * telegram") == (
        "Deleted the grant for member command * telegram."
    )


async def test_pair_names_no_person_in_a_group(chat: Chat, family: Chat, talk: Talk) -> None:
    there = Chat(talk, talk.owner, FAMILY_KEY, FAMILY)
    first, second = [await stranger_asks(talk, user_id) for user_id in "12"]
    for text in (
        "/pair",
        "/pair people",
        "/pair block U1",
        "/pair grants",
        "/pair approve",
        "/pair nonsense",
    ):
        assert (await there.reply(text)).startswith("Others read this chat"), text
    assert await there.reply(f"/pair approve {first.request_no}") == (
        f"Who made request {first.request_no} is let in as a member."
    )
    assert await there.reply(f"/pair deny {second.request_no}") == "The request was denied."
    assert (await chat.reply("/pair nonsense")).startswith(
        "/pair does not know 'nonsense'. /pair approve <num"
    )


async def test_help_shows_what_this_person_may_use_here(chat: Chat, family: Chat) -> None:
    assert "/sethome: " in await chat.reply("/help")
    assert "/sethome: " not in await family.reply("/help")
    assert await chat.reply("/help undo") == "/undo [turns]: Undo the last turn, or several."
    assert await chat.reply("/help /reset") == "/new: Start a fresh conversation here. Also: /reset."
    assert await chat.reply("/help unod") == (
        "There is no command /unod. Did you mean /undo? /help lists them all."
    )
    assert await family.reply("/help pair") == await family.reply("/pair") == "You may not use /pair here."


async def test_a_grant_opens_and_closes_commands(family: Chat) -> None:
    taken = Grant(role="member", kind="command", name="usage", allow=False)
    given = Grant(role="member", kind="command", name="sethome", platform="telegram")

    def grant(tx: Tx) -> None:
        access.set_grant(tx, taken)
        access.set_grant(tx, given)

    await family.talk.database.write(grant)
    assert await family.reply("/usage") == "You may not use /usage here."
    assert await family.reply("/sethome") == "This chat is now the home channel of telegram."
