//! Answers for `hob ask`, `hob chat` and `hob scheduler run`: from the running server of this home, or from the app in this process. The
//! commands use an `AnswerProvider` and do not know which of the two answers.

mod complete_stream;
mod events;
mod in_process;
mod lists;
mod picture_advice;
mod provider;
mod question;
pub mod question_files;
mod server_link;
mod server_messages;
mod task_run;

pub use events::{
    AnswerEvent, AnswerEvents, AnswerFailure, AnswerHead, UsedPassage, WholeAnswer, explain_overflow,
};
#[cfg(feature = "server")]
pub use in_process::{answer, check_model, default_model, models};
pub use lists::ToolTable;
pub use picture_advice::explain_pictures;
pub use provider::AnswerProvider;
pub use question::{AskMessage, AskQuestion, AskRole, AskingCommand};
pub use server_link::{FoundServer, ServerLink, find_server};
#[cfg(feature = "server")]
pub use server_messages::{MAX_REQUEST_BYTES, PROTOCOL, ServerVersion, VERSION};
pub use server_messages::{ServerInfo, ServerRequest};
#[cfg(feature = "server")]
pub use task_run::run_task;
pub use task_run::{EndedTaskRun, TaskRunEvent, TaskRunEvents, TaskRunRequest};
