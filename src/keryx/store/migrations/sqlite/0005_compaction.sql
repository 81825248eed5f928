-- compatible: 2
-- What the last question of a turn was made of, in tokens; NULL where no model was asked.
ALTER TABLE turns ADD COLUMN window_tokens INTEGER;
ALTER TABLE turns ADD COLUMN system_tokens INTEGER;
ALTER TABLE turns ADD COLUMN tools_tokens INTEGER;
ALTER TABLE turns ADD COLUMN history_tokens INTEGER;
ALTER TABLE turns ADD COLUMN attachment_tokens INTEGER;
-- What the model used that wrote a summary; no message says it.
ALTER TABLE covers ADD COLUMN model TEXT;
ALTER TABLE covers ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
