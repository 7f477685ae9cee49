//! Who answers and on what terms, as it is typed: what `hob ask` and `hob chat` have in common.

use clap::Args;
use hob_config::EngineKey;
use hob_core::{MaxTokens, Temperature};

use super::values::{AgentChoice, agents, engines, max_tokens, temperature};

// No documentation, which would replace that of the commands that have these.
#[derive(Debug, Args)]
pub struct AnsweringArgs {
    /// Model to ask [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Engine to ask, and no other [default: as configured, or one that runs]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineKey>,

    /// How freely to choose words, 0.0 to 2.0 [default: 0.7]
    #[arg(short, long, value_parser = temperature, allow_negative_numbers = true)]
    pub temperature: Option<Temperature>,

    /// The most tokens an answer may have [default: 1024]
    #[arg(long, value_parser = max_tokens, allow_negative_numbers = true)]
    pub max_tokens: Option<MaxTokens>,

    /// Agent that answers: simple, orchestrator, react, codeact or none [default: none, or orchestrator with --tools]
    #[arg(short, long, value_parser = agents(), hide_possible_values = true)]
    pub agent: Option<AgentChoice>,

    /// Tools the agent may use, separated by commas [default: all]; see 'hob tools list'
    #[arg(long, value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Fetch no model to start with, even if nothing else answers
    // Behind what else a command has to say.
    #[arg(long, display_order = 90)]
    pub offline: bool,
}
