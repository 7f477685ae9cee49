//! A real PostgreSQL with pgvector, as a process of its own. `./dev test` installs it.
//!
//! One server is shared by all tests of all processes: the first one starts it, and it ends a while after the last one. A test of
//! faults starts its own.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::shared_directory::shared_directory;
use crate::{free_port, part, repository};

/// The directory that contains `bin/postgres`.
const INSTALLATION: &str = "HOB_TEST_POSTGRES";

/// The port in the name of the socket of the shared server. It listens on no port.
const SHARED_PORT: u16 = 5432;

/// A server. A private one ends with its value.
pub struct PostgresServer {
    directory: PathBuf,
    port: u16,
    kind: Kind,
}

enum Kind {
    /// The lock keeps the server alive.
    Shared {
        _users: File,
    },
    Private {
        supervisor: Supervisor,
        _directory: tempfile::TempDir,
    },
}

struct Supervisor {
    child: Child,
    /// `None` once it is dropped.
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl PostgresServer {
    /// The server of all tests.
    pub fn shared() -> &'static PostgresServer {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(PostgresServer::join_shared)
    }

    fn join_shared() -> PostgresServer {
        let installation = part(INSTALLATION);
        // A socket's path must be short. Checkouts with other versions have another server.
        let name =
            installation.bytes().fold(0_u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
        let directory = shared_directory().join(format!("hob-test-postgres-{name:x}"));
        fs::create_dir_all(&directory).expect("a directory");
        let users = lock_file(&directory.join("users"));
        users.lock_shared().expect("locked");
        let starting = lock_file(&directory.join("starting"));
        starting.lock().expect("locked");
        if !is_alive(&installation, &directory) {
            let log = directory.join("log");
            let _ = fs::remove_file(directory.join("ready"));
            let output = File::create(&log).expect("a log");
            let started = supervise(&["shared", &directory.to_string_lossy()])
                .stdin(Stdio::null())
                .stdout(output.try_clone().expect("a log"))
                .stderr(output)
                .status()
                .expect("a process");
            let said = || fs::read_to_string(&log).unwrap_or_default();
            assert!(started.success(), "PostgreSQL does not start:\n{}", said());
        }
        PostgresServer { directory, port: SHARED_PORT, kind: Kind::Shared { _users: users } }
    }

    /// A server of its own, with a port, that a test can stop.
    pub fn start() -> PostgresServer {
        Self::start_private("private", &[])
    }

    /// A standby of this server, which must be a private one. A commit of this server waits for the standby from then on, so that no
    /// acknowledged write is lost when the standby replaces it.
    pub fn start_standby(&self) -> PostgresServer {
        let (directory, port) = (self.directory.to_string_lossy().into_owned(), self.port.to_string());
        let standby = Self::start_private("standby", &[&directory, &port]);
        while self.query("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") != "1" {
            thread::sleep(Duration::from_millis(20));
        }
        // The standby has the settings from before, so it waits for no other one after it is promoted.
        self.run_sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.run_sql("SELECT pg_reload_conf()");
        // The server reads its settings a moment later.
        while self.query("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") != "1" {
            thread::sleep(Duration::from_millis(20));
        }
        standby
    }

    /// Makes a standby the primary.
    pub fn promote(&self) {
        assert_eq!(self.query("SELECT pg_promote()"), "t");
    }

    fn start_private(kind: &str, more: &[&str]) -> PostgresServer {
        let owner = tempfile::Builder::new().prefix("hob-pg-").tempdir().expect("a directory");
        let directory = owner.path().to_owned();
        let port = free_port();
        let mut arguments = vec![kind.to_owned(), directory.to_string_lossy().into_owned(), port.to_string()];
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut child = supervise(&arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(directory.join("log")).expect("a log"))
            .spawn()
            .expect("started");
        let commands = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut supervisor = Supervisor { child, commands, answers };
        supervisor.wait_for("started", &directory);
        PostgresServer { directory, port, kind: Kind::Private { supervisor, _directory: owner } }
    }

    /// An empty database, which is dropped with its value.
    pub fn create_database(&self) -> TestDatabase {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        // A copy of the files is faster than one through the log.
        self.run_each(&[
            &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
            &format!("CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy"),
        ]);
        TestDatabase { name, directory: self.directory.clone(), port: self.port }
    }

    /// The URL of a database of a private server over TCP, with a password.
    pub fn tcp_url(&self, database: &TestDatabase) -> String {
        format!("postgres://hob:hob-test@127.0.0.1:{}/{}", self.port, database.name)
    }

    /// The same with several hosts: the standby, and then this server.
    pub fn failover_url(&self, standby: &PostgresServer, database: &TestDatabase) -> String {
        format!(
            "postgres://hob:hob-test@127.0.0.1:{},127.0.0.1:{}/{}?target_session_attrs=read-write",
            standby.port, self.port, database.name
        )
    }

    /// The first value that a statement returns, as text.
    pub fn query(&self, sql: &str) -> String {
        self.run_each(&[sql])
    }

    /// Runs each of these in a transaction of its own. The values that they return, as text.
    fn run_each(&self, statements: &[&str]) -> String {
        match try_psql(&self.directory, self.port, statements) {
            Ok(value) => value.trim().to_owned(),
            Err(said) => panic!("{statements:?} fails:\n{said}"),
        }
    }

    /// Runs SQL as the owner of the server.
    pub fn run_sql(&self, sql: &str) {
        self.query(sql);
    }

    /// Ends the server as an operator does: sessions are closed with a message. Only for a private server.
    pub fn stop(&mut self) {
        self.command("stop");
    }

    /// Ends the server as a crash does.
    pub fn kill(&mut self) {
        self.command("kill");
    }

    /// Starts it again, with the same port and data.
    pub fn start_again(&mut self) {
        self.command("start");
    }

    fn command(&mut self, command: &str) {
        let Kind::Private { supervisor, .. } = &mut self.kind else {
            panic!("other tests use the shared server");
        };
        let commands = supervisor.commands.as_mut().expect("it runs");
        writeln!(commands, "{command}").expect("it listens");
        supervisor.wait_for("done", &self.directory);
    }
}

impl Supervisor {
    fn wait_for(&mut self, word: &str, directory: &Path) {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("text");
        let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
        assert_eq!(line.trim_end(), word, "PostgreSQL fails:\n{}", log());
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The end of its stdin ends the server and then itself.
        self.commands = None;
        let _ = self.child.wait();
    }
}

/// An empty database of a server. It is dropped with its value.
pub struct TestDatabase {
    name: String,
    directory: PathBuf,
    port: u16,
}

impl TestDatabase {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The Unix socket of the server.
    pub fn socket(&self) -> PathBuf {
        self.directory.join(format!(".s.PGSQL.{}", self.port))
    }

    /// The URL over the Unix socket.
    pub fn url(&self) -> String {
        let directory = self.directory.to_string_lossy().replace('/', "%2F");
        format!("postgres://hob@/{}?host={directory}&port={}", self.name, self.port)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // A test may have stopped its server.
        let drop = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let _ = try_psql(&self.directory, self.port, &[&drop]);
    }
}

fn lock_file(path: &Path) -> File {
    File::options().create(true).truncate(false).read(true).write(true).open(path).expect("a file")
}

/// A server that is gone refuses at once. One that is slow must not count as gone: another one would take its data.
fn is_alive(installation: &str, directory: &Path) -> bool {
    directory.join("ready").exists()
        && Command::new(format!("{installation}/bin/pg_isready"))
            .args(["-q", "-t", "240", "-U", "hob", "-d", "postgres", "-p", &SHARED_PORT.to_string(), "-h"])
            .arg(directory)
            .status()
            .expect("started")
            .success()
}

fn supervise(arguments: &[&str]) -> Command {
    let mut command = Command::new(part("HOB_TEST_PYTHON"));
    command.arg(repository::root().join("tests/parts/postgres.py")).arg(part(INSTALLATION)).args(arguments);
    command
}

fn try_psql(directory: &Path, port: u16, statements: &[&str]) -> Result<String, String> {
    let done = Command::new(format!("{}/bin/psql", part(INSTALLATION)))
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "hob", "-d", "postgres"])
        .args(statements.iter().flat_map(|sql| ["-c", sql]))
        .arg("-p")
        .arg(port.to_string())
        .arg("-h")
        .arg(directory)
        .stdin(Stdio::null())
        .output()
        .expect("started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

/// Makes two tests of each function of a suite: one for SQLite, one for PostgreSQL. The functions take a constructor of stores.
#[macro_export]
macro_rules! on_both_databases {
    ($sqlite:ident, $postgres:ident: $($test:ident),+ $(,)?) => {
        mod on_sqlite {
            $(
                #[test]
                fn $test() {
                    super::$test(super::$sqlite);
                }
            )+
        }

        mod on_postgres {
            $(
                #[test]
                fn $test() {
                    super::$test(super::$postgres);
                }
            )+
        }
    };
}
