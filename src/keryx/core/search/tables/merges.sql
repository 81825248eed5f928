-- name: search_merges.add
-- Add a source of the segment that a merge writes.
INSERT INTO search_merges (target_id, source_id, renumbering) VALUES (:target_id, :source_id, :renumbering)

-- name: search_merges.list
-- List the sources of a merge with the new numbers of their documents, oldest first.
SELECT m.source_id, m.renumbering
FROM search_merges m JOIN search_segments s ON s.segment_id = m.source_id
WHERE m.target_id = :target_id ORDER BY s.born, s.segment_id

-- name: search_merges.drop
-- Delete the sources of a finished merge.
DELETE FROM search_merges WHERE target_id = :target_id

-- name: search_merges.clear
-- Delete all merges.
DELETE FROM search_merges
