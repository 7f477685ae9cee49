-- The calls of tools before the prompt, as JSON; NULL for none.
ALTER TABLE task ADD COLUMN first_calls TEXT;
