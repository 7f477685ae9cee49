//! One run of the program: its start, its readiness, its end.

use std::io::ErrorKind;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use hob_core::Backoff;
use hob_process::{Need, OutputTail, ProcessGroup, command, drain, lead_a_group};
use tokio::net::{TcpListener, lookup_host};
use tokio::process::Child;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::Url;

use super::options::{ManagedError, ManagedOptions};
use crate::wire::client::{Endpoint, EndpointOptions};

/// As many lines of stderr as an error shows.
const KEPT_LINES: usize = 12;

/// How often a starting server is asked whether it is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A dead child's output closes at once, unless somebody who left its process group holds it open.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What is run, again and again.
#[derive(Debug)]
pub struct Program {
    options: ManagedOptions,
    host: String,
    port: u16,
    endpoint: Endpoint,
}

impl Program {
    pub fn new(options: ManagedOptions) -> Result<Self, ManagedError> {
        let unusable = |reason: String| ManagedError::Address { url: options.host_url.clone(), reason };
        let url = Url::parse(&options.host_url).map_err(|error| unusable(error.to_string()))?;
        if url.scheme() != "http" {
            return Err(unusable("it must begin with http://".to_owned()));
        }
        let host = url.host_str().ok_or_else(|| unusable("it names no host".to_owned()))?;
        let port = url.port_or_known_default().ok_or_else(|| unusable("it names no port".to_owned()))?;
        let endpoint = Endpoint::new(EndpointOptions::new("llamacpp", &options.host_url))
            .map_err(|error| unusable(error.to_string()))?;
        Ok(Program { host: host.trim_matches(['[', ']']).to_owned(), port, endpoint, options })
    }

    pub fn backoff(&self) -> Backoff {
        self.options.backoff
    }

    pub fn stop_timeout(&self) -> Duration {
        self.options.stop_timeout
    }

    /// Starts a process and waits until it is ready. One that is not in time is killed.
    pub async fn start(&self) -> Result<Process, ManagedError> {
        self.check_port().await?;
        let mut process = self.spawn()?;
        let ready = async {
            tokio::select! {
                ended = process.ended() => Some(ended),
                () = self.ready() => None,
            }
        };
        let outcome = timeout(self.options.start_timeout, ready).await;
        let binary = self.options.binary.clone();
        match outcome {
            Ok(None) => Ok(process),
            Ok(Some(Ok(status))) => Err(ManagedError::Ended { binary, status, stderr: process.last_words() }),
            Ok(Some(Err(source))) => Err(ManagedError::Spawn { binary, source }),
            Err(_) => Err(ManagedError::NotReady {
                binary,
                after: self.options.start_timeout,
                stderr: process.last_words(),
            }),
        }
    }

    /// A stranger on our port would answer for the child and look like it.
    async fn check_port(&self) -> Result<(), ManagedError> {
        let addresses = lookup_host((self.host.as_str(), self.port)).await.map_err(|error| {
            ManagedError::Address { url: self.options.host_url.clone(), reason: error.to_string() }
        })?;
        for address in addresses {
            // Any other trouble is for the child to run into and to describe.
            if let Err(error) = TcpListener::bind(address).await
                && error.kind() == ErrorKind::AddrInUse
            {
                return Err(ManagedError::AddressTaken { address: self.options.host_url.clone() });
            }
        }
        Ok(())
    }

    async fn ready(&self) {
        while !self.endpoint.probe("/health").await {
            sleep(POLL_INTERVAL).await;
        }
    }

    fn spawn(&self) -> Result<Process, ManagedError> {
        let ManagedOptions { binary, model, args, .. } = &self.options;
        // Its arguments may name a model that it fetches itself.
        let mut command = command(binary, &[Need::Basics, Need::Compute, Need::Network]);
        command
            .args(["--host", &self.host])
            .args(["--port", &self.port.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(model) = model {
            command.arg("-m").arg(model);
        }
        command.args(args);
        lead_a_group(&mut command);
        let child = command.spawn().map_err(|source| {
            let binary = binary.clone();
            match source.kind() {
                ErrorKind::NotFound => ManagedError::Missing { binary },
                ErrorKind::PermissionDenied => ManagedError::NotExecutable { binary },
                _ => ManagedError::Spawn { binary, source },
            }
        })?;
        Ok(Process::new(child))
    }
}

/// A running child. Dropping it kills it and all that it started.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: u32,
    group: ProcessGroup,
    stderr: OutputTail,
    drains: JoinSet<()>,
}

impl Process {
    fn new(mut child: Child) -> Self {
        let tell = |line: &str| tracing::debug!(target: "hob_engines::managed::output", "{line}");
        let stderr = OutputTail::keeping(KEPT_LINES);
        let mut drains = JoinSet::new();
        if let Some(stream) = child.stdout.take() {
            drains.spawn(drain(stream, OutputTail::keeping(1), tell));
        }
        if let Some(stream) = child.stderr.take() {
            drains.spawn(drain(stream, stderr.clone(), tell));
        }
        let (pid, group) = (child.id().unwrap_or_default(), ProcessGroup::led_by(child.id()));
        Process { child, pid, group, stderr, drains }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The last lines it wrote to stderr.
    pub fn last_words(&self) -> String {
        self.stderr.joined("\n")
    }

    /// Waits until it is gone and its last words are read.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group.kill();
        self.drained().await;
        Ok(status)
    }

    /// Asks it to end, and makes it when it does not within `patience`.
    pub async fn stop(&mut self, patience: Duration) {
        self.group.terminate();
        if timeout(patience, self.child.wait()).await.is_err() {
            tracing::warn!(pid = self.pid, "the managed server did not stop in time; killing it");
        }
        self.group.kill();
        if let Err(error) = self.child.kill().await {
            tracing::warn!(%error, "the managed server cannot be killed");
        }
        self.drained().await;
    }

    /// Waits until the last one who could write is gone: the child, and what it started.
    async fn drained(&mut self) {
        let closed = async { while self.drains.join_next().await.is_some() {} };
        if timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            tracing::debug!(pid = self.pid, "somebody outlives the managed server and holds its output open");
        }
    }
}
