"""Errors: each by its class, and all of them by the root of the tree."""

import keryx


async def rename(kx: keryx.Keryx, session_id: str, title: str) -> str | None:
    """Rename a session; return what went wrong."""
    try:
        await kx.rename(session_id, title)
    except keryx.NotFound:
        return "no such session"
    except keryx.InvalidValue as error:
        return str(error)
    except keryx.StoreUnavailable:
        return "try again later"
    except keryx.KeryxError as error:
        return f"{type(error).__name__}: {error}"
    return None


async def main(address: str) -> None:
    """Rename what is there, and what is not."""
    async with keryx.open(address) as kx:
        session = await kx.create_session()
        assert await rename(kx, session.id, "Rome") is None
        assert await rename(kx, "20260101_000000_00000000", "Rome") == "no such session"
        assert await rename(kx, "nonsense", "Rome")
