//! The memory: its tools, and its databases of older versions.

mod old_databases;
mod tools;
