//! SQLite.
//!
//! | file | what |
//! |---|---|
//! | `database` | the file and its connections |
//! | `database_file` | a file that is opened when it is first needed |
//! | `private_file` | creates the file, readable by its owner only |
//! | `migrations` | the steps that make the tables, by capability |
//! | `inspect` | looks at a file without changing it |

pub(crate) mod database;
pub(crate) mod database_file;
pub(crate) mod inspect;
pub(crate) mod migrations;
mod private_file;

#[cfg(test)]
mod processes_tests;
