"""Every outcome of a call, and every kind of part, in a match that a type checker knows to be exhaustive."""

from typing import assert_never

import keryx


def tell_undo(outcome: keryx.Branched | keryx.NothingToUndo) -> str:
    """Say what an undo did."""
    match outcome:
        case keryx.Branched(branch_no=no, message_count=count):
            return f"branch {no} shows {count} messages"
        case keryx.NothingToUndo(turns=turns):
            return f"there are only {turns} turns"
        case _:
            assert_never(outcome)


def tell_part(part: keryx.Part) -> str:
    """Say what a part is."""
    match part:
        case keryx.TextPart(text=text) | keryx.ThinkingPart(text=text):
            return text
        case keryx.ToolCallPart(name=name, arguments=arguments):
            return f"{name}({arguments})"
        case keryx.ToolResultPart(output=output, is_error=is_error):
            return f"{'failed' if is_error else 'returned'} {output}"
        case keryx.MediaPart(media_type=media_type):
            return media_type
        case keryx.UnknownPart():
            return "unknown"
        case _:
            assert_never(part)


def tell_role(role: keryx.Role) -> str:
    """Say who wrote a message."""
    match role:
        case "user":
            return "You"
        case "assistant":
            return "Keryx"
        case "tool" | "system":
            return role
        case _:
            assert_never(role)


async def main(address: str) -> None:
    """Take back more than there is."""
    async with keryx.open(address) as kx:
        session = await kx.create_session()
        await kx.append(session.id, role="user", text="hello")
        assert tell_undo(await kx.undo(session.id, turns=3)) == "there are only 1 turns"
        assert tell_undo(await kx.undo(session.id)) == "branch 1 shows 0 messages"
        again = await kx.redo(session.id)
        assert not isinstance(again, keryx.NothingToRedo)
        assert again.message_count == 1
        popped: keryx.Message | None = await kx.pop(session.id)
        assert popped is not None
        assert [tell_part(part) for part in popped.parts] == ["hello"]
        assert tell_role(popped.role) == "You"
