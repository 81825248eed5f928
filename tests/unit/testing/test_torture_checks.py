"""The torture checks find each kind of broken promise, and find none in correct records."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from keryx.core.deliveries.rules.delivery import MAYBE_REPEATED_MARK
from keryx.core.turns.rules.inbox import Fate
from keryx.testing.torture.checks import CHECKS, FAILURE, Evidence, Thaw, check_all
from keryx.testing.torture.effects import Effect
from keryx.testing.torture.records import MessageKind, PlatformRecords, ShownMessage, UserMessage
from keryx.testing.torture.texts import Question, make_answer, read_answer, read_question

ONE_FATE, ONE_REPLY, NO_CROSSING, IN_ORDER, ONCE, NOT_STALE, WHOLE = CHECKS
CHATS = {"a": "canary-a0", "b": "canary-b0"}


class Story:
    """Correct records for a test to break: three questions and one stop in one chat, one question in another."""

    def __init__(self) -> None:
        self.records = PlatformRecords(canaries=dict(CHATS))
        self.fates: list[tuple[str, Fate | None]] = []
        self.effects: list[Effect] = []
        self.ask("a", 1, "answered")
        self.ask("a", 2, "merged", kind="steer")
        self.ask("a", 3, "answered")
        self.ask("a", 4, "command", kind="stop")
        self.ask("b", 1, "answered")
        self.show("a", 1, "k1", [1])
        self.show("a", 3, "k2", [2, 3])
        self.say("a", 4, "k3", "Nothing is running here.")
        self.show("b", 1, "k4", [1])
        self.run("once", token="a-1", key="x")
        self.run("pure", token="a-1", key="y")
        self.run("pure", token="a-1", key="y")

    def ask(self, chat: str, no: int, fate: Fate | None, *, kind: MessageKind = "message") -> None:
        token = "" if kind == "stop" else f"{chat}-{no}"
        message = UserMessage(id=f"msg_{chat}-{no}", chat=chat, no=no, kind=kind, token=token)
        self.records.messages[message.id] = message
        self.records.note_accepted(message)
        self.fates.append((message.id, fate))

    def say(self, chat: str, no: int, key: str, text: str, *, node: str = "n1") -> None:
        reply_to = f"msg_{chat}-{no}"
        at = 1.0 + len(self.records.shown)
        for piece, part in enumerate(text.split("\f")):
            shown = ShownMessage(
                id=f"{key}-{piece}",
                chat=chat,
                text=part,
                reply_to=None if piece else reply_to,
                node=node,
                at=at,
            )
            self.records.note_shown(shown)

    def show(self, chat: str, no: int, key: str, answered: list[int], *, add: str = "") -> None:
        questions = [Question(token=f"{chat}-{each}", canary=CHATS[chat]) for each in answered]
        self.say(chat, no, key, make_answer(questions).replace("\n\n", "\n\n\f", 1) + add)

    def run(self, kind: str, *, token: str, key: str) -> None:
        self.effects.append(Effect(kind=kind, at=1.0, pid=1, turn_id=0, token=token, key=key))  # type: ignore[arg-type]

    def spoil(self, index: int, **changes: object) -> None:
        """Change one shown message."""
        self.records.shown[index] = replace(self.records.shown[index], **changes)  # type: ignore[arg-type]

    @property
    def evidence(self) -> Evidence:
        return Evidence(records=self.records, effects=self.effects, fates=self.fates)


def broken(evidence: Evidence) -> set[str]:
    """Return the promises that the checks find broken."""
    return {promise for promise, found in check_all(evidence).items() if found}


def test_correct_records_have_no_breach() -> None:
    assert broken(Story().evidence) == set()


def lose_a_reply(story: Story) -> None:
    del story.records.shown[0:2]


def lose_a_message(story: Story) -> None:
    story.fates.pop()


def give_two_fates(story: Story) -> None:
    story.fates.append(story.fates[0])


def forget_a_fate(story: Story) -> None:
    story.fates[0] = (story.fates[0][0], None)


def double_a_reply(story: Story) -> None:
    story.show("b", 1, "k9", [1])


def answer_the_merged_again(story: Story) -> None:
    story.show("a", 2, "k9", [2])


def answer_the_stopped(story: Story) -> None:
    story.fates[0] = ("msg_a-1", "cancelled")


def fail_silently(story: Story) -> None:
    story.ask("b", 2, "failed")


def fail_twice(story: Story) -> None:
    story.ask("b", 2, "failed")
    for key in ("k8", "k9"):
        story.say("b", 2, key, f"{FAILURE} no paper")


def answer_without_quoting(story: Story) -> None:
    story.ask("b", 2, "answered")
    story.say("b", 2, "k9", "Hello.")


def reply_to_an_unknown_message(story: Story) -> None:
    story.say("b", 7, "k9", "Hello.")


def cut_an_answer_off(story: Story) -> None:
    del story.records.shown[1]


def swap_pieces(story: Story) -> None:
    shown = story.records.shown
    shown[0], shown[1] = shown[1], shown[0]


def cross_canaries(story: Story) -> None:
    story.spoil(1, text=story.records.shown[1].text + f" {CHATS['b']}")


def cross_chats(story: Story) -> None:
    story.spoil(0, chat="b")


def swap_replies(story: Story) -> None:
    shown = story.records.shown
    shown[0:4] = [*shown[2:4], *shown[0:2]]


def run_once_twice(story: Story) -> None:
    story.run("once", token="a-1", key="z")


def never_take(story: Story) -> None:
    del story.records.accepted["msg_b-1"]


def take_an_unsent_message(story: Story) -> None:
    story.fates.append(("msg_c-1", "answered"))


def confuse_a_command(story: Story) -> None:
    story.fates[3] = ("msg_a-4", "answered")


@pytest.mark.parametrize(
    ("plant", "promise"),
    [
        (lose_a_reply, ONE_REPLY),
        (lose_a_message, ONE_FATE),
        (give_two_fates, ONE_FATE),
        (forget_a_fate, ONE_FATE),
        (double_a_reply, ONE_REPLY),
        (answer_the_merged_again, ONE_REPLY),
        (answer_the_stopped, ONE_REPLY),
        (fail_silently, ONE_REPLY),
        (fail_twice, ONE_REPLY),
        (answer_without_quoting, ONE_REPLY),
        (reply_to_an_unknown_message, ONE_REPLY),
        (cut_an_answer_off, ONE_REPLY),
        (swap_pieces, ONE_REPLY),
        (cross_canaries, NO_CROSSING),
        (cross_chats, NO_CROSSING),
        (swap_replies, IN_ORDER),
        (run_once_twice, ONCE),
        (never_take, ONE_FATE),
        (take_an_unsent_message, ONE_FATE),
        (confuse_a_command, ONE_FATE),
    ],
)
def test_a_broken_promise_is_found(plant: Callable[[Story], None], promise: str) -> None:
    story = Story()
    plant(story)
    assert promise in broken(story.evidence)


def test_a_reply_marked_as_possibly_repeated_is_allowed() -> None:
    story = Story()
    story.show("b", 1, "k9", [1], add=f"\n{MAYBE_REPEATED_MARK}")
    assert broken(story.evidence) == set()


def test_a_failed_turn_with_several_messages_needs_one_notice() -> None:
    story = Story()
    story.ask("b", 2, "failed")
    story.ask("b", 3, "failed")
    story.say("b", 3, "k9", f"{FAILURE} no paper")
    story.ask("b", 4, "answered")
    story.show("b", 4, "k10", [2, 3, 4])  # the answer quotes the others too
    assert broken(story.evidence) == set()


def test_a_gateway_that_sends_after_a_late_thaw_is_found() -> None:
    story = Story()
    at = story.records.shown[-1].at
    asleep = Thaw(node="n2", at=at - 1, until=at + 1)
    assert broken(replace(story.evidence, thaws=[asleep])) == set()
    assert broken(replace(story.evidence, thaws=[replace(asleep, node="n1")])) == {NOT_STALE}


def test_a_broken_invariant_an_unsigned_call_and_a_bad_exit_code_are_found() -> None:
    evidence = Story().evidence
    assert broken(replace(evidence, invariants=["I1: something"])) == {WHOLE}
    assert broken(replace(evidence, ends={"n1": 0, "n2": -9})) == {WHOLE}
    evidence.records.violations.append("a call is not signed")
    assert broken(evidence) == {WHOLE}


def test_questions_and_answers_survive_printing_and_parsing() -> None:
    question = Question(token="a-7", canary="canary-0f", traits=("once", "long"))
    assert read_question(f"!steer {question.text()}") == question
    assert read_question("hello") is None
    answer = make_answer([Question(token="a-6", canary="canary-0f"), question])
    assert read_answer(answer) == ["a-6", "a-7"]
    assert len(answer) > 16_000, "a long answer has several pieces"
    assert read_answer(f"{FAILURE} [a-6]") == []
