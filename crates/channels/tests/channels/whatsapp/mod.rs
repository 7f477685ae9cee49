//! WhatsApp, over a subprocess that a test scripts; and the real one, without a network.

mod real;
mod scripted;
mod support;
