-- The model that answers; NULL for the default.
ALTER TABLE task ADD COLUMN model TEXT;
