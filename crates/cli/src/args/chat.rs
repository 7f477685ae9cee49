//! Arguments of `hob chat`.

use clap::Parser;
use hob_conversations::ChatId;

use super::answering::AnsweringArgs;

/// Chat with a model
///
/// On a terminal, type a message and read the answer as it streams; /help lists the commands. Conversations are saved; resume
/// one with --continue. Piped input is one message, and only its answer is printed.
///
/// If 'hob serve' runs with the same home, it answers: no model is loaded. Otherwise this process answers.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob chat                              start a conversation"
    "hob chat --continue                   continue the most recent conversation"
    "hob chat --list                       list saved conversations"
    "hob chat --resume 12                  resume conversation 12"
    "hob chat --standalone                 do not use the running server"
    "hob chat -a orchestrator --tools calculator,web_fetch"
    "echo 'And in French?' | hob chat --continue"
})]
pub struct ChatArgs {
    /// Continue the most recent conversation
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["resume", "list"])]
    pub go_on: bool,

    /// Resume a conversation by its ID
    #[arg(short, long, value_name = "ID", value_parser = chat_id, conflicts_with = "list")]
    pub resume: Option<ChatId>,

    /// List saved conversations, most recent first
    #[arg(short, long)]
    pub list: bool,

    #[command(flatten)]
    pub answering: AnsweringArgs,

    /// Do not add passages from memory, until '/memory on'
    #[arg(long)]
    pub no_context: bool,
}

fn chat_id(text: &str) -> Result<ChatId, String> {
    ChatId::parse(text).ok_or_else(|| "expected a conversation ID; see 'hob chat --list'".to_owned())
}
