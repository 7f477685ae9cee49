//! Agents and the tools they use.
//!
//! Reaches engines, memory, tasks and channels only through the contracts of `core`. Knows no HTTP server, no database and no
//! configuration file.
