//! Mail over real sockets.

mod imap;
mod smtp;
