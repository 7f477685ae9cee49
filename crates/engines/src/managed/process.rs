//! One process of the server: start, readiness check, stop.

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

/// The number of stderr lines in an error.
const KEPT_LINES: usize = 12;

/// How often Hob checks whether a starting server is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The output of a dead process closes at once, unless a process outside its group still holds it open.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The program, which can be started several times.
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

    /// Starts a process and waits until it is ready. Kills it after the start timeout.
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
            Ok(Some(Ok(status))) => Err(ManagedError::Ended { binary, status, stderr: process.last_lines() }),
            Ok(Some(Err(source))) => Err(ManagedError::Spawn { binary, source }),
            Err(_) => Err(ManagedError::NotReady {
                binary,
                after: self.options.start_timeout,
                stderr: process.last_lines(),
            }),
        }
    }

    /// Another server on this port would answer in place of the child process.
    async fn check_port(&self) -> Result<(), ManagedError> {
        let addresses = lookup_host((self.host.as_str(), self.port)).await.map_err(|error| {
            ManagedError::Address { url: self.options.host_url.clone(), reason: error.to_string() }
        })?;
        for address in addresses {
            // The child process reports every other error itself.
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
        // The arguments can name a model that the server downloads.
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

/// A running child process. Dropping it kills the process and everything that it started.
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
    pub fn last_lines(&self) -> String {
        self.stderr.joined("\n")
    }

    /// Waits until the process has ended and its output is read.
    pub async fn ended(&mut self) -> std::io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.group.kill();
        self.drained().await;
        Ok(status)
    }

    /// Asks the process to stop, and kills it after `patience`.
    pub async fn stop(&mut self, patience: Duration) {
        self.group.terminate();
        if timeout(patience, self.child.wait()).await.is_err() {
            tracing::warn!(pid = self.pid, "managed server did not stop in time; killing it");
        }
        self.group.kill();
        if let Err(error) = self.child.kill().await {
            tracing::warn!(%error, "cannot kill the managed server");
        }
        self.drained().await;
    }

    /// Waits until no process holds the output open: the child, and everything that it started.
    async fn drained(&mut self) {
        let closed = async { while self.drains.join_next().await.is_some() {} };
        if timeout(CLOSE_TIMEOUT, closed).await.is_err() {
            tracing::debug!(
                pid = self.pid,
                "a process started by the managed server still holds its output open"
            );
        }
    }
}
