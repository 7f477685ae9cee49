//! A connection to PostgreSQL that breaks while a transaction is committed, so that the client does not know how it ended.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::TestDatabase;

/// What the client sends to commit.
const COMMIT: &[u8] = b"COMMIT\0";

/// Where the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitLoss {
    /// Before the server gets the commit, so nothing is committed.
    Unsent,
    /// After the server has committed, before the client knows.
    Unconfirmed,
}

/// A port in front of the Unix socket of a test database.
pub struct CommitProxy {
    port: u16,
    database: String,
    shared: Arc<Shared>,
}

struct Shared {
    socket: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    loss: Option<CommitLoss>,
    /// Whether the server cannot be reached after the loss.
    then_away: bool,
    is_away: bool,
    has_ended: bool,
}

impl CommitProxy {
    pub fn start(database: &TestDatabase) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let shared = Arc::new(Shared { socket: database.socket(), state: Mutex::default() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            while let Ok((client, _)) = listener.accept() {
                let state = accepting.lock();
                if state.has_ended {
                    return;
                }
                if !state.is_away {
                    drop(state);
                    carry(client, &accepting);
                }
            }
        });
        CommitProxy { port, database: database.name().to_owned(), shared }
    }

    pub fn url(&self) -> String {
        format!("postgres://hob@127.0.0.1:{}/{}?sslmode=disable", self.port, self.database)
    }

    /// The connection of the next commit breaks.
    pub fn lose_next(&self, loss: CommitLoss) {
        let mut state = self.shared.lock();
        (state.loss, state.then_away) = (Some(loss), false);
    }

    /// The same, and the server cannot be reached until `come_back`.
    pub fn lose_next_and_go_away(&self, loss: CommitLoss) {
        let mut state = self.shared.lock();
        (state.loss, state.then_away) = (Some(loss), true);
    }

    pub fn come_back(&self) {
        self.shared.lock().is_away = false;
    }
}

impl Drop for CommitProxy {
    fn drop(&mut self) {
        self.shared.lock().has_ended = true;
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The loss that was asked for, once.
    fn take_loss(&self) -> Option<CommitLoss> {
        let mut state = self.lock();
        let loss = state.loss.take()?;
        state.is_away = state.then_away;
        Some(loss)
    }
}

/// Copies both ways, in two threads that end with the connection.
fn carry(client: TcpStream, shared: &Arc<Shared>) {
    let server = UnixStream::connect(&shared.socket).expect("the server listens");
    let is_lost = Arc::new(AtomicBool::new(false));
    let to_client = (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    let is_answer_lost = Arc::clone(&is_lost);
    thread::spawn(move || {
        let (mut server, mut client) = to_client;
        let mut bytes = [0; 8192];
        while let Ok(read @ 1..) = server.read(&mut bytes) {
            // The client has waited for all answers before it commits, so this is the answer to the commit.
            if is_answer_lost.load(Ordering::SeqCst) || client.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        close(&client, &server);
    });
    let shared = Arc::clone(shared);
    thread::spawn(move || {
        let (mut client, mut server) = (client, server);
        let mut bytes = [0; 8192];
        // The end of what was sent before, because a message may arrive in parts.
        let mut sent: Vec<u8> = Vec::new();
        while let Ok(read @ 1..) = client.read(&mut bytes) {
            sent.extend(&bytes[..read]);
            if sent.windows(COMMIT.len()).any(|window| window == COMMIT) {
                sent.clear();
                match shared.take_loss() {
                    Some(CommitLoss::Unsent) => break,
                    Some(CommitLoss::Unconfirmed) => is_lost.store(true, Ordering::SeqCst),
                    None => {}
                }
            }
            sent.drain(..sent.len().saturating_sub(COMMIT.len()));
            if server.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        // The answer to a commit is awaited, so that it has happened when the client sees the end.
        if !is_lost.load(Ordering::SeqCst) {
            close(&client, &server);
        }
    });
}

fn close(client: &TcpStream, server: &UnixStream) {
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}
