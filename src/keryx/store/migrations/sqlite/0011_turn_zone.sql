-- A turn tells its model the date and time in a zone. The zone is kept, so that what the model read can be shown again.
ALTER TABLE turns ADD COLUMN zone TEXT;

-- Models do not read what the built-in guide said, nor the questions it answered. Its answers are marked by their finish
-- reason; older ones are known by their first words, or by the ids of its calls.
UPDATE messages SET finish_reason = 'guide'
WHERE role = 'assistant'
  AND (parts LIKE '"No model answers here: I am only Keryx''s built-in guide.%'
       OR turn_id IN (SELECT turn_id FROM steps WHERE call_id LIKE 'guide-%'));
