//! The pages for browsers.

mod browser;
mod document;
mod html;
mod live;
