//! SQLite.
//!
//! | file | what |
//! |---|---|
//! | `database` | the file and its connections |
//! | `private_file` | creates the file, readable by its owner only |
//! | `migrations` | the steps that make the tables, by capability |
//! | `inspect` | looks at a file without changing it |
//! | `file_copy` | the file as a whole: a copy while it is in use, and whether it may be moved |

pub(crate) mod database;
pub(crate) mod file_copy;
pub(crate) mod inspect;
pub(crate) mod migrations;
mod private_file;

#[cfg(test)]
mod processes_tests;
