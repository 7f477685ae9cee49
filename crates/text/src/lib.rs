//! Converts bytes and markup to readable text.
//!
//! Knows no network, no disk and no runtime.

pub mod charset;
pub mod readable;
