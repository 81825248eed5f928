"""Names in the transcript for calls that an agent program made itself, without a tool of Keryx."""

from typing import Final

TOOL_KINDS: Final = (
    *("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"),
)
"""The protocol's names for the kinds of tools."""
NAME_PREFIX: Final = "acp_"
"""The prefix of the names of the agent's own calls; no tool of Keryx has it."""
PERMISSION: Final = "acp_permission"
"""The call by which an agent program asks a person for permission."""


def tool_name(kind: str) -> str:
    """Return the stored name of a tool that the agent program used itself."""
    return f"{NAME_PREFIX}{kind if kind in TOOL_KINDS else 'other'}"
