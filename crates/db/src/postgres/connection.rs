//! One connection, its prepared statements, and how a thread waits for an answer.
//!
//! The sockets belong to a thread of their own. A store waits for it as for any other thread, so it may be called from anywhere,
//! even where a runtime forbids to start another one.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use tokio_postgres::{Client, Statement};

use super::query_error::{QueryError, QueryResult};

/// Prepared statements that a connection keeps. The SQL of Hob is fixed, so there are fewer.
const MAX_STATEMENTS: usize = 500;

/// A connection to the server.
pub(super) struct Connection {
    pub(super) client: Client,
    statements: HashMap<String, Statement>,
    /// Which server was the current one when it was made. See `Pool::renew`.
    pub(super) generation: u64,
}

impl Connection {
    pub(super) fn new(client: Client, generation: u64) -> Self {
        Connection { client, statements: HashMap::new(), generation }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) fn prepared(&self, sql: &str) -> Option<Statement> {
        self.statements.get(sql).cloned()
    }

    pub(super) fn keep(&mut self, sql: &str, statement: &Statement) {
        if self.statements.len() >= MAX_STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(sql.to_owned(), statement.clone());
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks this thread until `future` is done, or until `deadline`.
pub(super) fn wait_until<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> QueryResult<T> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Ok(done);
        }
        match deadline {
            None => thread::park(),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(QueryError::NoAnswer);
                }
                thread::park_timeout(left);
            }
        }
    }
}

/// Sends what `future` sends first, and does not wait for the answer.
pub(super) fn send<T>(future: impl Future<Output = T>) {
    let mut future = pin!(future);
    let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}
