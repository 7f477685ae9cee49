//! The pages for browsers: the chat page, the dashboard and the team page. They contain no data; their scripts call the API, and
//! `markdown` renders answers for them.

pub(crate) mod chat_page;
pub(crate) mod dashboard;
pub(crate) mod html_page;
pub(crate) mod markdown;
pub(crate) mod team_page;

#[cfg(test)]
mod page_tests;
