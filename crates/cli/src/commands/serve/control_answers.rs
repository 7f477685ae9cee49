//! Answers the questions of `hob ask` and `hob chat`, and runs tasks for `hob scheduler run`, on the control socket. The caller is the
//! owner: only the user of the server can open the socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hob_app::AskService;
use hob_config::Config;
use hob_core::CallerRole;
use hob_tasks::Scheduler;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::answers::{
    AnswerFailure, PROTOCOL, ServerInfo, ServerRequest, ServerVersion, ToolTable, VERSION, answer,
    check_model, default_model, models, run_task,
};

/// What the control socket answers with.
#[derive(Clone)]
pub struct ControlAnswers {
    system: Arc<AskService>,
    scheduler: Arc<Scheduler>,
    info: ServerInfo,
}

impl ControlAnswers {
    pub fn new(system: Arc<AskService>, scheduler: Arc<Scheduler>, config: &Config) -> Self {
        let info = ServerInfo {
            version: ServerVersion { protocol: PROTOCOL, version: VERSION.to_owned() },
            engine: system.engine().key().to_owned(),
            router: system.router().policy().to_string(),
            uses_memory: config.memory.context,
            runs_tasks: config.scheduler.enabled,
        };
        ControlAnswers { system, scheduler, info }
    }

    /// Answers one request, given as a line. Dropping the future cancels the work.
    pub async fn answer(&self, line: &str, out: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let system = &self.system;
        match serde_json::from_str::<ServerRequest>(line).map_err(io::Error::other)? {
            ServerRequest::Info => send(out, &self.info).await,
            ServerRequest::Ask(question) => {
                let mut events = answer(system, *question);
                while let Some(event) = events.next().await {
                    send(out, &event).await?;
                }
                Ok(())
            }
            ServerRequest::DefaultModel => send(out, &default_model(system).await).await,
            ServerRequest::Models { current } => send(out, &models(system, &current).await).await,
            ServerRequest::AllModels => send(out, &all_models(system).await).await,
            ServerRequest::CheckModel(model) => send(out, &check_model(system, &model).await).await,
            ServerRequest::Tools => {
                let tools: Result<ToolTable, AnswerFailure> = Ok(ToolTable::of(&system.tools()));
                send(out, &tools).await
            }
            ServerRequest::RunTask(request) => {
                let mut events = run_task(system, &self.scheduler, request);
                while let Some(event) = events.next().await {
                    send(out, &event).await?;
                }
                Ok(())
            }
        }
    }
}

/// The models of all engines, those for embeddings too: each name with its engine.
async fn all_models(system: &AskService) -> Result<Vec<(String, String)>, AnswerFailure> {
    let listed = system.listed_models(CallerRole::Owner).await.map_err(AnswerFailure::of)?;
    Ok(listed.into_iter().map(|listed| (listed.model.id, listed.engine)).collect())
}

/// How long a client may take to read a line. One that stops reading keeps its place and the engine's work.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends a value as one line.
async fn send(out: &mut (impl AsyncWrite + Unpin), value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    tokio::time::timeout(WRITE_TIMEOUT, out.write_all(&line)).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_is_left() {
        let (mut out, _client) = tokio::io::duplex(16);
        let error = send(&mut out, &"x".repeat(100)).await.expect_err("too slow");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
