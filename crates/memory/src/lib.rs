//! The memory over the user's documents: files become text, text becomes chunks, chunks are found again.
//!
//! Knows nothing of `config.toml`, of HTTP or of agents. Vectors are made by whatever engine it is given.
