-- compatible: 2
-- What the last question of a turn was made of, in tokens; NULL where no model was asked.
ALTER TABLE turns ADD COLUMN window_tokens BIGINT;
ALTER TABLE turns ADD COLUMN system_tokens BIGINT;
ALTER TABLE turns ADD COLUMN tools_tokens BIGINT;
ALTER TABLE turns ADD COLUMN history_tokens BIGINT;
ALTER TABLE turns ADD COLUMN attachment_tokens BIGINT;
-- What the model used that wrote a summary; no message says it.
ALTER TABLE covers ADD COLUMN model TEXT;
ALTER TABLE covers ADD COLUMN input_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN output_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cost_micros BIGINT NOT NULL DEFAULT 0;
