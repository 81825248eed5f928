-- columns: blob
hash, media_type, size_bytes, data, created_at

-- name: blobs.add
-- A content by its hash; one that is there gets its time anew, so that it is not collected under its new user's hands.
INSERT INTO blobs (hash, media_type, size_bytes, data, created_at)
VALUES (:hash, :media_type, :size_bytes, :data, :now)
ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at

-- name: blobs.find
-- One content; the bytes are there only where the store itself keeps them.
SELECT {blob} FROM blobs WHERE hash = :hash

-- name: blobs.find_held
-- One content, if a holder needs it.
SELECT {b.blob}
FROM blob_refs r
JOIN blobs b ON b.hash = r.hash
WHERE r.hash = :hash AND r.holder = :holder

-- name: blobs.find_newer
-- Whether the content is there and was brought after a time; without its bytes.
SELECT 1 FROM blobs WHERE hash = :hash AND created_at > :since

-- name: blobs.add_ref
-- Somebody needs the content; again is no change.
INSERT INTO blob_refs (hash, holder) VALUES (:hash, :holder) ON CONFLICT (hash, holder) DO NOTHING

-- name: blobs.copy_refs
-- What one holder needs, another needs too.
INSERT INTO blob_refs (hash, holder)
SELECT r.hash, :to_holder FROM blob_refs r WHERE r.holder = :from_holder
ON CONFLICT (hash, holder) DO NOTHING

-- name: blobs.drop_refs
-- The holder needs nothing any more.
DELETE FROM blob_refs WHERE holder = :holder

-- name: blobs.collect
-- Contents that nobody needs and nobody brought lately are gone.
DELETE FROM blobs
WHERE created_at <= :before
  AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = blobs.hash)
  AND hash IN (SELECT b.hash FROM blobs b
               WHERE b.created_at <= :before AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = b.hash)
               LIMIT :limit)
RETURNING hash
