-- compatible: 2
-- The tokens of the turn's last request to the model, by kind; NULL if no model was called.
ALTER TABLE turns ADD COLUMN window_tokens INTEGER;
ALTER TABLE turns ADD COLUMN system_tokens INTEGER;
ALTER TABLE turns ADD COLUMN tools_tokens INTEGER;
ALTER TABLE turns ADD COLUMN history_tokens INTEGER;
ALTER TABLE turns ADD COLUMN attachment_tokens INTEGER;
-- The usage of the model that wrote the summary; it is in no message.
ALTER TABLE covers ADD COLUMN model TEXT;
ALTER TABLE covers ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE covers ADD COLUMN cost_micros INTEGER NOT NULL DEFAULT 0;
