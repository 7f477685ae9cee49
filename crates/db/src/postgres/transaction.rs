//! What a store sends: statements of one transaction.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures::future::join;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Statement};

use super::connection::{Connection, send, wait_until};
use super::listener::CHANNEL;
use super::query_error::{QueryError, QueryResult};

/// SQL for the time of the server in microseconds. Leases use it: the clocks of the machines that share a database may differ.
pub const SERVER_CLOCK: &str = "(extract(epoch FROM statement_timestamp()) * 1000000)::bigint";

/// Bytes of a message and its topic. The server refuses more than 7,999.
pub const MAX_MESSAGE_BYTES: usize = 7_900;

/// A server that another one has replaced may not know the transaction at all: then its number is in the future.
const TRANSACTION_END: &str = "
    SELECT CASE WHEN $1::text::xid8 < pg_current_xact_id() THEN pg_xact_status($1::text::xid8) END";

/// How a transaction ended whose connection broke during the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionEnd {
    Committed,
    NotCommitted,
    /// The server has not noticed yet that the connection is gone.
    InProgress,
}

/// A transaction. Its statements are prepared once for each connection.
pub struct PostgresTransaction<'a> {
    connection: &'a mut Connection,
    /// Sent together with the first statement, so that it costs no time.
    begin: Option<&'static str>,
    /// How long one statement may take, with the way there and back.
    patience: Option<Duration>,
}

impl<'a> PostgresTransaction<'a> {
    pub(super) fn new(
        connection: &'a mut Connection,
        begin: &'static str,
        patience: Option<Duration>,
    ) -> Self {
        PostgresTransaction { connection, begin: Some(begin), patience }
    }

    /// All rows.
    pub fn query(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> QueryResult<Vec<Row>> {
        let statement = self.prepare(sql)?;
        let client = &self.connection.client;
        let query = client.query(&statement, parameters);
        let rows = match self.begin.take() {
            Some(begin) => {
                let (begun, rows) = self.wait(join(client.batch_execute(begin), query))?;
                begun?;
                rows?
            }
            None => self.wait(query)??,
        };
        Ok(rows)
    }

    /// The first row, if there is one.
    pub fn query_opt(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> QueryResult<Option<Row>> {
        Ok(self.query(sql, parameters)?.into_iter().next())
    }

    /// The first row of a statement that always returns one, such as an aggregate.
    pub fn query_one(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> QueryResult<Row> {
        let row = self.query_opt(sql, parameters)?;
        row.ok_or_else(|| QueryError::unreadable("row", "the statement returned no row"))
    }

    /// Returns how many rows were changed.
    pub fn execute(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> QueryResult<u64> {
        let statement = self.prepare(sql)?;
        let client = &self.connection.client;
        let execute = client.execute(&statement, parameters);
        let changed = match self.begin.take() {
            Some(begin) => {
                let (begun, changed) = self.wait(join(client.batch_execute(begin), execute))?;
                begun?;
                changed?
            }
            None => self.wait(execute)??,
        };
        Ok(changed)
    }

    /// Several statements without parameters. Not prepared.
    pub fn run_script(&mut self, sql: &str) -> QueryResult<()> {
        self.begin()?;
        Ok(self.wait(self.connection.client.batch_execute(sql))??)
    }

    /// Many rows at once: `COPY table (columns) FROM STDIN BINARY`, with the types of the columns. Returns how many there were.
    pub fn copy_in<'r>(
        &mut self,
        sql: &str,
        types: &[Type],
        rows: impl IntoIterator<Item = Vec<&'r (dyn ToSql + Sync)>>,
    ) -> QueryResult<u64> {
        let statement = self.prepare(sql)?;
        self.begin()?;
        let copy = async {
            let sink = self.connection.client.copy_in(&statement).await?;
            let mut writer = pin!(BinaryCopyInWriter::new(sink, types));
            for row in rows {
                writer.as_mut().write(&row).await?;
            }
            writer.finish().await
        };
        Ok(self.wait(copy)??)
    }

    /// Notifies all processes that the state of `topic` has changed, when this transaction is committed. See `ChangeWatch`.
    pub fn notify(&mut self, topic: &str) -> QueryResult<()> {
        self.execute("SELECT pg_notify($1, $2)", &[&CHANNEL, &topic]).map(|_| ())
    }

    /// The same with a message for the readers of `TopicMessages`. A topic has no spaces, and the server accepts at most
    /// [`MAX_MESSAGE_BYTES`].
    pub fn send_message(&mut self, topic: &str, message: &str) -> QueryResult<()> {
        self.notify(&format!("{topic} {message}"))
    }

    /// How a transaction ended that wrote a row, by the number that it had from `pg_current_xact_id`. `row` selects that row: `$1` is the
    /// number, the parameters follow, and the row must have it as its `xmin`. The number alone does not say who committed: after a crash,
    /// the server may give the number of a transaction that was not on its disk to another one.
    pub fn end_of_writer(
        &mut self,
        number: &str,
        row: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> QueryResult<TransactionEnd> {
        let end = self.end_of(number)?;
        if end != TransactionEnd::Committed {
            return Ok(end);
        }
        let number: &(dyn ToSql + Sync) = &number;
        let parameters: Vec<&(dyn ToSql + Sync)> =
            std::iter::once(number).chain(parameters.iter().copied()).collect();
        let found = self.query_opt(row, &parameters)?;
        Ok(if found.is_some() { TransactionEnd::Committed } else { TransactionEnd::NotCommitted })
    }

    /// How the server says that the transaction with this number ended.
    fn end_of(&mut self, number: &str) -> QueryResult<TransactionEnd> {
        let row = self.query_one(TRANSACTION_END, &[&number])?;
        Ok(match row.try_get::<_, Option<&str>>(0)? {
            Some("committed") => TransactionEnd::Committed,
            Some("in progress") => TransactionEnd::InProgress,
            _ => TransactionEnd::NotCommitted,
        })
    }

    /// Waits until no other transaction holds the lock of this name. The end of the transaction releases it.
    pub fn lock(&mut self, name: &str) -> QueryResult<()> {
        self.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", &[&name]).map(|_| ())
    }

    /// The same without waiting. Returns whether this transaction holds the lock now.
    pub fn try_lock(&mut self, name: &str) -> QueryResult<bool> {
        let row = self.query_one("SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))", &[&name])?;
        Ok(row.try_get(0)?)
    }

    /// Lets the statements of this transaction take any time, for example while an index is built.
    pub fn wait_without_limit(&mut self) -> QueryResult<()> {
        self.run_script("SET LOCAL statement_timeout = 0")?;
        self.patience = None;
        Ok(())
    }

    /// Lets this transaction wait for any time between its statements, while its rows are written elsewhere. Only for one that reads:
    /// it must hold nothing for which others wait.
    pub fn pause_without_limit(&mut self) -> QueryResult<()> {
        self.run_script("SET LOCAL idle_in_transaction_session_timeout = 0")
    }

    /// Whether anything was sent.
    pub(super) fn has_begun(&self) -> bool {
        self.begin.is_none()
    }

    pub(super) fn commit(self) -> QueryResult<()> {
        if !self.has_begun() {
            return Ok(());
        }
        Ok(self.wait(self.connection.client.batch_execute("COMMIT"))??)
    }

    /// Ends the transaction without its changes. Waits for nothing: what is sent next comes after it.
    pub(super) fn roll_back(self) {
        if self.has_begun() {
            send(self.connection.client.batch_execute("ROLLBACK"));
        }
    }

    fn begin(&mut self) -> QueryResult<()> {
        if let Some(begin) = self.begin.take() {
            self.wait(self.connection.client.batch_execute(begin))??;
        }
        Ok(())
    }

    fn prepare(&mut self, sql: &str) -> QueryResult<Statement> {
        if let Some(statement) = self.connection.prepared(sql) {
            return Ok(statement);
        }
        self.begin()?;
        let statement = self.wait(self.connection.client.prepare(sql))??;
        self.connection.keep(sql, &statement);
        Ok(statement)
    }

    fn wait<T>(&self, answer: impl Future<Output = T>) -> QueryResult<T> {
        wait_until(self.patience.map(|patience| Instant::now() + patience), answer)
    }
}
