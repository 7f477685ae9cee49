//! What the measurements of the memory share: generated text and vectors, and searches with their times.

pub mod measure;
pub mod text;
pub mod vectors;
