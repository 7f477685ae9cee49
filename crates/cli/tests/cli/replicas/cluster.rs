//! Three replicas, the load balancer of `packaging/`, and one PostgreSQL. Replicas are killed and started again.

use std::fs::File;
use std::process::Stdio;
use std::time::{Duration, Instant};

use hob_testkit::{FakeServer, Gateway, PostgresServer, TestDatabase, free_port};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use super::engine::{EngineLog, ProcessNumber};
use super::nginx::Nginx;
use crate::home::{Home, Ran, engines_config, finish};
use crate::http;

pub const REPLICAS: usize = 3;

/// The key of the owner, for calls through the load balancer.
pub const KEY: &str = "test-key";

/// The life of a process of Hob.
#[derive(Debug, Clone)]
pub struct Life {
    /// Where it listens.
    pub address: String,
    pub began: Instant,
    /// When it was killed; `None` if it was not.
    pub killed: Option<Instant>,
}

pub struct Cluster {
    pub lives: Vec<Life>,
    replicas: Vec<Replica>,
    engines: EngineLog,
    gateway_url: String,
    database_url: String,
    nginx: Nginx,
    // A server outlives its database.
    _database: TestDatabase,
    pub postgres: PostgresServer,
}

struct Replica {
    // It ends before its home is deleted.
    running: Option<Running>,
    home: Home,
    port: u16,
}

impl Replica {
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

struct Running {
    process: ProcessNumber,
    child: Child,
    _engine: FakeServer,
}

impl Cluster {
    pub async fn start(engines: EngineLog, gateway: &Gateway) -> Self {
        let postgres = PostgresServer::start();
        let database = postgres.create_database();
        let replicas: Vec<Replica> = (0..REPLICAS)
            .map(|_| Replica { home: Home::empty(), port: free_port(), running: None })
            .collect();
        let ports: Vec<u16> = replicas.iter().map(|replica| replica.port).collect();
        let mut cluster = Cluster {
            lives: Vec::new(),
            replicas,
            engines,
            gateway_url: gateway.url(),
            database_url: postgres.tcp_url(&database),
            nginx: Nginx::start(&ports).await,
            _database: database,
            postgres,
        };
        for index in 0..REPLICAS {
            cluster.start_replica(index).await;
        }
        cluster
    }

    /// The URL of the load balancer.
    pub fn url(&self) -> String {
        self.nginx.url()
    }

    /// Where a replica listens, without the load balancer.
    pub fn address(&self, index: usize) -> String {
        self.replicas[index].address()
    }

    /// Starts a replica as an orchestrator does: again, if it ends.
    pub async fn start_replica(&mut self, index: usize) {
        let process = self.lives.len();
        let engine = self.engines.start(process).await;
        let config = self.config(&engine.url());
        let address = self.address(index);
        let Replica { home, port, running } = &mut self.replicas[index];
        std::fs::write(home.config_file(), config).expect("a file");
        let log = home.directory().join("log");
        let child = loop {
            // A pipe that is not read would stop a replica that logs much.
            let output = File::options().create(true).append(true).open(&log).expect("a file");
            let mut child = home
                .hob(&["serve", "--port", &port.to_string()])
                .env("HOB_DATABASE_URL", &self.database_url)
                .env("HOB_API_KEY", KEY)
                .stdout(Stdio::null())
                .stderr(output)
                .spawn()
                .expect("hob starts");
            if is_up(&mut child, &address).await {
                break child;
            }
            eprintln!("replica {index} did not start:\n{}", std::fs::read_to_string(&log).expect("text"));
        };
        *running = Some(Running { process, child, _engine: engine });
        self.lives.push(Life { address, began: Instant::now(), killed: None });
    }

    fn config(&self, engine: &str) -> String {
        let channel = format!(
            "[channel]\nenabled = true\ngateway_url = \"{}\"\nreconnect_interval = 0.1\n",
            self.gateway_url
        );
        format!(
            "{}{channel}[scheduler]\nenabled = true\npoll_interval = 2.0\n",
            engines_config(&[("vllm", engine)])
        )
    }

    /// Ends a replica without warning, and waits until it is gone.
    pub async fn kill_replica(&mut self, index: usize) {
        // Its engine lives longer: otherwise the sender would get an error for the answer that breaks off.
        let Some(mut running) = self.replicas[index].running.take() else { return };
        self.lives[running.process].killed = Some(Instant::now());
        running.child.kill().await.expect("it runs");
    }

    /// Ends all replicas as an operator does.
    pub async fn stop_replicas(&mut self) {
        for Replica { running, home, .. } in &mut self.replicas {
            let Some(mut running) = running.take() else { continue };
            let child = &mut running.child;
            let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).expect("it runs");
            kill_process(pid, Signal::TERM).expect("it runs");
            let ended = child.wait().await.expect("it ends");
            let log = || std::fs::read_to_string(home.directory().join("log")).unwrap_or_default();
            assert!(ended.success(), "{ended}:\n{}", log());
        }
    }

    /// Another machine with the same database.
    pub fn command_line(&self) -> CommandLine {
        CommandLine { home: Home::with_engines(&[]), database_url: self.database_url.clone() }
    }

    /// What a failed test prints.
    pub fn logs(&self) -> String {
        let logs = self.replicas.iter().enumerate().map(|(index, replica)| {
            let log = std::fs::read_to_string(replica.home.directory().join("log")).unwrap_or_default();
            format!("replica {index} ({}):\n{log}\n", replica.port)
        });
        logs.collect::<String>() + &self.nginx.log()
    }
}

pub struct CommandLine {
    home: Home,
    database_url: String,
}

impl CommandLine {
    pub async fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.home.hob(arguments);
        command.env("HOB_DATABASE_URL", &self.database_url);
        finish(command).await
    }
}

/// Waits until the replica accepts requests; `false` if it ends instead.
async fn is_up(child: &mut Child, address: &str) -> bool {
    loop {
        if child.try_wait().expect("a child").is_some() {
            return false;
        }
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            let answer = http::get(address, "/health/live").await.all().await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
