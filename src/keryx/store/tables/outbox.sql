-- name: outbox.add
-- Something to say at a complete address; a reply of one turn to one address is there only once.
INSERT INTO outbox (
    session_id, turn_id, kind, state, platform, account, chat_id, thread_id, address, reply_to, parts,
    idempotency_key, due_at, created_at
)
VALUES (
    :session_id, :turn_id, :kind, 'ready', :platform, :account, :chat_id, :thread_id, :address, :reply_to, :parts,
    :idempotency_key, :now, :now
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: outbox.find
-- One delivery by id.
SELECT
    id, session_id, turn_id, kind, state, platform, account, chat_id, thread_id, address, reply_to, parts,
    idempotency_key, platform_message_id, attempts, due_at, claimed_by, claim_epoch, maybe_repeated_at, error
FROM outbox WHERE id = :outbox_id

-- name: outbox.list_due
-- What an account may send now: for each address the oldest unfinished one, and nothing to addresses known dead.
SELECT
    o.id, o.session_id, o.turn_id, o.kind, o.state, o.platform, o.account, o.chat_id, o.thread_id, o.address,
    o.reply_to, o.parts, o.idempotency_key, o.platform_message_id, o.attempts, o.due_at, o.claimed_by, o.claim_epoch,
    o.maybe_repeated_at, o.error
FROM outbox o
WHERE o.platform = :platform AND o.account = :account AND o.state = 'ready' AND o.due_at <= :now
  AND NOT EXISTS (SELECT 1 FROM outbox e
                  WHERE e.address = o.address AND e.state IN ('ready', 'sending') AND e.id < o.id)
  AND NOT EXISTS (SELECT 1 FROM addresses a WHERE a.address = o.address AND a.probe_at > :now)
ORDER BY o.due_at, o.id
LIMIT :limit

-- name: outbox.claim
-- This gateway sends it now.
UPDATE outbox SET state = 'sending', attempts = attempts + 1, claimed_by = :holder, claim_epoch = :epoch
WHERE id = :outbox_id AND state = 'ready'

-- name: outbox.list_stuck
-- Being sent by a gateway that no longer holds the account.
SELECT
    o.id, o.session_id, o.turn_id, o.kind, o.state, o.platform, o.account, o.chat_id, o.thread_id, o.address,
    o.reply_to, o.parts, o.idempotency_key, o.platform_message_id, o.attempts, o.due_at, o.claimed_by, o.claim_epoch,
    o.maybe_repeated_at, o.error
FROM outbox o
WHERE o.state = 'sending'
  AND NOT EXISTS (SELECT 1 FROM connector_leases l
                  WHERE l.platform = o.platform AND l.account = o.account AND l.holder = o.claimed_by
                    AND l.epoch = o.claim_epoch AND l.expires_at > :lease_now AND l.boot_id = :boot_id)
ORDER BY o.id
LIMIT :limit

-- name: outbox.record
-- What an attempt made of it, by the word of whoever made the attempt.
UPDATE outbox SET
    state = :state,
    due_at = COALESCE(CAST(:due_at AS BIGINT), due_at),
    platform_message_id = COALESCE(CAST(:platform_message_id AS TEXT), platform_message_id),
    maybe_repeated_at = CASE WHEN :maybe_repeated = 1 THEN COALESCE(maybe_repeated_at, CAST(:now AS BIGINT))
                             ELSE maybe_repeated_at END,
    error = :error,
    claimed_by = NULL,
    claim_epoch = NULL,
    ended_at = CASE WHEN :state = 'ready' THEN NULL ELSE CAST(:now AS BIGINT) END
WHERE id = :outbox_id AND state = 'sending' AND claimed_by = :holder AND claim_epoch = :epoch
