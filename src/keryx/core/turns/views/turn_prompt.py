"""What a turn ran with, word for word, as the store kept it."""

from keryx.core.conversations.tables import sessions
from keryx.core.media.views import read_contents
from keryx.core.turns.tables import turns
from keryx.store.database import ReadTx
from keryx.values import dataclass

__all__ = ["TurnPrompt", "show_prompt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPrompt:
    """The model that was asked, its system prompt, and its tools as JSON: name, description and parameters of each."""

    model: str | None
    prompt: str
    tools: str


def show_prompt(tx: ReadTx, turn_id: int, *, person_id: int) -> TurnPrompt | None:
    """Return what a turn of a session the person may see ran with; None where it asked no model."""
    sessions.get_visible(tx, turns.get_turn(tx, turn_id).session_id, person_id=person_id)
    found = turns.find_prompt(tx, turn_id)
    if found is None:
        return None
    model, *hashes = found
    kept = read_contents(tx, hashes)
    prompt, tools = (kept[digest].decode("utf-8", "surrogatepass") for digest in hashes)
    return TurnPrompt(model=model, prompt=prompt, tools=tools)
