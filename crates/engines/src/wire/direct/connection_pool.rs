//! Connections to an engine that wait for the next request. They are let go when they have idled for too long, whether or not
//! another request comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::runtime;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::connection::Link;

/// Connections on a shelf. More than this in flight at once is served, but not kept.
const MOST_IDLE: usize = 128;

/// Threads that have a shelf to themselves; more than this share.
const SHELVES: usize = 16;

/// By thread, so that threads neither wait for one another nor use a connection whose news another one gets.
pub(super) struct Shelves {
    shelves: [Mutex<Shelf>; SHELVES],
    /// A connection that idled longer than this is let go.
    idle_timeout: Duration,
}

#[derive(Default)]
struct Shelf {
    /// The oldest are first.
    idle: Vec<Idle>,
    /// Lets go of what idles for too long. Lives while there is something to watch, and no longer than the shelf.
    sweeper: Option<AbortOnDropHandle<()>>,
}

struct Idle {
    link: Link,
    since: Instant,
    /// Who watches its socket; nobody else can use it.
    watcher: runtime::Id,
}

impl Shelves {
    pub(super) fn new(idle_timeout: Duration) -> Arc<Self> {
        Arc::new(Shelves { shelves: Default::default(), idle_timeout })
    }

    /// The connection used last, which is the likeliest to be still open.
    pub(super) fn take(&self) -> Option<Link> {
        let mut shelf = self.shelf(own());
        self.let_go(&mut shelf);
        let watcher = runtime::Handle::current().id();
        // Those of another runtime on this shelf are left to it.
        while let Some(last) = shelf.idle.iter().rposition(|idle| idle.watcher == watcher) {
            let Idle { link, .. } = shelf.idle.remove(last);
            if link.is_usable() {
                return Some(link);
            }
        }
        None
    }

    pub(super) fn keep(shelves: &Arc<Self>, link: Link) {
        let number = own();
        let mut shelf = shelves.shelf(number);
        shelves.let_go(&mut shelf);
        if shelf.idle.len() >= MOST_IDLE {
            return;
        }
        let runtime = runtime::Handle::current();
        shelf.idle.push(Idle { link, since: Instant::now(), watcher: runtime.id() });
        // One whose runtime is gone has finished too.
        if shelf.sweeper.as_ref().is_none_or(AbortOnDropHandle::is_finished) {
            let sweeper = runtime.spawn(sweep(Arc::downgrade(shelves), number, shelves.idle_timeout));
            shelf.sweeper = Some(AbortOnDropHandle::new(sweeper));
        }
    }

    /// Closes what idled for too long.
    fn let_go(&self, shelf: &mut Shelf) {
        let now = Instant::now();
        let stale = shelf.idle.partition_point(|idle| now.duration_since(idle.since) >= self.idle_timeout);
        shelf.idle.drain(..stale);
    }

    /// The same for a shelf that nobody may come to again. Says when to come back; `None` when there is nothing left to watch.
    fn sweep(&self, number: usize) -> Option<Instant> {
        let mut shelf = self.shelf(number);
        self.let_go(&mut shelf);
        let oldest = shelf.idle.first().map(|idle| idle.since + self.idle_timeout);
        if oldest.is_none() {
            // Whoever keeps the next connection starts another.
            shelf.sweeper = None;
        }
        oldest
    }

    fn shelf(&self, number: usize) -> MutexGuard<'_, Shelf> {
        self.shelves[number].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of this thread's shelf.
fn own() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHELVES;
    }
    OWN.with(|own| *own)
}

/// Comes whenever a connection may have idled for too long.
async fn sweep(shelves: Weak<Shelves>, number: usize, first: Duration) {
    let mut next = Some(Instant::now() + first);
    while let Some(time) = next {
        tokio::time::sleep_until(time).await;
        next = shelves.upgrade().and_then(|shelves| shelves.sweep(number));
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::wire::direct::read_timeout::Patience;

    /// Longer than any of these tests takes on a busy machine; none of them waits for it to pass.
    const LONG: Duration = Duration::from_secs(60);

    /// A connection and its other end.
    async fn link() -> (Link, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Link::new(socket, Patience::new(LONG)), listener.accept().await.unwrap().0)
    }

    fn runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    #[tokio::test]
    async fn a_connection_that_idles_is_closed_without_another_request() {
        let shelves = Shelves::new(Duration::from_millis(1));
        for _ in 0..2 {
            let (link, mut other_end) = link().await;
            Shelves::keep(&shelves, link);
            let heard = tokio::time::timeout(LONG, other_end.read(&mut [0])).await;
            assert_eq!(heard.expect("it is closed").unwrap(), 0);
        }
        assert!(shelves.take().is_none());
    }

    #[tokio::test]
    async fn nobody_watches_shelves_that_are_gone() {
        let shelves = Shelves::new(LONG);
        let (link, mut other_end) = link().await;
        Shelves::keep(&shelves, link);
        assert_eq!(runtime::Handle::current().metrics().num_alive_tasks(), 1);
        drop(shelves);
        assert_eq!(other_end.read(&mut [0]).await.unwrap(), 0);
        tokio::task::yield_now().await;
        assert_eq!(runtime::Handle::current().metrics().num_alive_tasks(), 0);
    }

    #[test]
    fn runtimes_that_share_a_shelf_leave_each_other_their_connections() {
        let (one, other, shelves) = (runtime(), runtime(), Shelves::new(LONG));
        let _other_end = one.block_on(async {
            let (link, other_end) = link().await;
            Shelves::keep(&shelves, link);
            other_end
        });
        assert!(other.block_on(async { shelves.take() }).is_none());
        assert!(one.block_on(async { shelves.take() }).is_some());
    }

    #[test]
    fn what_a_runtime_that_is_gone_has_left_is_let_go_by_another() {
        let (gone, shelves) = (runtime(), Shelves::new(Duration::from_millis(1)));
        let keep = async |shelves: &Arc<Shelves>| {
            let (link, other_end) = link().await;
            Shelves::keep(shelves, link);
            other_end.into_std().unwrap()
        };
        let left = gone.block_on(keep(&shelves));
        drop(gone);
        runtime().block_on(async {
            let _kept = keep(&shelves).await;
            let mut left = TcpStream::from_std(left).unwrap();
            let heard = tokio::time::timeout(LONG, left.read(&mut [0])).await;
            assert_eq!(heard.expect("it is closed").unwrap(), 0);
        });
    }

    #[tokio::test]
    async fn a_connection_that_the_engine_has_closed_is_not_used() {
        let shelves = Shelves::new(LONG);
        let (open, _other_end) = link().await;
        Shelves::keep(&shelves, open);
        let (closed, mut other_end) = link().await;
        Shelves::keep(&shelves, closed);
        tokio::io::AsyncWriteExt::shutdown(&mut other_end).await.unwrap();
        drop(other_end);
        assert!(shelves.take().is_some_and(|link| link.is_usable()));
        assert!(shelves.take().is_none());
    }
}
