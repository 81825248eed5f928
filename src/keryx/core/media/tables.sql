-- columns: blob
hash, media_type, size_bytes, data, created_at

-- name: blobs.add
-- Add a blob. Renew the time of an existing one, so that it is not deleted before its new reference is added.
INSERT INTO blobs (hash, media_type, size_bytes, data, created_at)
VALUES (:hash, :media_type, :size_bytes, :data, :now)
ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at

-- name: blobs.find
-- A blob by its hash.
SELECT {blob} FROM blobs WHERE hash = :hash

-- name: blobs.find_held
-- A blob by its hash, if the holder refers to it.
SELECT {b.blob}
FROM blob_refs r
JOIN blobs b ON b.hash = r.hash
WHERE r.hash = :hash AND r.holder = :holder

-- name: blobs.find_newer
-- Returns a row if the blob was uploaded after a time.
SELECT 1 FROM blobs WHERE hash = :hash AND created_at > :since

-- name: blobs.add_ref
-- Add a reference to a blob.
INSERT INTO blob_refs (hash, holder) VALUES (:hash, :holder) ON CONFLICT (hash, holder) DO NOTHING

-- name: blobs.copy_refs
-- Copy all references of one holder to another.
INSERT INTO blob_refs (hash, holder)
SELECT r.hash, :to_holder FROM blob_refs r WHERE r.holder = :from_holder
ON CONFLICT (hash, holder) DO NOTHING

-- name: blobs.drop_refs
-- Delete all references of a holder.
DELETE FROM blob_refs WHERE holder = :holder

-- name: blobs.collect
-- Delete blobs without a reference that were not uploaded lately.
DELETE FROM blobs
WHERE created_at <= :before
  AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = blobs.hash)
  AND hash IN (SELECT b.hash FROM blobs b
               WHERE b.created_at <= :before AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = b.hash)
               LIMIT :limit)
RETURNING hash
