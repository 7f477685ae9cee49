//! The pages for browsers. They contain no data; their scripts call the API, `markdown` renders answers for them, `document` reads files
//! for questions, `live` says when to load something again, and `change_relay` sends this to other servers.

pub(crate) mod admin_pages;
pub(crate) mod change_relay;
pub(crate) mod changes;
pub(crate) mod chat_page;
pub(crate) mod document;
pub(crate) mod html_page;
pub(crate) mod live;
pub(crate) mod markdown;
pub(crate) mod models_page;
pub(crate) mod not_found_page;

#[cfg(test)]
mod page_tests;
