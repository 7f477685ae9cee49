//! The pages for browsers.

mod browser;
mod html;
