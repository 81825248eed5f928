-- compatible: 2
-- Memory: the author of a note, the note it replaces, and every change, so that a change can be undone.
-- Usage: thinking tokens are counted, also by day.

ALTER TABLE messages ADD COLUMN thinking_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN thinking_tokens INTEGER NOT NULL DEFAULT 0;
-- The usage of a day, without reading the messages of other days.
CREATE INDEX messages_by_use ON messages (created_at) WHERE input_tokens > 0 OR output_tokens > 0;

-- The turn's usage for answers to Keryx's own questions, which are in no transcript.
ALTER TABLE turns ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN thinking_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
CREATE INDEX turns_by_use ON turns (begun_at) WHERE input_tokens > 0 OR output_tokens > 0;

ALTER TABLE memories ADD COLUMN author_id INTEGER REFERENCES people (id);
ALTER TABLE memories ADD COLUMN replaces_id INTEGER REFERENCES memories (id);
-- Equal for notes with the same text; only one of them is kept at a time.
ALTER TABLE memories ADD COLUMN fingerprint TEXT;
CREATE UNIQUE INDEX memories_by_fingerprint ON memories (audience_id, fingerprint) WHERE forgotten_at IS NULL;

CREATE TABLE memory_changes (
    id INTEGER PRIMARY KEY,
    audience_id INTEGER NOT NULL REFERENCES audiences (id),
    memory_id INTEGER NOT NULL REFERENCES memories (id),
    kind TEXT NOT NULL CHECK (kind IN ('kept', 'edited', 'forgotten', 'restored')),
    person_id INTEGER NOT NULL REFERENCES people (id),
    changed_at INTEGER NOT NULL,
    undone_at INTEGER
) STRICT;
CREATE INDEX memory_changes_by_audience ON memory_changes (audience_id, id) WHERE undone_at IS NULL;
