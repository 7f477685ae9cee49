//! What answers the questions of a command.

use hob_app::App;

use super::events::{AnswerEvents, AnswerFailure};
use super::in_process;
use super::lists::{ModelTable, ToolTable};
use super::question::AskQuestion;
use super::server_link::ServerLink;
use super::server_messages::ServerRequest;
use super::task_run::{TaskRunEvents, TaskRunRequest, run_task};

/// The app in this process, or a running server.
pub enum AnswerProvider<'a> {
    InProcess(&'a App),
    Server(ServerLink),
}

impl AnswerProvider<'_> {
    /// The answer to a question.
    pub fn answer(&self, question: AskQuestion) -> AnswerEvents<'_> {
        match self {
            AnswerProvider::InProcess(app) => in_process::answer(&app.system, question),
            AnswerProvider::Server(server) => server.answer(question),
        }
    }

    /// Runs a task outside its schedule.
    pub fn run_task(&self, request: TaskRunRequest) -> TaskRunEvents<'_> {
        match self {
            AnswerProvider::InProcess(app) => run_task(&app.system, &app.scheduler, request),
            AnswerProvider::Server(server) => server.run_task(request),
        }
    }

    /// The key of the selected engine.
    pub fn engine(&self) -> &str {
        match self {
            AnswerProvider::InProcess(app) => app.system.engine().key(),
            AnswerProvider::Server(server) => &server.info.engine,
        }
    }

    /// Whether answers can use passages from the memory.
    pub fn can_use_memory(&self) -> bool {
        match self {
            AnswerProvider::InProcess(_) => true,
            AnswerProvider::Server(server) => server.info.uses_memory,
        }
    }

    /// The model that answers when none is named.
    pub async fn default_model(&self) -> Result<String, AnswerFailure> {
        match self {
            AnswerProvider::InProcess(app) => in_process::default_model(&app.system).await,
            AnswerProvider::Server(server) => server.request(&ServerRequest::DefaultModel).await,
        }
    }

    /// The models that can answer, with a mark at `current`.
    pub async fn models(&self, current: &str) -> Result<ModelTable, AnswerFailure> {
        match self {
            AnswerProvider::InProcess(app) => in_process::models(&app.system, current).await,
            AnswerProvider::Server(server) => {
                server.request(&ServerRequest::Models { current: current.to_owned() }).await
            }
        }
    }

    /// Whether an engine has the model.
    pub async fn check_model(&self, model: &str) -> Result<(), AnswerFailure> {
        match self {
            AnswerProvider::InProcess(app) => in_process::check_model(&app.system, model).await,
            AnswerProvider::Server(server) => {
                server.request(&ServerRequest::CheckModel(model.to_owned())).await
            }
        }
    }

    /// The tools that agents use.
    pub async fn tools(&self) -> Result<ToolTable, AnswerFailure> {
        match self {
            AnswerProvider::InProcess(app) => Ok(ToolTable::of(&app.system.tools())),
            AnswerProvider::Server(server) => server.request(&ServerRequest::Tools).await,
        }
    }
}
