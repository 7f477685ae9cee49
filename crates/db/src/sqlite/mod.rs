//! SQLite.
//!
//! | file | what |
//! |---|---|
//! | `database` | the file and its connections |
//! | `private_file` | creates the file, readable by its owner only |
//! | `migrations` | the steps that make the tables, by capability |
//! | `inspect` | looks at a file without changing it |

pub(crate) mod database;
pub(crate) mod inspect;
pub(crate) mod migrations;
mod private_file;

#[cfg(test)]
mod processes_tests;
