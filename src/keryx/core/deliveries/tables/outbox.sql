-- columns: delivery
id, session_id, turn_id, kind, state, platform, account, chat_id, thread_id, address, reply_to, parts AS body,
idempotency_key, platform_message_id, attempts, due_at, claimed_by, claim_epoch, maybe_repeated_at, error, held_at,
sent_pieces

-- name: outbox.add
-- wakes: deliveries
-- Something to say at a complete address; a reply of one turn to one address is there only once, and what was held
-- as its preview becomes it.
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

-- name: outbox.hold
-- A reply whose turn still writes it: shown, but not to be sent yet; nothing where the turn has one there.
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
-- Whether something is to be shown at an address before anything new is.
SELECT 1 FROM outbox WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL LIMIT 1

-- name: outbox.find_held
-- The preview of a turn's reply.
SELECT {delivery}
FROM outbox WHERE turn_id = :turn_id AND held_at IS NOT NULL

-- name: outbox.doubt_preview
-- From now on, until it is told otherwise, the preview may be there without our knowing its number.
UPDATE outbox SET maybe_repeated_at = :now
WHERE id = :outbox_id AND held_at IS NOT NULL AND platform_message_id IS NULL AND maybe_repeated_at IS NULL

-- name: outbox.note_preview
-- The preview is there under this number, or (without one) it is certainly not there.
UPDATE outbox SET platform_message_id = CAST(:platform_message_id AS TEXT), maybe_repeated_at = NULL
WHERE id = :outbox_id AND platform_message_id IS NULL AND state = 'ready'

-- name: outbox.adopt_held
-- What lost turns of the session showed so far is the preview of this turn now.
UPDATE outbox SET turn_id = :turn_id WHERE session_id = :session_id AND held_at IS NOT NULL AND turn_id <> :turn_id

-- name: outbox.list_held_turns
-- The turns of a session that showed what they would say, and have not ended it.
SELECT DISTINCT turn_id FROM outbox WHERE session_id = :session_id AND held_at IS NOT NULL ORDER BY turn_id

-- name: outbox.release_held
-- wakes: deliveries
-- The turn says nothing more: what it showed so far stays, in this form.
UPDATE outbox SET parts = :parts, held_at = NULL, due_at = :now WHERE turn_id = :turn_id AND held_at IS NOT NULL

-- name: outbox.drop_held
-- Nothing of it was shown, and nothing will be.
DELETE FROM outbox
WHERE turn_id = :turn_id AND held_at IS NOT NULL AND platform_message_id IS NULL AND maybe_repeated_at IS NULL

-- name: outbox.note_piece
-- One more piece is sent; the first one's number is the delivery's.
UPDATE outbox SET
    sent_pieces = sent_pieces + 1,
    platform_message_id = COALESCE(platform_message_id, CAST(:platform_message_id AS TEXT))
WHERE id = :outbox_id AND state = 'sending' AND claimed_by = :holder AND claim_epoch = :epoch

-- name: outbox.find
-- One delivery by id.
SELECT {delivery}
FROM outbox WHERE id = :outbox_id

-- name: outbox.list_due
-- What an account may send now: for each address the oldest unfinished one, and nothing to addresses known dead.
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
-- This gateway sends it now.
UPDATE outbox SET state = 'sending', attempts = attempts + 1, claimed_by = :holder, claim_epoch = :epoch
WHERE id = :outbox_id AND state = 'ready'
RETURNING {delivery}

-- name: outbox.list_taken
-- What a gateway has taken under its present hold of an account and not settled.
SELECT {delivery}
FROM outbox
WHERE state = 'sending' AND platform = :platform AND account = :account
  AND claimed_by = :holder AND claim_epoch = :epoch
ORDER BY id

-- name: outbox.list_stuck
-- Being sent by a gateway that no longer holds the account; in the order of the index on what is being sent, or every
-- delivery is read.
SELECT {o.delivery}
FROM outbox o
WHERE o.state = 'sending'
  AND NOT EXISTS (SELECT 1 FROM connector_leases l
                  WHERE l.platform = o.platform AND l.account = o.account AND l.holder = o.claimed_by
                    AND l.epoch = o.claim_epoch AND l.expires_at > :lease_now AND l.boot_id = :boot_id)
ORDER BY o.platform, o.account, o.id
LIMIT :limit

-- name: outbox.record
-- What an attempt made of it, by the word of whoever made the attempt.
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
-- Whether more is to be said at an address, now or later.
SELECT 1 FROM outbox WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL LIMIT 1

-- name: outbox.count_unsettled
-- How many messages of a platform are to be sent, or on their way.
SELECT COUNT(*) FROM outbox WHERE platform = :platform AND state IN ('ready', 'sending')

-- name: outbox.list_fates
-- What became of everything that was to be said on a platform, oldest first.
SELECT id, turn_id, kind, state, chat_id, idempotency_key FROM outbox
WHERE platform = :platform AND id > :after
ORDER BY id LIMIT :limit

-- name: outbox.find_of_key
-- Whether a turn has something to say under a key.
SELECT 1 FROM outbox WHERE turn_id = :turn_id AND idempotency_key = :idempotency_key LIMIT 1

-- name: outbox.end_unsent
-- wakes: deliveries
-- Nobody will ever say it: whoever was to is gone, perhaps in the middle of it.
UPDATE outbox SET
    state = CASE WHEN state = 'sending' THEN 'unknown' ELSE 'dead' END,
    attempts = CASE WHEN attempts = 0 THEN 1 ELSE attempts END,
    error = :error, claimed_by = NULL, claim_epoch = NULL, ended_at = :now
WHERE address = :address AND state IN ('ready', 'sending') AND held_at IS NULL
RETURNING id, session_id

-- name: outbox.drop_of_session
-- wakes: deliveries
-- What was said, or was still to be said, by the session.
DELETE FROM outbox WHERE session_id = :session_id

-- name: outbox.has_sending
-- Whether something of the session is on its way to a platform.
SELECT 1 FROM outbox WHERE session_id = :session_id AND state = 'sending' LIMIT 1
