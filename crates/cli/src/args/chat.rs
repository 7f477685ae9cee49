//! `hob chat` as it is typed.

use clap::Parser;
use hob_system::store::chats::ChatId;

use super::answering::AnsweringArgs;

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

    #[command(flatten)]
    pub answering: AnsweringArgs,

    /// Answer without what the memory has on a question, until '/memory on'
    #[arg(long)]
    pub no_context: bool,
}

fn chat_id(text: &str) -> Result<ChatId, String> {
    ChatId::parse(text)
        .ok_or_else(|| "expected the number of a conversation; see 'hob chat --list'".to_owned())
}
