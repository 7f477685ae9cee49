//! Converts bytes and markup to readable text, and Markdown to what terminals and browsers show.
//!
//! Knows no network, no disk and no runtime.

pub mod charset;
mod escape;
pub mod flat_mail;
pub mod html_to_text;
pub mod markdown;
mod math;
