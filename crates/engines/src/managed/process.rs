//! One process of the server: start and readiness check.

use std::io::ErrorKind;
use std::time::Duration;

use hob_core::Backoff;
use hob_process::{ChildProcess, ChildStartError, Need, OutputTail, command};
use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};
use url::Url;

use super::options::{ManagedError, ManagedOptions};
use crate::wire::client::{Endpoint, EndpointOptions};

/// The number of stderr lines in an error.
const KEPT_LINES: usize = 12;

/// How often Hob checks whether a starting server is ready.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

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
    pub async fn start(&self) -> Result<ChildProcess, ManagedError> {
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
            Ok(Some(Err(source))) => Err(ChildStartError::Failed { program: binary, source }.into()),
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
            if let Err(error) = hob_net::check_address(address)
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

    fn spawn(&self) -> Result<ChildProcess, ManagedError> {
        let ManagedOptions { binary, model, args, .. } = &self.options;
        // The arguments can name a model that the server downloads.
        let mut command = command(binary, &[Need::Basics, Need::Compute, Need::Network]);
        command.args(["--host", &self.host]).args(["--port", &self.port.to_string()]);
        if let Some(model) = model {
            command.arg("-m").arg(model);
        }
        command.args(args);
        let log = |line: &str| tracing::debug!(target: "hob_engines::managed::output", "{line}");
        Ok(ChildProcess::spawn(command, OutputTail::keeping(KEPT_LINES), log)?)
    }
}
