"""The sample conversations of the demo, as data: a person, her family and her colleagues over three weeks."""

from dataclasses import replace
from typing import Final

from keryx.clock import DAY, HOUR, MINUTE
from keryx.core.conversations.rules.source import LOCAL_CLI, Source
from keryx.demo.script import Fork, SampleCall, SampleConversation, SampleExchange, SampleProcess

SONNET: Final = "anthropic:claude-sonnet-5"
GPT: Final = "openai:gpt-5"


def _direct(platform: str, user_id: str, user_name: str, *, chat_name: str | None = None) -> Source:
    return Source(
        platform=platform,
        chat_id=user_id,
        chat_type="dm",
        user_id=user_id,
        user_name=user_name,
        chat_name=chat_name,
    )


TELEGRAM: Final = _direct("telegram", "7001", "Ana")
BEN: Final = _direct("telegram", "7002", "Ben")
FAMILY: Final = replace(TELEGRAM, chat_id="-100200", chat_type="group", chat_name="Family")
FAMILY_BEN: Final = replace(FAMILY, user_id=BEN.user_id, user_name=BEN.user_name)
STRANGER: Final = _direct("telegram", "7099", "Zoe")
WHATSAPP: Final = _direct("whatsapp", "81900", "美咲")
EMAIL: Final = _direct("email", "ana@example.org", "Ana", chat_name="Quarterly figures")
DISCORD: Final = Source(
    platform="discord",
    chat_id="880",
    chat_type="thread",
    chat_name="herald-dev",
    chat_topic="Building the herald",
    thread_id="881",
    user_id="501",
    user_name="ana.dev",
)
SLACK: Final = Source(
    platform="slack",
    chat_id="C042",
    chat_type="channel",
    chat_name="support",
    chat_topic="Customers' questions",
    user_id="U9",
    user_name="ana",
)
OWN: Final = (TELEGRAM, DISCORD, SLACK, EMAIL)
"""The owner's accounts."""
MEMBERS: Final = (BEN, WHATSAPP)
PLATFORMS: Final = ("local", "telegram", "discord", "slack", "whatsapp", "email")

HOTELS: Final = """\
1. Hotel Santa Maria, Trastevere: quiet court with orange trees, 164 € a night
2. Casa Fabbrini, near Piazza di Spagna: small, 149 €
3. Residenza Farnese: a former convent, 187 €"""
ROME: Final = SampleConversation(
    source=TELEGRAM,
    ago=12 * DAY + 3 * HOUR,
    model=SONNET,
    tags=("travel",),
    pinned=True,
    project="Rome in spring",
    memories=("Ana likes small, quiet hotels.", "The trip to Rome is from 14 to 18 April; Ben comes along."),
    draft="And what about the Vatican on Thursday?",
    forked=Fork(
        title="Rome by night train",
        said="What if we took the night train instead of flying?",
        answer="From Munich it leaves at 20:10 and arrives at 9:05. Two places in a sleeper are about 260 €, "
        "less than flights and one hotel night together.",
    ),
    exchanges=(
        SampleExchange(
            said="Ben and I want to go to Rome from 14 to 18 April. Find us a quiet hotel, please.",
            thinking="They want quiet. Trastevere away from the bars, or a convent. I should look up prices.",
            calls=(
                SampleCall(name="fetch_url", arguments={"url": "https://hotels.example/rome"}, output=HOTELS),
                SampleCall(name="search_history", arguments={"query": "hotel"}, output="Nothing was found."),
            ),
            answer="I would take the **Hotel Santa Maria**: all its rooms look into a court with orange trees, and "
            "the nights there are quiet. The others:\n\n" + HOTELS,
        ),
        SampleExchange(
            said="This is the court, isn't it?",
            picture="court.png",
            answer="Yes, that is the court of the Santa Maria.",
        ),
        SampleExchange(
            said="Plan the first day.", answer="Morning: Colosseum. Noon: Forum. Evening: Trastevere on foot."
        ),
        SampleExchange(
            said="/retry",
            answer="Arrive slowly: coffee at Sant'Eustachio, the Pantheon before eleven, lunch near Campo de' "
            "Fiori, and in the afternoon only one thing, the Palazzo Massimo. Evening in Trastevere.",
        ),
        SampleExchange(said="Add a restaurant with live music.", answer="Big Mama has blues on Fridays."),
        SampleExchange(said="/undo"),
        SampleExchange(said="/title Trip to Rome"),
        SampleExchange(said="/sethome"),
    ),
)
FAMILY_TALK: Final = SampleConversation(
    source=FAMILY,
    ago=9 * DAY,
    model=GPT,
    tags=("family",),
    exchanges=(
        SampleExchange(said="Who brings what on Sunday?", answer="So far nobody said. Shall I keep a list?"),
        SampleExchange(said="I bring the salad 🥗", by=FAMILY_BEN, answer="Noted: Ben brings the salad."),
        SampleExchange(
            said="Then I bake the cake. Remind us on Saturday.",
            calls=(
                SampleCall(
                    name="schedule",
                    arguments={"action": "create", "rule": "at Saturday 10:00", "route": "origin"},
                    output="Scheduled: Saturday 10:00.",
                    effect="once",
                ),
            ),
            answer="Ana bakes the cake, Ben brings the salad. I will remind you here on Saturday at ten.",
        ),
        SampleExchange(said="/title Sunday lunch"),
    ),
)
BEN_TALK: Final = SampleConversation(
    source=BEN,
    ago=8 * DAY,
    model=GPT,
    exchanges=(
        SampleExchange(
            said="What do I need for a potato salad for eight?",
            answer="Two kilos of waxy potatoes, half a litre of broth, vinegar, oil, mustard, two onions, chives.",
        ),
    ),
)
RELEASE: Final = SampleConversation(
    source=DISCORD,
    ago=6 * DAY,
    model=SONNET,
    tags=("work", "herald"),
    project="Herald",
    exchanges=(
        SampleExchange(
            said="Why does the nightly build fail?",
            calls=(
                SampleCall(
                    name="terminal",
                    arguments={"command": "git log --oneline -3"},
                    output="a1f09c2 Parse dates in one place\n77b21de Tidy\n0c3e9aa Add zones",
                    effect="once",
                ),
                SampleCall(
                    name="find_in_files",
                    arguments={"pattern": "strptime", "path": "src"},
                    output="src/dates.py:41:    return datetime.strptime(text, '%d.%m.%Y')",
                ),
            ),
            answer="Since `a1f09c2` dates are parsed with `%d.%m.%Y`, but the fixtures write ISO dates:\n\n"
            "```python\nreturn datetime.fromisoformat(text)\n```\n\nThat line fixes it.",
        ),
        SampleExchange(
            said="Thanks. Write the release notes for 1.4, long form please.",
            answer="# Herald 1.4\n\nDates are read in one place. Zones are",
            stopped=True,
        ),
        SampleExchange(
            said="Short form!",
            answer="**Herald 1.4**: dates are read in one place, zones are kept, the build is green again.",
        ),
        SampleExchange(said="/title Nightly build and release 1.4"),
    ),
)
SUPPORT: Final = SampleConversation(
    source=SLACK,
    ago=4 * DAY,
    model=GPT,
    tags=("work",),
    unread=True,
    exchanges=(
        SampleExchange(
            said="A customer asks how to export all conversations.",
            calls=(
                SampleCall(
                    name="search_history",
                    arguments={"query": "export JSONL"},
                    output="3 hits in 'Nightly build and release 1.4'",
                ),
            ),
            answer="Point them to the export as JSONL: it is lossless, and can be read back.",
        ),
        SampleExchange(
            said="Summarise the week's tickets.",
            failed="openai is overloaded. It was tried for a minute.",
            after=5 * MINUTE,
        ),
    ),
)
MISAKI: Final = SampleConversation(
    source=WHATSAPP,
    ago=3 * DAY,
    model=SONNET,
    exchanges=(
        SampleExchange(
            said="京都で静かなカフェを教えてください。",
            answer="哲学の道の近くにある小さなカフェはいかがですか。朝は特に静かです。",
        ),
        SampleExchange(said="雨の日でも大丈夫？☔", answer="はい、屋内の席が十席ほどあります。"),
    ),
)
MAIL: Final = SampleConversation(
    source=EMAIL,
    ago=2 * DAY + 5 * HOUR,
    model=GPT,
    tags=("work",),
    exchanges=(
        SampleExchange(
            said="Please put the figures of the third quarter into a table.",
            answer="| month | orders | revenue |\n| --- | ---: | ---: |\n| July | 412 | 20,188 € |\n"
            "| August | 388 | 19,020 € |\n| September | 455 | 23,910 € |",
            undelivered="550 the mailbox does not exist",
        ),
    ),
)
SHOPPING: Final = SampleConversation(
    source=LOCAL_CLI,
    ago=19 * DAY,
    archived=True,
    model=GPT,
    exchanges=(
        SampleExchange(
            said="Which is better for a small kitchen, induction or gas?", answer="Induction, mostly."
        ),
        SampleExchange(said="/title A new stove"),
        SampleExchange(said="/new"),
    ),
)
MISTAKE: Final = SampleConversation(
    source=LOCAL_CLI,
    ago=18 * DAY,
    deleted=True,
    exchanges=(
        SampleExchange(said="asdf", answer="Did you mean something by that?"),
        SampleExchange(said="/new"),
    ),
)
DELETING: Final = SampleConversation(
    source=TELEGRAM,
    ago=40 * MINUTE,
    model=SONNET,
    unread=True,
    tags=("herald",),
    project="Herald",
    exchanges=(
        SampleExchange(
            said="Clean up the old build folders on the server.",
            thinking="Deleting cannot be undone. List first, then ask.",
            calls=(SampleCall(name="terminal", arguments={"command": "rm -r build-2025-*"}, effect="ask"),),
            asks="May I run `rm -r build-2025-*` in ~/src/herald? It removes 14 folders (3.1 GB).",
        ),
    ),
)
BUILD: Final = SampleConversation(
    source=Source(platform="local", chat_id="herald", chat_type="dm", chat_name="Herald"),
    ago=5 * HOUR,
    model=SONNET,
    project="Herald",
    exchanges=(
        SampleExchange(
            said="Run the tests and build the docs in the background; tell me when they are done.",
            answer="Both run. I will tell you.",
        ),
    ),
    jobs=(
        SampleProcess(
            command="make test",
            exit_code=0,
            tail="412 passed in 63.20s",
            told="All 412 tests passed, in about a minute.",
        ),
        SampleProcess(
            command="make docs",
            exit_code=2,
            tail="docs/guide.md:14: no such page",
            told="The docs failed: line 14 of the guide links to a page that is not there.",
        ),
    ),
)
CONVERSATIONS: Final = (
    *(ROME, FAMILY_TALK, BEN_TALK, RELEASE, SUPPORT, MISAKI, MAIL, SHOPPING, MISTAKE, BUILD, DELETING),
)

DIARY: Final = (
    "sowed the first radishes; repotted the basil; rain all day, nothing done; found snails on the lettuce; "
    "put up the beans' poles; first radish leaves; the hose leaks at the tap; mended the hose; "
    "pricked out tomatoes; frost warning, covered the beds; no frost after all; the peas climb; "
    "harvested chives; sowed carrots; ladybirds at last; ate the first radish"
)
"""Garden notes, one for each day, separated by semicolons."""
DIARY_ANSWER: Final = "Noted for the garden: {}. {}"
DIARY_REMARKS: Final = "Good.; I will ask again in a week.; That was due.; Last year it was ten days later."

WORDS: Final = (
    "house casa, bread pane, water acqua, street strada, evening sera, morning mattina, bridge ponte, river fiume, "
    "church chiesa, garden giardino, window finestra, door porta, table tavolo, chair sedia, cup tazza, "
    "spoon cucchiaio, knife coltello, fork forchetta, salt sale, sugar zucchero, fruit frutta, apple mela, "
    "orange arancia, lemon limone, cheese formaggio, wine vino, beer birra, coffee caffè, milk latte, egg uovo, "
    "train treno, station stazione, ticket biglietto, luggage bagaglio, hotel albergo, key chiave, red rosso, "
    "green verde, white bianco, black nero, yellow giallo, blue azzurro, one uno, two due, three tre, four quattro, "
    "five cinque, six sei"
)
"""The vocabulary of the long conversation, separated by commas."""
