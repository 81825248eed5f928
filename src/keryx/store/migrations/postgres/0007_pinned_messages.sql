-- compatible: 2
-- Messages that no summary may cover, each pinned by a person in one session.
-- A purge cascades to these rows, so that older code, which does not know them, can purge.
CREATE TABLE pinned_messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    person_id BIGINT NOT NULL REFERENCES people (id),
    since_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, seq)
);
