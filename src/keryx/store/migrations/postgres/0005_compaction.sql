-- compatible: 2
-- The tokens of the turn's last request to the model, by kind; NULL if no model was called.
ALTER TABLE turns ADD COLUMN window_tokens BIGINT;
ALTER TABLE turns ADD COLUMN system_tokens BIGINT;
ALTER TABLE turns ADD COLUMN tools_tokens BIGINT;
ALTER TABLE turns ADD COLUMN history_tokens BIGINT;
ALTER TABLE turns ADD COLUMN attachment_tokens BIGINT;
-- The usage of the model that wrote the summary; it is in no message.
ALTER TABLE covers ADD COLUMN model TEXT;
ALTER TABLE covers ADD COLUMN input_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cached_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN output_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cost_micros BIGINT NOT NULL DEFAULT 0;
