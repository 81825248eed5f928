-- compatible: 2
-- The gateway: who is at work, what could not be read, and deliveries that are watched while they grow.

-- Every process that works on the store; its time is on the clock of the leases.
CREATE TABLE nodes (
    holder TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('gateway', 'chat')),
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Updates of platforms that could not be read, as they came.
CREATE TABLE malformed (
    id INTEGER PRIMARY KEY,
    platform TEXT NOT NULL,
    account TEXT NOT NULL,
    ref TEXT NOT NULL,
    raw TEXT NOT NULL,
    reason TEXT NOT NULL,
    received_at INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX malformed_by_ref ON malformed (platform, account, ref);

-- Since when it is only a preview of what its turn will say: shown and changed, but not yet to be sent.
ALTER TABLE outbox ADD COLUMN held_at INTEGER;
-- How many of its pieces are sent; the same parts always give the same pieces.
ALTER TABLE outbox ADD COLUMN sent_pieces INTEGER NOT NULL DEFAULT 0;
CREATE INDEX outbox_held ON outbox (session_id) WHERE held_at IS NOT NULL;
