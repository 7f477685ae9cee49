//! Idle connections to an engine. A connection that is idle for too long is closed, whether or not another request
//! comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hob_sync::{Mutex, MutexGuard};
use tokio::runtime;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::connection::Connection;

/// The most idle connections of a shard. More connections can be active, but are closed after use.
const MAX_IDLE: usize = 128;

/// The number of threads with a shard of their own. More threads share shards.
const SHARDS: usize = 16;

/// One shard per thread, so that threads neither wait for each other nor use a connection whose events another thread
/// receives.
pub(super) struct ConnectionPool {
    pool: [Mutex<Shard>; SHARDS],
    /// A connection that is idle for longer is closed.
    idle_timeout: Duration,
}

#[derive(Default)]
struct Shard {
    /// The oldest are first.
    idle: Vec<IdleConnection>,
    /// Closes connections that are idle for too long. Runs while there are idle connections, and no longer than the
    /// shard.
    sweeper: Option<AbortOnDropHandle<()>>,
}

struct IdleConnection {
    connection: Connection,
    since: Instant,
    /// The runtime that polls its socket. No other runtime can use the connection.
    runtime_id: runtime::Id,
}

impl ConnectionPool {
    pub(super) fn new(idle_timeout: Duration) -> Arc<Self> {
        Arc::new(ConnectionPool { pool: Default::default(), idle_timeout })
    }

    /// The connection that was used last, which is the most likely to be still open.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut shard = self.shard(own_shard());
        self.close_idle(&mut shard, Instant::now());
        let runtime_id = runtime::Handle::current().id();
        // Connections of another runtime stay in the shard.
        while let Some(last) = shard.idle.iter().rposition(|idle| idle.runtime_id == runtime_id) {
            let IdleConnection { connection, .. } = shard.idle.remove(last);
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    pub(super) fn keep(pool: &Arc<Self>, connection: Connection) {
        let number = own_shard();
        let mut shard = pool.shard(number);
        let now = Instant::now();
        pool.close_idle(&mut shard, now);
        if shard.idle.len() >= MAX_IDLE {
            return;
        }
        let runtime = runtime::Handle::current();
        shard.idle.push(IdleConnection { connection, since: now, runtime_id: runtime.id() });
        // A task whose runtime has ended is finished too.
        if shard.sweeper.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            let sweeper = runtime.spawn(sweep(Arc::downgrade(pool), number, pool.idle_timeout));
            shard.sweeper = Some(AbortOnDropHandle::new(sweeper));
        }
    }

    /// Closes connections that were idle for too long.
    fn close_idle(&self, shard: &mut Shard, now: Instant) {
        let stale = shard.idle.partition_point(|idle| now.duration_since(idle.since) >= self.idle_timeout);
        shard.idle.drain(..stale);
    }

    /// The same for a shard that no request may use again. Returns the time of the next sweep; `None` without idle
    /// connections.
    fn sweep(&self, number: usize) -> Option<Instant> {
        let mut shard = self.shard(number);
        self.close_idle(&mut shard, Instant::now());
        let oldest = shard.idle.first().map(|idle| idle.since + self.idle_timeout);
        if oldest.is_none() {
            // The next connection that is kept starts another.
            shard.sweeper = None;
        }
        oldest
    }

    fn shard(&self, number: usize) -> MutexGuard<'_, Shard> {
        self.pool[number].lock()
    }
}

/// The index of this thread's shard.
fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN_SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    OWN_SHARD.with(|own_shard| *own_shard)
}

/// Runs each time a connection may have been idle for too long.
async fn sweep(pool: Weak<ConnectionPool>, number: usize, first: Duration) {
    let mut next = Some(Instant::now() + first);
    while let Some(time) = next {
        tokio::time::sleep_until(time).await;
        next = pool.upgrade().and_then(|pool| pool.sweep(number));
    }
}

#[cfg(all(test, shuttle))]
#[path = "connection_pool_interleaving_tests.rs"]
mod interleavings;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::wire::direct::read_timeout::ReadTimeout;

    /// Longer than any of these tests takes on a busy machine. No test waits for it.
    const LONG: Duration = Duration::from_secs(60);

    /// A connection and its other end.
    async fn connection() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Connection::new(socket, ReadTimeout::new(LONG)), listener.accept().await.unwrap().0)
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[tokio::test]
    async fn a_connection_that_idles_is_closed_without_another_request() {
        let pool = ConnectionPool::new(Duration::from_millis(1));
        for _ in 0..2 {
            let (connection, mut other_end) = connection().await;
            ConnectionPool::keep(&pool, connection);
            let heard = tokio::time::timeout(LONG, other_end.read(&mut [0])).await;
            assert_eq!(heard.expect("it is closed").unwrap(), 0);
        }
        assert!(pool.take().is_none());
    }

    #[tokio::test]
    async fn dropped_pools_are_not_watched() {
        let pool = ConnectionPool::new(LONG);
        let (connection, mut other_end) = connection().await;
        ConnectionPool::keep(&pool, connection);
        assert_eq!(runtime::Handle::current().metrics().num_alive_tasks(), 1);
        drop(pool);
        assert_eq!(other_end.read(&mut [0]).await.unwrap(), 0);
        tokio::task::yield_now().await;
        assert_eq!(runtime::Handle::current().metrics().num_alive_tasks(), 0);
    }

    #[test]
    fn runtimes_that_share_a_shelf_leave_each_other_their_connections() {
        let (one, other, pool) = (runtime(), runtime(), ConnectionPool::new(LONG));
        let _other_end = one.block_on(async {
            let (connection, other_end) = connection().await;
            ConnectionPool::keep(&pool, connection);
            other_end
        });
        assert!(other.block_on(async { pool.take() }).is_none());
        assert!(one.block_on(async { pool.take() }).is_some());
    }

    #[test]
    fn connections_of_an_ended_runtime_are_closed_by_another() {
        let (gone, pool) = (runtime(), ConnectionPool::new(Duration::from_millis(1)));
        let keep = async |pool: &Arc<ConnectionPool>| {
            let (connection, other_end) = connection().await;
            ConnectionPool::keep(pool, connection);
            other_end.into_std().unwrap()
        };
        let left = gone.block_on(keep(&pool));
        drop(gone);
        runtime().block_on(async {
            let _kept = keep(&pool).await;
            let mut left = TcpStream::from_std(left).unwrap();
            let heard = tokio::time::timeout(LONG, left.read(&mut [0])).await;
            assert_eq!(heard.expect("it is closed").unwrap(), 0);
        });
    }

    #[tokio::test]
    async fn a_connection_that_the_engine_has_closed_is_not_used() {
        let pool = ConnectionPool::new(LONG);
        let (open, _other_end) = connection().await;
        ConnectionPool::keep(&pool, open);
        let (closed, other_end) = connection().await;
        drop(other_end);
        closed.heard_something().await;
        ConnectionPool::keep(&pool, closed);
        assert!(pool.take().is_some_and(|connection| connection.is_usable()));
        assert!(pool.take().is_none());
    }
}
