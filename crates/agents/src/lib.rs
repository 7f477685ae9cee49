//! Agents, which let a model use tools in different ways, and the built-in tools.
//!
//! An agent is a `protocol::Protocol`: pure code for the conversation with a model. `turn_loop` drives it, and is the only part that asks
//! engines and runs tools. [`ImageFetcher`] and [`FileFetcher`] download what a request names by URL, with the checks of the tool
//! `web_fetch`.
//!
//! The crate uses engines and channels through the contracts of `core`. It knows no HTTP server, no database and no configuration
//! file.

pub mod builtin;

mod agent_stream;
mod attachment_fetcher;
mod code_blocks;
mod codeact;
pub mod first_results;
#[cfg(fuzzing)]
pub mod fuzzing;
mod orchestrator;
mod protocol;
mod react;
mod react_text;
pub mod request_taint;
mod run_history;
mod simple;
mod tools;
mod turn_loop;

use std::sync::Arc;

use hob_core::Agent;

use codeact::CodeAct;
use orchestrator::Orchestrator;
use react::React;
use simple::Simple;
use turn_loop::TurnLoop;

pub use agent_stream::{AgentStream, DeltaReceiver, DeltaSink, RunFuture, delta_channel};
pub use attachment_fetcher::{FileFetcher, ImageFetcher, picture_url};
pub use tools::{AllowedAfterUntrusted, PermittedTools, ToolSet, ToolSetError};

/// The agents by name.
pub const AGENTS: [&str; 4] = ["simple", "orchestrator", "react", "codeact"];

/// Other names of agents.
pub const AGENT_ALIASES: [&str; 1] = ["openhands"];

/// The agent with that name or alias.
pub fn agent(name: &str) -> Option<Arc<dyn Agent>> {
    Some(match name {
        "simple" => Arc::new(TurnLoop(Simple)),
        "orchestrator" => Arc::new(TurnLoop(Orchestrator)),
        "react" => Arc::new(TurnLoop(React)),
        "codeact" | "openhands" => Arc::new(TurnLoop(CodeAct)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_answers_to_its_name() {
        for name in AGENTS {
            assert_eq!(agent(name).map(|agent| agent.name().to_owned()).as_deref(), Some(name));
        }
        for alias in AGENT_ALIASES {
            assert!(agent(alias).is_some());
        }
        assert_eq!(agent("openhands").map(|agent| agent.name().to_owned()).as_deref(), Some("codeact"));
        assert!(agent("jeeves").is_none());
    }
}
