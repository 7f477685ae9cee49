//! The processes that are measured: how they are started, and what they have used.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a gateway may take to listen.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

pub enum Kind {
    StandIn,
    Nginx(PathBuf),
    /// nginx in front of several gateways, at these ports.
    Balancer(PathBuf, Vec<u16>),
    Hob {
        binary: PathBuf,
        agent: &'static str,
        watch: Watch,
        /// PostgreSQL instead of files.
        database_url: Option<String>,
    },
    /// A name and a shell command.
    Peer(String, String),
}

/// How closely a Hob watches itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// With default settings: every call recorded, metrics counted, warnings logged.
    Usual,
    /// The same, and a log that says more.
    Closely,
    Nothing,
}

/// A process that listens. Killed with its value, and everything it has started too.
pub struct Gateway {
    pub name: String,
    pub port: u16,
    /// The key that requests have.
    pub key: String,
    /// From the start of the process until it took a connection.
    pub ready_after: Duration,
    process: Child,
    directory: TempDir,
}

impl Gateway {
    pub async fn start(kind: Kind, engine: u16) -> Self {
        Self::start_in(tempfile::tempdir().expect("a directory"), kind, engine).await
    }

    /// With a directory in which there may be something already.
    pub async fn start_in(directory: TempDir, kind: Kind, engine: u16) -> Self {
        let home = directory.path();
        let began = Instant::now();
        let (name, port, mut command) = match &kind {
            Kind::StandIn => {
                let mut command = Command::new(std::env::current_exe().expect("our own path"));
                command.arg("stand-in");
                ("engine itself".to_owned(), 0, command)
            }
            Kind::Nginx(binary) => {
                let port = free_port();
                ("nginx".to_owned(), port, nginx(binary, home, &nginx_conf(port, &[engine])))
            }
            Kind::Balancer(binary, gateways) => {
                let port = free_port();
                let name = format!("nginx before {}", gateways.len());
                (name, port, nginx(binary, home, &nginx_conf(port, gateways)))
            }
            Kind::Hob { binary, agent, watch, database_url } => {
                let port = free_port();
                fs::write(home.join("config.toml"), hob_conf(port, engine, agent, *watch)).expect("written");
                let mut command = Command::new(binary);
                command.arg("serve").env("HOB_HOME", home).env_remove("HOB_CONFIG").env_remove("HOB_LOG");
                let mut name =
                    if agent.is_empty() { "hob".to_owned() } else { format!("hob, agent {agent}") };
                match database_url {
                    Some(url) => command.env("HOB_DATABASE_URL", url),
                    None => command.env_remove("HOB_DATABASE_URL"),
                };
                match watch {
                    Watch::Usual => {}
                    Watch::Closely => {
                        command.env("HOB_LOG", "warn,hob=info");
                        name.push_str(", watched");
                    }
                    Watch::Nothing => {
                        command.env("HOB_LOG", "off");
                        name.push_str(", unwatched");
                    }
                }
                (name, port, command)
            }
            Kind::Peer(name, text) => {
                let port = free_port();
                let text = text.replace("{port}", &port.to_string()).replace("{engine}", &engine.to_string());
                let mut command = Command::new("sh");
                command.args(["-c", &format!("exec {text}")]).current_dir(home);
                (name.clone(), port, command)
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        let mut output = BufReader::new(process.stdout.take().expect("it was asked for"));
        let port = match kind {
            Kind::StandIn => {
                let mut line = String::new();
                output.read_line(&mut line).expect("it prints its port");
                line.trim().parse().expect("a port")
            }
            _ => port,
        };
        // What it writes is read, so that it never waits for us.
        std::thread::spawn(move || std::io::copy(&mut output, &mut std::io::sink()));
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(began.elapsed() < WAIT_LIMIT, "{name} does not listen");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let key = "sk-bench".to_owned();
        Gateway { name, port, key, ready_after: began.elapsed(), process, directory }
    }

    /// The same, asked with this key.
    pub fn asked_with(mut self, key: String) -> Self {
        self.key = key;
        self
    }

    /// Where it keeps its files.
    pub fn home(&self) -> &Path {
        self.directory.path()
    }

    /// Processor time that each thread of it and of its children has used so far.
    pub fn thread_times(&self) -> ThreadTimes {
        ThreadTimes(self.family().iter().flat_map(|pid| run_times(*pid)).collect())
    }

    /// Memory that it and its children have now, in MB.
    pub fn resident_mb(&self) -> f64 {
        let kilobytes: u64 = self.family().iter().filter_map(|pid| resident_kb(*pid)).sum();
        kilobytes as f64 / 1024.0
    }

    /// The process and all it has started.
    fn family(&self) -> Vec<u32> {
        let mut family = vec![self.process.id()];
        let mut at = 0;
        while let Some(pid) = family.get(at) {
            let children = format!("/proc/{pid}/task/{pid}/children");
            let children = fs::read_to_string(children).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            at += 1;
        }
        family
    }
}

/// How long threads have run, by their ids.
pub struct ThreadTimes(HashMap<u32, Duration>);

impl ThreadTimes {
    /// What was used since `before`. A thread that has ended since then counts nothing: a plain difference of sums would subtract all that
    /// it ever used.
    pub fn since(&self, before: &ThreadTimes) -> Duration {
        let used = |(thread, now): (&u32, &Duration)| {
            now.saturating_sub(before.0.get(thread).copied().unwrap_or_default())
        };
        self.0.iter().map(used).sum()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The parents first: nginx would start a new process for one that has ended.
        for pid in self.family() {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).stderr(Stdio::null()).status();
        }
        let _ = self.process.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// How long each thread of a process has run. The usual counters of a process have steps of 10 ms, which is as much as a hundred
/// streams cost.
fn run_times(pid: u32) -> Vec<(u32, Duration)> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let run_time = |thread: fs::DirEntry| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        let nanoseconds = text.split_whitespace().next()?.parse().ok()?;
        Some((thread.file_name().to_str()?.parse().ok()?, Duration::from_nanos(nanoseconds)))
    };
    threads.filter_map(run_time).collect()
}

fn resident_kb(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse().ok())
}

fn nginx(binary: &Path, home: &Path, conf: &str) -> Command {
    let file = home.join("nginx.conf");
    fs::write(&file, conf).expect("written");
    let mut command = Command::new(binary);
    command.arg("-p").arg(home).arg("-c").arg(file).args(["-e", "stderr"]);
    command
}

/// A proxy that does nothing but pass on.
fn nginx_conf(port: u16, targets: &[u16]) -> String {
    let servers: String = targets.iter().map(|target| format!("server 127.0.0.1:{target}; ")).collect();
    format!(
        "daemon off; worker_processes 2; pid nginx.pid; error_log stderr crit;
        events {{ worker_connections 4096; }}
        http {{
            access_log off;
            client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path f; uwsgi_temp_path u; scgi_temp_path s;
            upstream engine {{ {servers}keepalive 512; }}
            keepalive_requests 1000000000;
            server {{
                listen 127.0.0.1:{port};
                location / {{
                    proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_set_header Host $http_host; proxy_buffering off;
                }}
            }}
        }}"
    )
}

fn hob_conf(port: u16, engine: u16, agent: &str, watch: Watch) -> String {
    let watched = watch != Watch::Nothing;
    format!(
        "[server]\nhost = '127.0.0.1'\nport = {port}\nagent = '{agent}'\nmax_in_flight = 4096\n[engine]\ndefault = 'vllm'\n[engine.vllm]\nhost = 'http://127.0.0.1:{engine}'\n[telemetry]\nenabled = {watched}\nmetrics = {watched}\n"
    )
}
