//! Arguments that `hob ask` and `hob chat` share: model, engine, agent and sampling.

use clap::Args;
use hob_config::EngineName;
use hob_core::{MaxTokens, Temperature};

use super::values::{AgentChoice, agents, engines, max_tokens, temperature};

// No doc comment: clap would use it as the help of the commands that flatten this.
#[derive(Debug, Args)]
pub struct AnsweringArgs {
    /// Model to use [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Engine to use, with no fallback [default: as configured, or one that is running]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineName>,

    // Not comments for the documentation, which would take the section's name for a link.
    #[arg(
        short,
        long,
        value_parser = temperature,
        allow_negative_numbers = true,
        help = "Sampling temperature, 0.0 to 2.0 (default: [intelligence] temperature)"
    )]
    pub temperature: Option<Temperature>,

    #[arg(
        long,
        value_parser = max_tokens,
        allow_negative_numbers = true,
        help = "Maximum number of tokens to generate (default: [intelligence] max_tokens)"
    )]
    pub max_tokens: Option<MaxTokens>,

    /// Agent to use: simple, orchestrator, react, codeact or none [default: none, or orchestrator with --tools]
    #[arg(short, long, value_parser = agents(), hide_possible_values = true)]
    pub agent: Option<AgentChoice>,

    /// Comma-separated tools that the agent may use [default: all]; see 'hob tools list'
    #[arg(long, value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Do not download a model, even if no engine is running
    // After the options of the command itself.
    #[arg(long, display_order = 90)]
    pub offline: bool,

    /// Answer in this process, even if a server of this home is running
    #[arg(long, display_order = 91)]
    pub standalone: bool,
}
