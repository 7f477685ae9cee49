//! PostgreSQL, for several processes on several machines. Knows nothing of the tables of a capability.
//!
//! | file | what |
//! |---|---|
//! | `options` | the server, the login and the limits |
//! | `password_file` | the password file of libpq |
//! | `tls` | TLS by `sslmode` |
//! | `connector` | connects to the first host that can be used |
//! | `connection` | one connection, its prepared statements, and how a thread waits for an answer |
//! | `pool` | a bounded number of connections |
//! | `transaction` | what a store sends |
//! | `text` | any text in a TEXT column |
//! | `database` | reads and writes, with retries |
//! | `migrations` | the steps that make the tables, by capability |
//! | `listener` | changes by other processes, and messages between processes |
//! | `inspect` | the state of the server, for `hob doctor` |
//! | `monitor` | whether the server can be used, for the log and for readiness |
//! | `query_error` | errors of statements |
//! | `explain` | what they mean, and what to do |

mod connection;
mod connector;
mod database;
mod explain;
mod inspect;
mod listener;
mod migrations;
mod monitor;
mod options;
mod password_file;
mod pool;
mod query_error;
mod text;
mod tls;
mod transaction;

pub use database::PostgresDatabase;
pub use inspect::{ConnectionCounts, ExtensionState, PostgresState};
pub use listener::{TopicMessage, TopicMessages};
pub use migrations::PostgresMigrations;
pub use monitor::DatabaseMonitor;
pub use options::{InvalidUrl, PostgresOptions};
pub use query_error::{QueryError, QueryResult};
pub use text::{SqlText, clean_name};
pub use transaction::{MAX_MESSAGE_BYTES, PostgresTransaction, SERVER_CLOCK, TransactionEnd};

pub(crate) use listener::Topic;
pub(crate) use text::{escape, unescape};

pub use tokio_postgres::Row;
pub use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
