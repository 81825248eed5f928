-- compatible: 2
-- Sessions with messages that no flush has read, by last activity: sessions that expire soon are one range.
CREATE INDEX sessions_unflushed ON sessions (last_active_at, id) WHERE state = 'open' AND flushed_seq < last_seq;
