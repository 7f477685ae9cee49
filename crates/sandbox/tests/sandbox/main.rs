//! The sandbox, and its tool.

mod code_interpreter;
#[cfg(target_os = "linux")]
mod linux;
