//! A llama.cpp server that runs as our child: started, watched, restarted when it dies, and stopped with us. Knows nothing of
//! what is asked of it; that is [`crate::OpenAiCompat`]'s part.

mod options;
mod process;

use hob_core::backoff::BackoffDelays;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::process::{Process, Program};

pub use self::options::{ManagedError, ManagedOptions};

/// How a managed server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ManagedState {
    /// Ready, as the process `pid`.
    Running {
        pid: u32,
    },
    /// It died and is to be started again.
    Restarting,
    Stopped,
}

/// The running server. It stops when this is dropped; [`Self::shutdown`] also waits for that.
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

    /// How the server is, now and from now on.
    pub fn state(&self) -> watch::Receiver<ManagedState> {
        self.state.clone()
    }

    /// Stops the server: asks it to end, kills it when it does not in time, and returns when it is gone.
    pub async fn shutdown(self) {
        drop(self.stop);
        if let Err(error) = self.supervisor.await {
            tracing::error!(%error, "the supervisor of the managed server failed");
        }
    }
}

/// Owns the process from its first start to the end.
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
                Ok(status) => tracing::warn!(%status, last_words = %process.last_words(), "the managed server died"),
                Err(error) => tracing::warn!(%error, "the managed server is lost"),
            },
        }
        // What is left of it would keep the port.
        drop(process);
        tell.send_replace(ManagedState::Restarting);
        delays.after_running_for(ready_since.elapsed());
        let restarted = tokio::select! {
            () = cancelled.cancelled() => None,
            process = restart(&program, &mut delays) => Some(process),
        };
        let Some(restarted) = restarted else { break };
        process = restarted;
        tracing::info!(pid = process.pid(), "the managed server runs again");
        tell.send_replace(ManagedState::Running { pid: process.pid() });
    }
    tell.send_replace(ManagedState::Stopped);
}

/// Tries until it works.
async fn restart(program: &Program, delays: &mut BackoffDelays) -> Process {
    loop {
        sleep(delays.next_delay()).await;
        match program.start().await {
            Ok(process) => return process,
            Err(error) => tracing::warn!(%error, "the managed server does not start"),
        }
    }
}
