-- columns: delivery
id, session_id, turn_id, kind, state, platform, account, chat_id, thread_id, address, reply_to, parts AS body,
idempotency_key, platform_message_id, attempts, due_at, claimed_by, claim_epoch, maybe_repeated_at, error, held_at,
sent_pieces

-- name: outbox.add
-- wakes: deliveries
-- Add a message to send. A turn has one reply for each address; if the turn has a preview there, the preview becomes
-- the reply.
INSERT INTO outbox (
    session_id, turn_id, kind, state, platform, account, chat_id, thread_id, address, reply_to, parts,
    idempotency_key, due_at, created_at
)
VALUES (
    :session_id, :turn_id, :kind, 'ready', :platform, :account, :chat_id, :thread_id, :address, :reply_to, :parts,
    :idempotency_key, :now, :now
)
ON CONFLICT (turn_id, address, kind) WHERE kind IN ('reply', 'scheduled') DO UPDATE
SET parts = excluded.parts, reply_to = excluded.reply_to, held_at = NULL, due_at = excluded.due_at
WHERE outbox.held_at IS NOT NULL
RETURNING id

-- name: outbox.add_preview
-- Add the preview row of a reply that the turn is still writing, unless the turn has a reply at the address.
INSERT INTO outbox (
    session_id, turn_id, kind, state, platform, account, chat_id, thread_id, address, reply_to, parts,
    idempotency_key, due_at, created_at, held_at
)
VALUES (
    :session_id, :turn_id, 'reply', 'ready', :platform, :account, :chat_id, :thread_id, :address, :reply_to, '[]',
    :idempotency_key, :now, :now, :now
)
ON CONFLICT (turn_id, address, kind) WHERE kind IN ('reply', 'scheduled') DO NOTHING

-- name: outbox.has_waiting
-- Find whether a delivery to an address is unfinished.
SELECT 1 FROM outbox WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL LIMIT 1

-- name: outbox.find_preview
-- Find the preview row of a turn's reply.
SELECT {delivery}
FROM outbox WHERE turn_id = :turn_id AND held_at IS NOT NULL

-- name: outbox.begin_preview
-- Record that the preview is about to be sent: until the result is known, it may be shown under an unknown id.
UPDATE outbox SET maybe_repeated_at = :now
WHERE id = :outbox_id AND held_at IS NOT NULL AND platform_message_id IS NULL AND maybe_repeated_at IS NULL

-- name: outbox.record_preview
-- Record the id of the preview's message, or (without an id) that the preview is not shown.
UPDATE outbox SET platform_message_id = CAST(:platform_message_id AS TEXT), maybe_repeated_at = NULL
WHERE id = :outbox_id AND platform_message_id IS NULL AND state = 'ready'

-- name: outbox.move_previews
-- Move the previews of the session's lost turns to this turn.
UPDATE outbox SET turn_id = :turn_id WHERE session_id = :session_id AND held_at IS NOT NULL AND turn_id <> :turn_id

-- name: outbox.end_previews
-- wakes: deliveries
-- Make the previews of a session deliveries with these parts, because no reply will replace them.
UPDATE outbox SET parts = :parts, held_at = NULL, due_at = :now WHERE session_id = :session_id AND held_at IS NOT NULL

-- name: outbox.drop_previews
-- Delete the previews of a session that were never shown.
DELETE FROM outbox
WHERE session_id = :session_id AND held_at IS NOT NULL AND platform_message_id IS NULL AND maybe_repeated_at IS NULL

-- name: outbox.record_piece
-- Count a sent piece. The id of the first piece is the id of the delivery.
UPDATE outbox SET
    sent_pieces = sent_pieces + 1,
    platform_message_id = COALESCE(platform_message_id, CAST(:platform_message_id AS TEXT))
WHERE id = :outbox_id AND state = 'sending' AND claimed_by = :holder AND claim_epoch = :epoch

-- name: outbox.find
-- Find a delivery by id.
SELECT {delivery}
FROM outbox WHERE id = :outbox_id

-- name: outbox.list_due
-- List the deliveries that an account may send now: for each address the oldest unfinished one, except to dead addresses
-- that are not due for a probe.
SELECT {o.delivery}
FROM outbox o
WHERE o.platform = :platform AND o.account = :account AND o.state = 'ready' AND o.due_at <= :now
  AND o.held_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM outbox e
                  WHERE e.address = o.address AND e.state IN ('ready', 'sending') AND e.held_at IS NULL AND e.id < o.id)
  AND NOT EXISTS (SELECT 1 FROM addresses a WHERE a.address = o.address AND a.probe_at > :now)
ORDER BY o.due_at, o.id
LIMIT :limit

-- name: outbox.claim
-- Claim a delivery for this gateway.
UPDATE outbox SET state = 'sending', attempts = attempts + 1, claimed_by = :holder, claim_epoch = :epoch
WHERE id = :outbox_id AND state = 'ready'
RETURNING {delivery}

-- name: outbox.list_claimed
-- List the unfinished deliveries that a gateway claimed under its current connector lease.
SELECT {delivery}
FROM outbox
WHERE state = 'sending' AND platform = :platform AND account = :account
  AND claimed_by = :holder AND claim_epoch = :epoch
ORDER BY id

-- name: outbox.list_stuck
-- List deliveries claimed by a gateway that no longer holds the account. The order is that of the index on deliveries
-- being sent; another order would read all deliveries.
SELECT {o.delivery}
FROM outbox o
WHERE o.state = 'sending'
  AND NOT EXISTS (SELECT 1 FROM connector_leases l
                  WHERE l.platform = o.platform AND l.account = o.account AND l.holder = o.claimed_by
                    AND l.epoch = o.claim_epoch AND l.expires_at > :lease_now AND l.boot_id = :boot_id)
ORDER BY o.platform, o.account, o.id
LIMIT :limit

-- name: outbox.record
-- Record the result of an attempt, if the gateway that made the attempt still owns the delivery.
UPDATE outbox SET
    state = :state,
    due_at = COALESCE(CAST(:due_at AS BIGINT), due_at),
    platform_message_id = COALESCE(platform_message_id, CAST(:platform_message_id AS TEXT)),
    maybe_repeated_at = CASE WHEN :maybe_repeated = 1 THEN COALESCE(maybe_repeated_at, CAST(:now AS BIGINT))
                             ELSE maybe_repeated_at END,
    error = :error,
    claimed_by = NULL,
    claim_epoch = NULL,
    ended_at = CASE WHEN :state = 'ready' THEN NULL ELSE CAST(:now AS BIGINT) END
WHERE id = :outbox_id AND state = 'sending' AND claimed_by = :holder AND claim_epoch = :epoch

-- name: outbox.find_next
-- wakes: deliveries
-- Find whether a delivery to an address is unfinished, to wake the delivery loop.
SELECT 1 FROM outbox WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL LIMIT 1

-- name: outbox.find_of_key
-- Find whether a turn has queued a delivery under a key.
SELECT 1 FROM outbox WHERE turn_id = :turn_id AND idempotency_key = :idempotency_key LIMIT 1

-- name: outbox.end_unsent
-- wakes: deliveries
-- End the unfinished deliveries to an address that no longer exists.
UPDATE outbox SET
    state = CASE WHEN state = 'sending' THEN 'unknown' ELSE 'dead' END,
    attempts = CASE WHEN attempts = 0 THEN 1 ELSE attempts END,
    error = :error, claimed_by = NULL, claim_epoch = NULL, ended_at = :now
WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL
RETURNING id, session_id

-- name: outbox.drop_of_session
-- wakes: deliveries
-- Delete the deliveries of a session.
DELETE FROM outbox WHERE session_id = :session_id

-- name: outbox.has_sending
-- Find whether a delivery of a session is being sent.
SELECT 1 FROM outbox WHERE session_id = :session_id AND state = 'sending' LIMIT 1
