//! Entries for the fuzz targets: frames of a gateway, and lines of the WhatsApp process. Each takes any bytes and panics if a promise
//! of the crate is broken. Only in builds with `--cfg fuzzing`.

pub use crate::gateway::fuzzing::gateway_frame;
pub use crate::whatsapp::fuzzing::whatsapp_line;
