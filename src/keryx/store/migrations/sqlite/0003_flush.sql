-- compatible: 2
-- Sessions with messages that memory was not asked about, by last activity: those that expire soon are one range of it.
CREATE INDEX sessions_unflushed ON sessions (last_active_at, id) WHERE state = 'open' AND flushed_seq < last_seq;
