//! The command line as it is typed. Checks the form of every value; means nothing by them yet.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use hob_config::{AgentKey, EngineKey};
use hob_core::{InvalidValue, MaxTokens, MemoryBackend, TaskStatus, Temperature};

use crate::output::style;

/// Text below a command's options. The escape codes are taken out where they are not understood.
macro_rules! examples {
    ($($line:literal)+) => { concat!("\u{1b}[1mExamples:\u{1b}[0m" $(, "\n  ", $line)+) };
}

/// One address for the models on your machine: an OpenAI-compatible server in front of Ollama, vLLM, SGLang, llama.cpp
/// and the cloud, and a command line to ask them.
#[derive(Debug, Parser)]
#[command(
    name = "hob",
    version,
    about = "One address for the models on your machine",
    styles = style::HELP,
    max_term_width = 100,
    arg_required_else_help = true,
    after_help = examples! {
        "hob init                              look at this machine and write a configuration"
        "hob ask 'Why is the sky blue?'        ask the default model"
        "hob serve                             answer OpenAI clients on http://localhost:8000/v1"
        "hob doctor                            find out why something does not work"
    }
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,

    /// Say more on stderr; -vv says even more
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 100)]
    pub verbose: u8,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(ServeArgs),
    Ask(AskArgs),
    /// Show and download models
    #[command(subcommand, after_help = examples! {
        "hob model list                        all models of all running engines"
        "hob model pull qwen3:0.6b             download one with Ollama"
    })]
    Model(ModelCommand),
    /// Show and try the tools that agents use
    #[command(subcommand, after_help = examples! {
        "hob tools list                        what there is, and how far it reaches"
        "hob tools info calculator             its description and its arguments"
        "hob tools run calculator '{\"expression\": \"17 * 23\"}'"
    })]
    Tools(ToolsCommand),
    /// Index your documents, and find what is in them
    #[command(subcommand, after_help = examples! {
        "hob memory index ~/notes              take in what changed below a directory"
        "hob memory search 'when was the boiler serviced'"
        "hob ask 'When was the boiler serviced?'   answers with what the memory has on it"
    })]
    Memory(MemoryCommand),
    /// Have something asked at a set time, once or again and again
    #[command(subcommand, after_help = examples! {
        "hob scheduler create 'Say good morning.' --type cron --value '0 9 * * MON-FRI'"
        "hob scheduler list                    what is planned, the next first"
        "hob scheduler start                   run tasks at their time, until Ctrl-C"
    })]
    Scheduler(SchedulerCommand),
    Mcp(McpArgs),
    /// Show, export and delete the record of what was asked
    #[command(subcommand, after_help = examples! {
        "hob telemetry stats                   calls, tokens, times and costs"
        "hob telemetry export -f csv -o calls.csv"
        "hob telemetry clear -y                delete all of it without being asked"
    })]
    Telemetry(TelemetryCommand),
    /// Measure how fast an engine answers
    #[command(subcommand, after_help = examples! {
        "hob bench run                         latency, and throughput with 1, 4 and 16 at once"
        "hob bench run -m qwen3:8b -n 20 -o before.jsonl"
        "hob bench compare before.jsonl after.jsonl"
    })]
    Bench(BenchCommand),
    /// Send messages, and see what a messaging gateway has
    #[command(subcommand, after_help = examples! {
        "hob channel status                    whether the gateway answers"
        "hob channel list                      where messages can be sent"
        "hob channel send telegram 'Dinner is ready.'"
        "hob channel login whatsapp            link a WhatsApp account"
    })]
    Channel(ChannelCommand),
    Init(InitArgs),
    Doctor(DoctorArgs),
    Completions(CompletionsArgs),
    /// Read a document from stdin for the process that started this one
    #[command(hide = true)]
    ReadFile,
}

/// Start the HTTP server
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob serve                             settings from the configuration file"
    "hob serve --host 127.0.0.1            for this machine only"
    "hob serve -e ollama -m qwen3:8b       this engine, and this model as the default"
    ""
    "curl http://localhost:8000/v1/chat/completions -H 'content-type: application/json' \\"
    "  -d '{\"model\": \"default\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'"
})]
pub struct ServeArgs {
    /// Address to listen on [default: as configured, or 0.0.0.0]
    #[arg(long, value_parser = bind_host)]
    pub host: Option<String>,

    /// Port to listen on [default: as configured, or 8000]
    #[arg(long)]
    pub port: Option<u16>,

    /// Engine that answers, and no other [default: as configured, or one that runs]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineKey>,

    /// Model meant by the name 'default' [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Agent for requests that are not streamed: simple, orchestrator, react, codeact or none
    #[arg(short, long, value_parser = agents(), hide_possible_values = true)]
    pub agent: Option<AgentChoice>,

    /// Fetch no model to start with, even if nothing else answers
    #[arg(long)]
    pub offline: bool,
}

/// Ask a model a question
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob ask 'Why is the sky blue?'"
    "hob ask -m qwen3:8b -t 0 'Name three rivers.'"
    "git diff | hob ask 'Write a commit message for this change.'"
    "hob ask - < question.txt"
    "hob ask -a orchestrator --tools calculator 'What is 17 * 23?'"
    "hob ask --json 'Hello' | jq .usage"
})]
pub struct AskArgs {
    /// The question; '-' reads it from stdin. Text that is piped in is added below the question
    pub query: Option<String>,

    /// Model to ask [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

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

#[derive(Debug, Subcommand)]
pub enum MemoryCommand {
    Index(MemoryIndexArgs),
    Search(MemorySearchArgs),
    /// Show how much is remembered
    Stats {
        /// How passages are to be found: sqlite, vector or hybrid [default: as configured, or sqlite]
        #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
        backend: Option<MemoryBackend>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Forget a file, everything below a directory, or a note; the files themselves stay
    Forget {
        /// The file or directory, even if it is gone, or a note by its name
        path: String,
    },
}

/// Take in a file, or all files below a directory
///
/// Text, Markdown, HTML, code, PDF, DOCX, CSV, JSON and e-mail. Files that did not change are not read again, and files
/// that are gone are forgotten. Hidden and ignored files, links, keys and password files are left out.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob memory index ~/notes"
    "hob memory index ~/notes --watch      and again whenever something changes"
    "hob memory index ~/notes -b hybrid    to be found by words and by meaning"
})]
pub struct MemoryIndexArgs {
    /// The file or directory
    pub path: PathBuf,

    /// How passages are to be found: sqlite, vector or hybrid [default: as configured, or sqlite]
    #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
    pub backend: Option<MemoryBackend>,

    /// Most tokens of one passage [default: as configured, or 512]
    #[arg(long, value_name = "TOKENS")]
    pub chunk_size: Option<usize>,

    /// Tokens that neighbouring passages share [default: as configured, or 64]
    #[arg(long, value_name = "TOKENS")]
    pub chunk_overlap: Option<usize>,

    /// Stay, and take in what changes
    #[arg(long)]
    pub watch: bool,

    /// Fetch no embedding model
    #[arg(long)]
    pub offline: bool,
}

/// Find passages of the documents that were indexed
///
/// Any text will do: quotes, operators and punctuation are text too.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob memory search 'when was the boiler serviced'"
    "hob memory search -k 20 --json boiler | jq -r '.passages[].source'"
})]
pub struct MemorySearchArgs {
    /// What to look for
    pub query: String,

    /// How many passages, 1 to 100
    #[arg(short = 'k', long, default_value_t = 5, value_parser = top_k)]
    pub top_k: usize,

    /// How they are found: sqlite, vector or hybrid [default: as configured, or sqlite]
    #[arg(short, long, value_parser = backends(), hide_possible_values = true)]
    pub backend: Option<MemoryBackend>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Fetch no embedding model
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Subcommand)]
pub enum SchedulerCommand {
    Create(SchedulerCreateArgs),
    /// List the tasks, the next to run first
    List {
        /// Only tasks in this state: active, paused, completed or cancelled
        #[arg(short, long, value_parser = task_states(), hide_possible_values = true)]
        status: Option<TaskStatus>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show everything about a task
    Show {
        /// The task, as 'hob scheduler list' names it
        id: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let a task wait until it is resumed
    Pause(SchedulerTaskArgs),
    /// Let a paused task go on; its next run is reckoned anew
    Resume(SchedulerTaskArgs),
    /// Cancel a task for good, and stop it if it runs
    Cancel(SchedulerTaskArgs),
    /// Show the runs of a task, newest first
    Logs {
        /// The task, as 'hob scheduler list' names it
        id: String,
        /// So many runs at most
        #[arg(short = 'n', long, default_value_t = 20, value_name = "RUNS")]
        lines: usize,
        /// Print a JSON array, with results in full
        #[arg(long)]
        json: bool,
    },
    Run(SchedulerRunArgs),
    Start(SchedulerStartArgs),
}

/// Make a task
///
/// It runs while 'hob scheduler start' does, or 'hob serve' when the configuration enables it. Slots that pass while neither
/// does are made up for by one run.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob scheduler create 'Say good morning.' --type cron --value '0 9 * * MON-FRI'"
    "hob scheduler create 'Anything new?' --type interval --value 3600 -a orchestrator --tools web_fetch"
    "hob scheduler create 'Time to leave.' --type once --value 2027-01-31T17:30 --channel telegram"
})]
pub struct SchedulerCreateArgs {
    /// What is asked at each run
    pub prompt: String,

    /// The kind of schedule: cron, interval or once
    #[arg(short = 't', long = "type", value_name = "TYPE", value_parser = ["cron", "interval", "once"], hide_possible_values = true)]
    pub kind: String,

    /// cron: five fields, six with seconds, or @daily; interval: seconds, or '1h 30m'; once: a date such as 2027-01-31T09:00
    #[arg(long, allow_hyphen_values = true)]
    pub value: String,

    /// Where the clock hangs, such as Europe/Berlin [default: UTC]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,

    /// Agent that answers: simple, orchestrator, react, codeact or none [default: simple]
    #[arg(short, long, value_parser = agents(), hide_possible_values = true)]
    pub agent: Option<AgentChoice>,

    /// Tools the agent may use, separated by commas [default: those that change nothing]; see 'hob tools list'
    #[arg(long, value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Channel to which results are sent; see 'hob channel list'
    #[arg(long)]
    pub channel: Option<String>,

    /// Conversation on that channel
    #[arg(long, value_name = "ID", requires = "channel")]
    pub conversation: Option<String>,

    /// How often a run that fails is tried again, 0 to 10 [default: 0]
    #[arg(long, value_name = "TIMES")]
    pub retries: Option<u32>,

    /// Seconds that one try may take [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,

    /// What becomes of slots that were missed: once makes up for all of them with one run, skip does not [default: once]
    #[arg(long, value_parser = ["once", "skip"], hide_possible_values = true)]
    pub missed: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct SchedulerTaskArgs {
    /// The task, as 'hob scheduler list' names it
    pub id: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Run a task now, beside its schedule, and print what came of it
#[derive(Debug, Parser)]
pub struct SchedulerRunArgs {
    /// The task, as 'hob scheduler list' names it
    pub id: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub house: SchedulerHouseArgs,
}

/// Run tasks at their time, until Ctrl-C
///
/// Several may run at once, also beside 'hob serve': every slot is still run only once.
#[derive(Debug, Parser)]
pub struct SchedulerStartArgs {
    #[command(flatten)]
    pub house: SchedulerHouseArgs,
}

// Who answers. No documentation, which would replace that of the commands that have these.
#[derive(Debug, Parser)]
pub struct SchedulerHouseArgs {
    /// Engine to ask, and no other [default: as configured, or one that runs]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineKey>,

    /// Model to ask [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Fetch no model to start with, even if nothing else answers
    #[arg(long)]
    pub offline: bool,
}

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models of all running engines
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show what is known of a model
    Info {
        /// The model, as 'hob model list' names it
        model: String,
        /// Print a JSON array, one element for each engine that has the model
        #[arg(long)]
        json: bool,
    },
    /// Download a model
    ///
    /// A name of the built-in list, hf:owner/repo and a .gguf file are kept by Hob itself and answered by its embedded
    /// engine. Every other name is Ollama's, which has to run.
    #[command(after_help = examples! {
        "hob model pull smollm2-135m-instruct            the small one to start with"
        "hob model pull hf:Qwen/Qwen2.5-7B-Instruct-GGUF:Q4_K_M"
        "hob model pull ~/Downloads/model.gguf"
        "hob model pull qwen3:0.6b                       with Ollama"
        ""
        "  A download that was stopped goes on where it was when it is started again."
    })]
    Pull {
        /// The model
        model: String,
        /// Use nothing but what is on this machine
        #[arg(long)]
        offline: bool,
    },
    /// Remove a model of the embedded engine from the disk
    Rm {
        /// The model, as 'hob model list' names it
        model: String,
    },
    /// Find the form of a model's weights that this machine runs fastest
    Tune {
        /// A model of the embedded engine
        model: String,
    },
}

/// Whether the network may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    Online,
    Offline,
}

impl From<bool> for Network {
    /// From the flag `--offline`.
    fn from(offline: bool) -> Self {
        if offline { Network::Offline } else { Network::Online }
    }
}

#[derive(Debug, Subcommand)]
pub enum ToolsCommand {
    /// List the tools: those of the house and those of the configured MCP servers
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show what a tool does and what arguments it takes
    Info {
        /// The tool, as 'hob tools list' names it
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Run a tool once, as an agent would
    ///
    /// Prints what the tool says. Ends with 1 when it fails, and then says why on stderr.
    #[command(after_help = examples! {
        "hob tools run calculator '{\"expression\": \"17 * 23\"}'"
        "hob tools run current_time"
    })]
    Run {
        /// The tool, as 'hob tools list' names it
        name: String,
        /// Its arguments, as one JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
}

/// Serve the tools of the house to an MCP client, over stdin and stdout
///
/// For programs that speak the Model Context Protocol and start their servers themselves. Whoever can start a program on
/// this machine may use all tools. The tools of configured MCP servers are not passed on.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "{ \"mcpServers\": { \"hob\": { \"command\": \"hob\", \"args\": [\"mcp\"] } } }"
})]
pub struct McpArgs {}

#[derive(Debug, Subcommand)]
pub enum ChannelCommand {
    /// List the channels of the gateway
    List {
        /// WebSocket address of the gateway [default: as configured]
        #[arg(long, value_name = "URL")]
        gateway: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    Send(ChannelSendArgs),
    /// Show whether the gateway answers
    ///
    /// Ends with 0 when it does, and with 1 when not.
    Status {
        /// WebSocket address of the gateway [default: as configured]
        #[arg(long, value_name = "URL")]
        gateway: Option<String>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Link an account, by a code that is scanned with the phone
    ///
    /// Installs what speaks WhatsApp into Hob's directory when it is not there yet; that needs Node.js with npm.
    Login {
        /// The channel
        #[arg(value_parser = ["whatsapp"])]
        channel: String,
    },
}

/// Send a message
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob channel send telegram 'Dinner is ready.'"
    "hob channel send telegram:12345 'Dinner is ready.'      a gateway that wants to know to whom"
    "hob channel send 4915112345678@s.whatsapp.net 'Dinner is ready.'"
})]
pub struct ChannelSendArgs {
    /// A channel, as 'hob channel list' names it, or an address on WhatsApp
    pub target: String,

    /// What to say
    pub message: String,

    /// Thread to say it in
    #[arg(long, value_name = "ID")]
    pub conversation: Option<String>,

    /// WebSocket address of the gateway [default: as configured]
    #[arg(long, value_name = "URL")]
    pub gateway: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum TelemetryCommand {
    /// Show calls, tokens, times and costs, by model, engine, agent and day
    Stats {
        /// So many models at most
        #[arg(short = 'n', long, default_value_t = 10)]
        top: usize,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print every call on record, oldest first
    Export {
        /// One JSON array, or CSV with a header
        #[arg(short, long, value_enum, default_value_t = ExportFormat::Json)]
        format: ExportFormat,
        /// File to write instead of stdout; one that is there is replaced
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Delete the whole record
    Clear {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Json,
    Csv,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    Run(BenchRunArgs),
    /// Put two files of measurements side by side
    Compare {
        /// A file of 'hob bench run -o'
        before: PathBuf,
        /// Another
        after: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Ask a model many questions, and tell how long its answers take
///
/// The questions go the way every request takes, straight to the engine, and are recorded as such. One more is asked first, to
/// load the model.
#[derive(Debug, Parser)]
pub struct BenchRunArgs {
    /// Model to measure [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Engine to measure [default: as configured, or one that runs]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineKey>,

    /// Questions of each measurement; with several at once, as many as those at least
    #[arg(short = 'n', long, default_value_t = 10, value_parser = samples)]
    pub samples: usize,

    /// Only this one [default: all]
    #[arg(short, long, value_enum)]
    pub benchmark: Option<Benchmark>,

    /// File to add the measurements to, a line of JSON each
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// How long one answer takes, and its first token
    Latency,
    /// How many tokens come in a second
    Throughput,
}

/// Look at this machine and write a configuration file for it
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob init"
    "HOB_HOME=/srv/hob hob init            another directory than ~/.hob"
})]
pub struct InitArgs {
    /// Replace the file that is there
    #[arg(long)]
    pub force: bool,
}

/// Find out what is wrong, and what to do about it
///
/// Ends with 0 when a question can be answered, and with 1 when not.
#[derive(Debug, Parser)]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Print a script that completes hob's commands in your shell
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob completions bash > ~/.local/share/bash-completion/completions/hob"
    "hob completions zsh > ~/.zfunc/_hob"
    "hob completions fish > ~/.config/fish/completions/hob.fish"
})]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// An agent, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentChoice {
    None,
    Agent(AgentKey),
}

fn engines() -> impl TypedValueParser<Value = EngineKey> {
    PossibleValuesParser::new(EngineKey::ALL.map(EngineKey::as_str)).try_map(|name| name.parse::<EngineKey>())
}

fn agents() -> impl TypedValueParser<Value = AgentChoice> {
    // The configuration's word for "no agent" is the empty one.
    let none = PossibleValue::new("none").alias("");
    let agents = AgentKey::ALL.map(|agent| match agent {
        AgentKey::Codeact => PossibleValue::new(agent.as_str()).alias("openhands"),
        other => PossibleValue::new(other.as_str()),
    });
    PossibleValuesParser::new(agents.into_iter().chain([none])).try_map(|name| match name.as_str() {
        "" | "none" => Ok(AgentChoice::None),
        name => name.parse().map(AgentChoice::Agent),
    })
}

fn backends() -> impl TypedValueParser<Value = MemoryBackend> {
    PossibleValuesParser::new(MemoryBackend::ALL.map(MemoryBackend::as_str))
        .try_map(|name| MemoryBackend::parse(&name).ok_or("expected sqlite, vector or hybrid"))
}

fn top_k(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=100).contains(number));
    number.ok_or_else(|| "expected a whole number from 1 to 100".to_owned())
}

fn samples(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or_else(|| "expected a whole number from 1 to 10000".to_owned())
}

fn task_states() -> impl TypedValueParser<Value = TaskStatus> {
    PossibleValuesParser::new(TaskStatus::ALL.map(TaskStatus::as_str))
        .try_map(|name| TaskStatus::parse(&name))
}

/// Brackets around an IPv6 address belong to URLs.
fn bind_host(text: &str) -> Result<String, String> {
    let host = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    if host.is_empty() || host.contains(['/', ' ']) || host.contains("://") {
        return Err("expected an IP address or a host name, such as 127.0.0.1".to_owned());
    }
    Ok(host.to_owned())
}

fn temperature(text: &str) -> Result<Temperature, String> {
    let value = text.parse().map_err(|_| "expected a number between 0.0 and 2.0".to_owned())?;
    Temperature::new(value).map_err(|error: InvalidValue| error.to_string())
}

fn max_tokens(text: &str) -> Result<MaxTokens, String> {
    let value = text.parse().map_err(|_| "expected a whole number, at least 1".to_owned())?;
    MaxTokens::new(value).map_err(|error: InvalidValue| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &[&str]) -> Result<Args, String> {
        Args::try_parse_from(["hob"].iter().chain(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn numbers_outside_their_range_are_refused_with_the_range() {
        for (flag, value, expected) in [
            ("-t", "2.1", "between 0.0 and 2.0, got 2.1"),
            ("-t", "-1", "between 0.0 and 2.0, got -1"),
            ("-t", "nan", "between 0.0 and 2.0, got NaN"),
            ("-t", "warm", "expected a number between 0.0 and 2.0"),
            ("--max-tokens", "0", "at least 1, got 0"),
            ("--max-tokens", "-5", "at least 1, got -5"),
            ("--max-tokens", "many", "expected a whole number"),
        ] {
            let refusal = parse(&["ask", flag, value, "q"]).expect_err(value);
            assert!(refusal.contains(expected), "{flag} {value}: {refusal}");
        }
    }

    #[test]
    fn an_agent_goes_by_all_its_names() {
        let agent = |name| match parse(&["serve", "-a", name]).map(|args| args.command) {
            Ok(Command::Serve(serve)) => serve.agent,
            other => panic!("{other:?}"),
        };
        assert_eq!(agent("react"), Some(AgentChoice::Agent(AgentKey::React)));
        assert_eq!(agent("openhands"), Some(AgentChoice::Agent(AgentKey::Codeact)));
        assert_eq!(agent("none"), Some(AgentChoice::None));
        assert_eq!(agent(""), Some(AgentChoice::None));
        assert!(parse(&["serve", "-a", "orchestra"]).is_err());
    }

    #[test]
    fn a_misspelt_engine_is_recognised() {
        let refusal = parse(&["ask", "-e", "olama", "q"]).expect_err("no such engine");
        assert!(refusal.contains("'ollama'"), "{refusal}");
    }

    #[test]
    fn a_host_is_no_url() {
        assert_eq!(bind_host("[::1]").as_deref(), Ok("::1"));
        assert_eq!(bind_host("box.lan").as_deref(), Ok("box.lan"));
        assert!(bind_host("http://box").is_err());
        assert!(bind_host("").is_err());
    }
}
