//! A llama.cpp server that runs as a child process: started, monitored, restarted when it dies, and stopped together
//! with Hob. Sends no requests to it; [`crate::OpenAiCompat`] does.

mod options;
mod process;

use std::time::Duration;

use hob_process::{ChildProcess, StopTimeouts, Supervised, supervise};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::process::Program;

pub use self::options::{ManagedError, ManagedOptions};

/// The state of a managed server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedState {
    /// Ready, with this process id.
    Running {
        pid: u32,
    },
    /// It died and will be restarted.
    Restarting,
    Stopped,
}

/// A running server. It stops when this value is dropped; [`Self::shutdown`] also waits for its end.
#[derive(Debug)]
pub struct ManagedServer {
    stop: DropGuard,
    supervisor: JoinHandle<()>,
    state: watch::Receiver<ManagedState>,
}

impl ManagedServer {
    /// Starts the server and waits until it is ready.
    pub async fn start(options: ManagedOptions) -> Result<Self, ManagedError> {
        let program = Program::new(options)?;
        let process = program.start().await?;
        let (sender, state) = watch::channel(ManagedState::Running { pid: process.pid() });
        let (stop, backoff) = (CancellationToken::new(), program.backoff());
        let managed = ManagedProcess { program, started: Some(process), state: sender };
        let stopped = stop.clone();
        let supervisor = tokio::spawn(async move { supervise(managed, backoff, &stopped).await });
        Ok(ManagedServer { stop: stop.drop_guard(), supervisor, state })
    }

    /// A receiver of the server's current and future states.
    pub fn state(&self) -> watch::Receiver<ManagedState> {
        self.state.clone()
    }

    /// Stops the server: sends it a signal, kills it after the stop timeout, and returns when it has ended.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.supervisor.await {
            tracing::error!(
                %error,
                "the supervisor of the managed server panicked. Report this bug with the panic message on \
                 standard error"
            );
        }
    }
}

/// Owns the process from the first start until shutdown.
struct ManagedProcess {
    program: Program,
    /// The first process, which is started before anything is supervised.
    started: Option<ChildProcess>,
    state: watch::Sender<ManagedState>,
}

impl ManagedProcess {
    async fn restart(&self) -> Option<ChildProcess> {
        match self.program.start().await {
            Ok(process) => {
                tracing::info!(pid = process.pid(), "managed server restarted");
                self.state.send_replace(ManagedState::Running { pid: process.pid() });
                Some(process)
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "the managed server did not start; Hob tries again. Check [engine.llamacpp] binary_path, \
                     model_path and args"
                );
                None
            }
        }
    }
}

impl Supervised for ManagedProcess {
    async fn run(&mut self, stop: &CancellationToken) -> Duration {
        let process = match self.started.take() {
            Some(process) => Some(process),
            None => stop.run_until_cancelled(self.restart()).await.flatten(),
        };
        let Some(mut process) = process else { return Duration::ZERO };
        let ready_since = Instant::now();
        match stop.run_until_cancelled(process.ended()).await {
            None => {
                let after_sigterm = self.program.stop_timeout();
                process.stop(StopTimeouts { after_eof: Duration::ZERO, after_sigterm }).await;
                return ready_since.elapsed();
            }
            Some(Ok(status)) => {
                tracing::warn!(
                    %status,
                    output = %process.last_lines(),
                    "the managed server died; Hob restarts it"
                );
            }
            Some(Err(error)) => {
                tracing::warn!(%error, "the end of the managed server cannot be observed; Hob restarts it");
            }
        }
        self.state.send_replace(ManagedState::Restarting);
        ready_since.elapsed()
    }
}

impl Drop for ManagedProcess {
    fn drop(&mut self) {
        self.state.send_replace(ManagedState::Stopped);
    }
}
