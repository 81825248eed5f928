-- name: turn_effects.list
-- What the calls made after a message of a branch do to the world.
SELECT DISTINCT s.effect
FROM messages m JOIN steps s ON s.turn_id = m.turn_id
WHERE m.session_id = :session_id AND m.branch_no = :branch_no AND m.seq > :after_seq AND s.call_seq > :after_seq
