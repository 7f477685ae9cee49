//! A llama.cpp server that runs as a child process: started, monitored, restarted when it dies, and stopped together
//! with Hob. Sends no requests to it; [`crate::OpenAiCompat`] does.

mod options;
mod process;

use hob_core::backoff::BackoffDelays;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::process::{Process, Program};

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
        let (tell, state) = watch::channel(ManagedState::Running { pid: process.pid() });
        let cancelled = CancellationToken::new();
        let supervisor = tokio::spawn(supervise(program, process, tell, cancelled.clone()));
        Ok(ManagedServer { stop: cancelled.drop_guard(), supervisor, state })
    }

    /// A receiver of the server's current and future states.
    pub fn state(&self) -> watch::Receiver<ManagedState> {
        self.state.clone()
    }

    /// Stops the server: sends it a signal, kills it after the stop timeout, and returns when it has ended.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.supervisor.await {
            tracing::error!(%error, "supervisor of the managed server failed");
        }
    }
}

/// Owns the process from the first start until shutdown.
async fn supervise(
    program: Program,
    mut process: Process,
    tell: watch::Sender<ManagedState>,
    cancelled: CancellationToken,
) {
    let mut delays = program.backoff().delays();
    loop {
        let ready_since = Instant::now();
        tokio::select! {
            () = cancelled.cancelled() => {
                process.stop(program.stop_timeout()).await;
                break;
            }
            ended = process.ended() => match ended {
                Ok(status) => tracing::warn!(%status, output = %process.last_lines(), "managed server died; restarting it"),
                Err(error) => tracing::warn!(%error, "cannot wait for the managed server; restarting it"),
            },
        }
        // Processes that the server started could keep the port.
        drop(process);
        tell.send_replace(ManagedState::Restarting);
        delays.after_running_for(ready_since.elapsed());
        let restarted = tokio::select! {
            () = cancelled.cancelled() => None,
            process = restart(&program, &mut delays) => Some(process),
        };
        let Some(restarted) = restarted else { break };
        process = restarted;
        tracing::info!(pid = process.pid(), "managed server restarted");
        tell.send_replace(ManagedState::Running { pid: process.pid() });
    }
    tell.send_replace(ManagedState::Stopped);
}

/// Retries until the server runs.
async fn restart(program: &Program, delays: &mut BackoffDelays) -> Process {
    loop {
        sleep(delays.next_delay()).await;
        match program.start().await {
            Ok(process) => return process,
            Err(error) => tracing::warn!(%error, "managed server did not start; retrying"),
        }
    }
}
