//! IMAP (RFC 3501) with IDLE (RFC 2177): the few commands that reading needs. Never changes a mailbox.

mod command;
mod fetched;
mod folder_name;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
pub(crate) mod query;
mod response;
pub(crate) mod session;
