//! Bytes and markup into text that people and models read.
//!
//! Knows no network, no disk and no runtime: what a page says is the same wherever it was found.

pub mod charset;
pub mod readable;
