//! What the command line and a running server say to each other on the control socket. A client sends one request as a line of JSON.
//! The server answers with lines of JSON: `ServerInfo`, one result, or the events of an answer.

use serde::{Deserialize, Serialize};

use super::question::AskQuestion;
use super::task_run::TaskRunRequest;

/// Changes with every change of these messages.
pub const PROTOCOL: u32 = 3;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Bytes of a request: room for a question with the largest picture.
pub const MAX_REQUEST_BYTES: usize = 32 << 20;

/// Bytes of a line of an answer.
pub const MAX_ANSWER_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerRequest {
    /// Comes first, on its own connection.
    Info,
    Ask(Box<AskQuestion>),
    DefaultModel,
    /// The models that can answer, with a mark at `current`.
    Models {
        current: String,
    },
    /// The models of every kind, each with its engine.
    AllModels,
    /// Whether a model exists.
    CheckModel(String),
    Tools,
    /// Runs a task now.
    RunTask(TaskRunRequest),
}

/// The version of a server. Every version of the messages has these fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerVersion {
    pub protocol: u32,
    pub version: String,
}

impl ServerVersion {
    pub fn is_ours(&self) -> bool {
        self.protocol == PROTOCOL && self.version == VERSION
    }
}

/// A running server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerInfo {
    #[serde(flatten)]
    pub version: ServerVersion,
    /// The key of the engine that it selected.
    pub engine: String,
    /// The policy that chooses the model for `auto`.
    pub router: String,
    /// Whether answers use passages from the memory.
    pub uses_memory: bool,
    /// Whether it runs tasks when they are due.
    pub runs_tasks: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_any_server_can_be_read() {
        let version: ServerVersion =
            serde_json::from_str(r#"{"protocol": 7, "version": "9.1.0", "news": true}"#).expect("a version");
        assert_eq!(version, ServerVersion { protocol: 7, version: "9.1.0".into() });
        assert!(!version.is_ours());
    }

    #[test]
    fn the_version_of_a_server_is_part_of_its_info() {
        let info = ServerInfo {
            version: ServerVersion { protocol: PROTOCOL, version: VERSION.into() },
            engine: "ollama".into(),
            router: "heuristic".into(),
            uses_memory: true,
            runs_tasks: true,
        };
        let text = serde_json::to_string(&info).expect("JSON");
        assert_eq!(serde_json::from_str::<ServerInfo>(&text).expect("the same"), info);
        assert!(serde_json::from_str::<ServerVersion>(&text).expect("a version").is_ours());
    }
}
