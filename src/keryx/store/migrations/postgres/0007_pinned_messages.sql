-- compatible: 2
-- Messages that no summary may stand for, each pinned in one session by a person.
-- A purge takes them along by itself, so that older code, which knows nothing of them, can purge.
CREATE TABLE pinned_messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    person_id BIGINT NOT NULL REFERENCES people (id),
    since_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, seq)
);
