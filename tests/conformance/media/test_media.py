"""The contents of blobs, as a model is shown them."""

from keryx.core.media import tables as blobs
from keryx.core.media.views import CONTENT_BYTES_MAX, read_contents
from keryx.store.database import Database, Tx


async def test_contents_in_the_store_are_read_and_large_or_absent_ones_left_out(database: Database) -> None:
    small, large, elsewhere, absent = (letter * 64 for letter in "abcd")

    def keep(tx: Tx) -> None:
        blobs.add_blob(tx, hash=small, media_type="image/png", size_bytes=4, data=b"\x89PNG")
        blobs.add_blob(
            tx, hash=large, media_type="image/png", size_bytes=CONTENT_BYTES_MAX + 1, data=b"cut for the test"
        )
        blobs.add_blob(tx, hash=elsewhere, media_type="image/png", size_bytes=4, data=None)

    await database.write(keep)
    found = await database.read(lambda tx: read_contents(tx, [small, large, elsewhere, absent]))
    assert found == {small: b"\x89PNG"}
    assert type(found[small]) is bytes
