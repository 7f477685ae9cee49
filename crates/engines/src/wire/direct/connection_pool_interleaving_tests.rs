//! Requests and the sweeper use the same shard at the same time, in many orders. All threads of such a test have one shard.

use std::net::{TcpListener, TcpStream as StdStream};

use hob_sync::{explore, thread};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::wire::direct::read_timeout::ReadTimeout;

const LONG: Duration = Duration::from_secs(60);

/// A runtime that never runs: its sockets hear nothing, and its tasks wait.
fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// One real connection. Those of the tests are copies of its socket, because thousands of connections need too many ports.
fn socket() -> (StdStream, StdStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let socket = StdStream::connect(listener.local_addr().expect("an address")).expect("connected");
    socket.set_nonblocking(true).expect("not blocking");
    (socket, listener.accept().expect("accepted").0)
}

fn connection(socket: &StdStream) -> Connection {
    let copy = TcpStream::from_std(socket.try_clone().expect("copied")).expect("registered");
    Connection::new(copy, ReadTimeout::new(LONG))
}

/// Keeps and takes connections while the sweeper runs. What was kept and not taken.
fn use_pool(socket: &Arc<StdStream>, idle_timeout: Duration) -> usize {
    let pool = ConnectionPool::new(idle_timeout);
    let request = |_| {
        let (pool, socket) = (Arc::clone(&pool), Arc::clone(socket));
        thread::spawn(move || {
            let kept = pool.take();
            let count = usize::from(kept.is_some());
            ConnectionPool::keep(&pool, kept.unwrap_or_else(|| connection(&socket)));
            count
        })
    };
    let requests: Vec<_> = (0..3).map(request).collect();
    let sweep = {
        let pool = Arc::clone(&pool);
        thread::spawn(move || (0..2).for_each(|_| _ = pool.sweep(own_shard())))
    };
    let reused: usize = requests.into_iter().map(|request| request.join().expect("no panic")).sum();
    sweep.join().expect("no panic");
    let shard = pool.shard(own_shard());
    let idle = shard.idle.len();
    assert!(idle == 0 || shard.sweeper.is_some(), "idle connections have a sweeper");
    assert!(idle + reused <= 3, "a connection is in the pool once");
    idle
}

#[test]
fn idle_connections_always_have_a_sweeper() {
    let (runtime, (socket, _other_end)) = (runtime(), socket());
    let _entered = runtime.enter();
    let socket = Arc::new(socket);
    explore(move || {
        // No wait is over: the connections stay, until they are taken.
        assert!(use_pool(&socket, LONG) > 0);
        // Every wait is over at once.
        use_pool(&socket, Duration::ZERO);
    });
}
