//! `hob ask` as it is typed.

use clap::Parser;
use hob_config::{EngineKey, RouterKey};
use hob_core::{MaxTokens, Temperature};

use super::values::{AgentChoice, agents, engines, max_tokens, routers, temperature};

/// Ask a model a question
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob ask 'Why is the sky blue?'"
    "hob ask -m qwen3:8b -t 0 'Name three rivers.'"
    "git diff | hob ask 'Write a commit message for this change.'"
    "hob ask - < question.txt"
    "hob ask -a orchestrator --tools calculator 'What is 17 * 23?'"
    "hob ask -v --router heuristic 'What is 17 * 23?'"
    "hob ask --json 'Hello' | jq .usage"
})]
pub struct AskArgs {
    /// The question; '-' reads it from stdin. Text that is piped in is added below the question
    pub query: Option<String>,

    /// Model to ask [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Have the model chosen that suits the question: by rules, or by what was learnt. -v says which it is and why
    #[arg(long, value_name = "POLICY", value_parser = routers(), conflicts_with = "model")]
    pub router: Option<RouterKey>,

    /// Engine to ask, and no other [default: as configured, or one that runs]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineKey>,

    /// How freely to choose words, 0.0 to 2.0 [default: 0.7]
    #[arg(short, long, value_parser = temperature, allow_negative_numbers = true)]
    pub temperature: Option<Temperature>,

    /// The most tokens the answer may have [default: 1024]
    #[arg(long, value_parser = max_tokens, allow_negative_numbers = true)]
    pub max_tokens: Option<MaxTokens>,

    /// Agent that answers: simple, orchestrator, react, codeact or none [default: none, or orchestrator with --tools
    /// or --require-tool]
    #[arg(short, long, value_parser = agents(), hide_possible_values = true)]
    pub agent: Option<AgentChoice>,

    /// Tools the agent may use, separated by commas [default: all]; see 'hob tools list'
    #[arg(long, value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Have the model use a tool before it answers; small models rarely do by themselves
    #[arg(long)]
    pub require_tool: bool,

    /// Print one JSON object: content, usage, model, engine, finish_reason; with an agent also turns and tool_results
    #[arg(long)]
    pub json: bool,

    /// Print the answer when it is complete, not as it comes
    #[arg(long)]
    pub no_stream: bool,

    /// Answer without what the memory has on the question
    #[arg(long)]
    pub no_context: bool,

    /// Fetch no model to start with, even if nothing else answers
    #[arg(long)]
    pub offline: bool,
}
