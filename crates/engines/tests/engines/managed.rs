//! A managed server that is a real process: a small script that behaves like `llama-server`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use hob_core::Backoff;
use hob_engines::managed::ManagedState;
use hob_engines::{Endpoint, EndpointOptions, ManagedError, ManagedOptions, ManagedServer};
use hob_process::ChildStartError;
use hob_testkit::free_port;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

/// Serves `/health` on the given port, and records its arguments.
const SERVER: &str = r#"#!/usr/bin/env python3
import http.server, pathlib, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass

here = pathlib.Path(sys.argv[0]).parent
with open(here / "arguments", "a") as log:
    log.write(" ".join(sys.argv[1:]) + "\n")
if (here / "broken").exists():
    sys.exit("broken")
print("x" * 100_000, file=sys.stderr)
port = int(sys.argv[sys.argv.index("--port") + 1])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"#;

/// Longer than any of these tests takes. A wait that is not over by then has failed.
const WAIT_LIMIT: Duration = Duration::from_secs(240);

struct Bench {
    directory: TempDir,
    address: String,
}

impl Bench {
    async fn new() -> Self {
        Bench { directory: TempDir::new().unwrap(), address: format!("127.0.0.1:{}", free_port()) }
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn options(&self, binary: PathBuf) -> ManagedOptions {
        ManagedOptions {
            backoff: Backoff { first: Duration::from_millis(10), longest: Duration::from_millis(50) },
            ..ManagedOptions::new(binary, format!("http://{}", self.address))
        }
    }

    /// Waits until the server answers a probe. On a busy machine one may be late.
    async fn until_healthy(&self) {
        let options = EndpointOptions::new("llamacpp", format!("http://{}", self.address));
        let endpoint = Endpoint::new(options).unwrap();
        let healthy = async {
            while !endpoint.probe("/health").await {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(WAIT_LIMIT, healthy)
            .await
            .unwrap_or_else(|_| panic!("the server is not healthy"));
    }

    /// The arguments of every start.
    fn arguments(&self) -> Vec<String> {
        let log = fs::read_to_string(self.directory.path().join("arguments")).unwrap();
        log.lines().map(str::to_owned).collect()
    }
}

fn is_alive(pid: u32) -> bool {
    test_kill_process(pid_of(pid)).is_ok()
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

fn running_pid(server: &ManagedServer) -> u32 {
    match *server.state().borrow() {
        ManagedState::Running { pid } => pid,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_managed_server_starts_and_stops_with_us() {
    let bench = Bench::new().await;
    let options = ManagedOptions {
        model: Some("/models/a b.gguf".into()),
        args: vec!["--jinja".into(), "-c".into(), "4096".into()],
        ..bench.options(bench.script("llama-server", SERVER))
    };
    let server = ManagedServer::start(options).await.unwrap();
    bench.until_healthy().await;
    let port = bench.address.split_once(':').unwrap().1;
    assert_eq!(
        bench.arguments(),
        [format!("--host 127.0.0.1 --port {port} -m /models/a b.gguf --jinja -c 4096")]
    );

    let (pid, state) = (running_pid(&server), server.state());
    assert!(is_alive(pid));
    server.shutdown().await;
    assert!(!is_alive(pid));
    assert_eq!(*state.borrow(), ManagedState::Stopped);
}

#[tokio::test]
async fn a_managed_server_that_dies_is_started_again() {
    let bench = Bench::new().await;
    let server = ManagedServer::start(bench.options(bench.script("llama-server", SERVER))).await.unwrap();
    let first = running_pid(&server);
    kill_process(pid_of(first), Signal::KILL).unwrap();

    let mut state = server.state();
    let revived = state.wait_for(|state| matches!(state, ManagedState::Running { pid } if *pid != first));
    tokio::time::timeout(WAIT_LIMIT, revived).await.unwrap().unwrap();
    bench.until_healthy().await;
    assert_eq!(bench.arguments().len(), 2);

    let second = running_pid(&server);
    server.shutdown().await;
    assert_eq!([first, second].map(is_alive), [false, false]);
}

#[tokio::test]
async fn a_server_that_fails_to_come_back_is_tried_until_it_does() {
    let bench = Bench::new().await;
    let server = ManagedServer::start(bench.options(bench.script("llama-server", SERVER))).await.unwrap();
    let broken = bench.directory.path().join("broken");
    fs::write(&broken, "").unwrap();
    let first = running_pid(&server);
    kill_process(pid_of(first), Signal::KILL).unwrap();
    tokio::time::timeout(WAIT_LIMIT, async {
        while bench.arguments().len() < 3 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("two failed starts");
    assert_eq!(*server.state().borrow(), ManagedState::Restarting);

    fs::remove_file(&broken).unwrap();
    let mut state = server.state();
    let revived = state.wait_for(|state| matches!(state, ManagedState::Running { .. }));
    tokio::time::timeout(WAIT_LIMIT, revived).await.unwrap().unwrap();
    bench.until_healthy().await;
    server.shutdown().await;
}

#[tokio::test]
async fn a_dropped_server_is_stopped_too() {
    let bench = Bench::new().await;
    let server = ManagedServer::start(bench.options(bench.script("llama-server", SERVER))).await.unwrap();
    let (pid, mut state) = (running_pid(&server), server.state());
    drop(server);
    let stopped = state.wait_for(|state| *state == ManagedState::Stopped);
    tokio::time::timeout(WAIT_LIMIT, stopped).await.unwrap().unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn children_of_a_wrapper_script_end_with_it() {
    let bench = Bench::new().await;
    bench.script("real-server", SERVER);
    let wrapper =
        bench.script("llama-server", "#!/bin/sh\n\"$(dirname \"$0\")/real-server\" \"$@\" &\nwait\n");
    let server = ManagedServer::start(bench.options(wrapper)).await.unwrap();
    bench.until_healthy().await;
    server.shutdown().await;
    tokio::time::timeout(WAIT_LIMIT, async { while TcpStream::connect(&bench.address).await.is_ok() {} })
        .await
        .expect("the listener is closed");
}

#[tokio::test]
async fn a_server_that_will_not_stop_is_killed() {
    let bench = Bench::new().await;
    let deaf = SERVER.replace(
        "import http.server, pathlib, sys\n",
        "import http.server, pathlib, signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n",
    );
    let options = ManagedOptions {
        stop_timeout: Duration::from_millis(50),
        ..bench.options(bench.script("llama-server", &deaf))
    };
    let server = ManagedServer::start(options).await.unwrap();
    let pid = running_pid(&server);
    tokio::time::timeout(WAIT_LIMIT, server.shutdown()).await.unwrap();
    assert!(!is_alive(pid));
}

#[tokio::test]
async fn a_managed_server_that_ends_at_once_is_reported_with_its_output() {
    let bench = Bench::new().await;
    let binary = bench.script(
        "llama-server",
        "#!/bin/sh\necho 'loading model' >&2\necho 'error: no such file' >&2\nexit 3\n",
    );
    let error = ManagedServer::start(bench.options(binary.clone())).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "'{}' exited (exit status: 3) before it was ready; last lines of its output:\nloading model\nerror: no such file",
            binary.display()
        )
    );
}

#[tokio::test]
async fn a_server_that_never_gets_ready_is_given_up() {
    let bench = Bench::new().await;
    let binary = bench.script(
        "llama-server",
        "#!/bin/sh\necho $$ > \"$(dirname \"$0\")/pid\"\necho 'still loading' >&2\nexec sleep 600\n",
    );
    let mut start_timeout = Duration::from_secs(2);
    loop {
        let options = ManagedOptions { start_timeout, ..bench.options(binary.clone()) };
        let error = ManagedServer::start(options).await.unwrap_err();
        let ManagedError::NotReady { stderr, .. } = &error else { panic!("{error:?}") };
        // On a busy machine the time may be up before the script writes anything.
        if !stderr.is_empty() {
            assert_eq!(stderr, "still loading");
            break;
        }
        start_timeout *= 2;
    }
    let pid = fs::read_to_string(bench.directory.path().join("pid")).unwrap();
    let pid = pid.trim().parse().unwrap();
    tokio::time::timeout(WAIT_LIMIT, async {
        while is_alive(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("nothing is left of it");
}

#[tokio::test]
async fn a_binary_that_cannot_be_run_has_its_own_error() {
    let bench = Bench::new().await;
    let missing = bench.directory.path().join("no-such-server");
    let error = ManagedServer::start(bench.options(missing)).await.unwrap_err();
    assert!(matches!(error, ManagedError::Start(ChildStartError::Missing { .. })), "{error:?}");

    let plain = bench.script("plain", SERVER);
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).unwrap();
    let error = ManagedServer::start(bench.options(plain)).await.unwrap_err();
    assert!(matches!(error, ManagedError::Start(ChildStartError::NotExecutable { .. })), "{error:?}");
}

#[tokio::test]
async fn another_server_on_the_port_is_detected() {
    let bench = Bench::new().await;
    let _stranger = TcpListener::bind(&bench.address).await.unwrap();
    let binary = bench.script("llama-server", SERVER);
    let error = ManagedServer::start(bench.options(binary)).await.unwrap_err();
    assert!(matches!(error, ManagedError::AddressTaken { .. }), "{error:?}");
    assert!(!bench.directory.path().join("arguments").exists(), "it was not even started");
}

#[tokio::test]
async fn an_unusable_address_is_refused() {
    for url in ["nonsense", "https://localhost:8080", "unix:/run/llama", "http://no.such.host.invalid:1"] {
        let error = ManagedServer::start(ManagedOptions::new("llama-server", url)).await.unwrap_err();
        assert!(matches!(error, ManagedError::Address { .. }), "{url}: {error:?}");
    }
}
