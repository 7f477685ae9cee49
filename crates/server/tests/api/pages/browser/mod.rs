//! The pages in a real browser: Chromium, driven by chromedriver, with a server on a real socket.

mod axe;
mod chat;
mod chromium;
mod dashboard;
mod recording_server;
mod screenshots;
mod team;
