//! The pages for browsers: the chat page and the dashboard. They contain no data; their scripts call the API.

pub(crate) mod chat_page;
pub(crate) mod dashboard;
pub(crate) mod html_page;

#[cfg(test)]
mod page_tests;
