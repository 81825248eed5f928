"""A wrong program: both type checkers must report each marked line, with the marked code, and no other line.

An ignore comment that ignores nothing is an error of both checkers, so a mistake that is not found fails the test.
"""
# pyright: standard

import keryx


async def publish(kx: keryx.Keryx, session: keryx.Session) -> int:
    """Make every mistake of an async program."""
    await kx.publish()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    await kx.create_session(name="Rome")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    session.title = "Rome"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    await kx.append(session.id, role="boss", text="a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await kx.append(session.id, text="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await kx.append(session.id, role="user", tokens=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await kx.list_sessions(archived="no")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    undone = await kx.undo(session.id)
    return undone.branch_no  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]


def search(kx: keryx.KeryxSync, session_id: keryx.SessionId) -> keryx.Hit:
    """Make every mistake of a program without an event loop."""
    keryx.open_sync("a.db", owner=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    kx.edit(session_id, "1", text="a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    kx.rename(session_id)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    keryx.Place()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    return kx.search("a")  # type: ignore[return-value]  # pyright: ignore[reportReturnType]
