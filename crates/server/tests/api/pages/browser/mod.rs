//! The pages in a real browser: Chromium, driven by chromedriver, in front of a server of ours on a real socket.

mod axe;
mod chat;
mod chromium;
mod dashboard;
mod recording_server;
mod screenshots;
