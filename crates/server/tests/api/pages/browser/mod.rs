//! The pages in a real browser: Chromium, driven by chromedriver, with a server on a real socket.

mod axe;
mod calls;
mod channels;
mod chat;
mod chromium;
mod dashboard;
mod documents;
mod first_run;
mod live;
mod models;
mod navigation;
mod page_weight;
mod pictures;
mod recording_server;
mod screenshots;
mod settings;
mod tasks;
mod team;
mod web_driver;
