//! Arguments of `hob ask`.

use std::path::PathBuf;

use clap::Parser;
use hob_config::RouterName;

use super::answering::AnsweringArgs;
use super::values::routers;

/// The help of --agent, whose default also depends on --require-tool here.
const AGENT: &str = "Agent to use: simple, orchestrator, react, codeact or none [default: none, or orchestrator with \
                     --tools or --require-tool]";

/// Ask a model a question
///
/// If 'hob serve' runs with the same home, it answers: no model is loaded, and the answer starts at once. Otherwise this process
/// answers.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob ask 'Why is the sky blue?'"
    "hob ask -m qwen3:8b -t 0 'Name three rivers.'"
    "git diff | hob ask 'Write a commit message for this change.'"
    "hob ask - < question.txt"
    "hob ask -i photo.jpg 'What is this?'"
    "hob ask -f report.pdf -f notes.md 'What do these have in common?'"
    "hob ask -c 'And in French?'           continue the most recent saved conversation"
    "hob ask --system 'Answer in one word.' 'What is the capital of France?'"
    "hob ask --schema person.json 'Describe Ada Lovelace.' | jq .name"
    "hob ask -a orchestrator --tools calculator 'What is 17 * 23?'"
    "hob ask -v --router heuristic 'What is 17 * 23?'"
    "hob ask --json 'Hello' | jq .usage"
})]
#[command(mut_arg("agent", |it| it.help(AGENT)))]
pub struct AskArgs {
    /// Question to ask, or '-' to read it from stdin. Piped text is added below the question
    // The shell removes quotes, so a question without them arrives as several words.
    pub query: Vec<String>,

    /// Picture for the model to look at; repeat it for several. The model must read pictures
    #[arg(short, long = "image", value_name = "FILE")]
    pub images: Vec<PathBuf>,

    /// Document to read: text, PDF, Word, HTML, mail and more; repeat it for several. No passages from memory are added then
    #[arg(short, long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Instructions for the model, before the question
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,

    /// JSON schema of the answer. The answer is JSON, and is checked
    #[arg(long, value_name = "FILE")]
    pub schema: Option<PathBuf>,

    /// Continue the most recent saved conversation, of 'hob chat' or of 'hob ask -c', and save this question and its answer
    /// there. Without it, 'hob ask' saves nothing
    #[arg(short = 'c', long = "continue")]
    pub go_on: bool,

    #[command(flatten)]
    pub answering: AnsweringArgs,

    /// Choose the model automatically: 'heuristic' (rules) or 'grpo' (learned). Use -v to see the choice and the reason
    // Next to --model, which is shown first.
    #[arg(long, value_name = "POLICY", value_parser = routers(), conflicts_with = "model", display_order = 0)]
    pub router: Option<RouterName>,

    /// Require the model to call a tool before it answers; small models rarely do so unasked
    #[arg(long)]
    pub require_tool: bool,

    /// Print one JSON object with content, usage, model, engine and finish_reason; with an agent, also turns and tool_results
    #[arg(long)]
    pub json: bool,

    /// Print the answer when it is complete instead of streaming it
    #[arg(long)]
    pub no_stream: bool,

    /// Do not add passages from memory to the question
    #[arg(long)]
    pub no_context: bool,
}
