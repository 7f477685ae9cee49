-- Who puts a chunk in puts its words in, too. A trigger did this until now, and an insert that fires one begins a savepoint, at
-- which the index of words writes down all it has collected: after every single chunk, instead of once for thousands.
DROP TRIGGER memory_chunk_comes;
DROP TRIGGER memory_chunk_comes_to_the_sample;
