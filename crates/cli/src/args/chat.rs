//! `hob chat` as it is typed.

use clap::Parser;
use hob_config::EngineKey;
use hob_core::{MaxTokens, Temperature};
use hob_system::store::chats::ChatId;

use super::values::{AgentChoice, agents, engines, max_tokens, temperature};

/// Talk with a model
///
/// On a terminal, type a message and see the answer as it comes; /help shows what else there is. Conversations are kept,
/// and can be gone on with. What is piped in is one message, and then only the answer is printed.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob chat                              begin a conversation"
    "hob chat --continue                   go on with the last one"
    "hob chat --list                       see which there are"
    "hob chat --resume 12                  go on with one of them"
    "hob chat -a orchestrator --tools calculator,web_fetch"
    "echo 'And in French?' | hob chat --continue"
})]
pub struct ChatArgs {
    /// Go on with the conversation that was used last
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "list"])]
    pub go_on: bool,

    /// Go on with this conversation, by its number
    #[arg(short, long, value_name = "ID", value_parser = chat_id, conflicts_with = "list")]
    pub resume: Option<ChatId>,

    /// List the conversations, the last one first
    #[arg(short, long)]
    pub list: bool,

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

    /// Answer without what the memory has on a question, until '/memory on'
    #[arg(long)]
    pub no_context: bool,

    /// Fetch no model to start with, even if nothing else answers
    #[arg(long)]
    pub offline: bool,
}

fn chat_id(text: &str) -> Result<ChatId, String> {
    ChatId::parse(text)
        .ok_or_else(|| "expected the number of a conversation; see 'hob chat --list'".to_owned())
}
