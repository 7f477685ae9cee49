//! Arguments of `hob scheduler`.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use hob_config::EngineName;
use hob_tasks::TaskStatus;

use super::values::{AgentChoice, agents, engines, whole};

#[derive(Debug, Subcommand)]
pub enum SchedulerCommand {
    Create(Box<SchedulerCreateArgs>),
    /// List tasks, next run first
    ///
    /// Completed and cancelled tasks are hidden by default.
    #[command(after_help = examples! {
        "hob scheduler list"
        "hob scheduler list --status paused"
    })]
    List {
        /// Include completed and cancelled tasks
        #[arg(long, conflicts_with = "status")]
        all: bool,
        /// Show only tasks with this status: active, paused, completed or cancelled
        #[arg(short, long, value_parser = task_states(), hide_possible_values = true)]
        status: Option<TaskStatus>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show the details of a task
    #[command(after_help = examples! {
        "hob scheduler show TASK"
        "hob scheduler show briefing           by its name"
    })]
    Show {
        /// Task ID from 'hob scheduler list', or its name
        id: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Pause a task until it is resumed
    #[command(after_help = examples! {
        "hob scheduler pause TASK"
        "hob scheduler pause briefing          by its name"
    })]
    Pause(SchedulerTaskArgs),
    /// Resume a paused task and recalculate its next run
    #[command(after_help = examples! {
        "hob scheduler resume TASK"
        "hob scheduler resume briefing         by its name"
    })]
    Resume(SchedulerTaskArgs),
    /// Cancel a task permanently, and stop it if it is running
    #[command(after_help = examples! {
        "hob scheduler cancel TASK"
        "hob scheduler cancel briefing         by its name"
    })]
    Cancel(SchedulerTaskArgs),
    /// Show the runs of a task, newest first
    #[command(after_help = examples! {
        "hob scheduler logs TASK"
        "hob scheduler logs TASK -n 1 --json | jq -r '.[0].result'"
    })]
    Logs {
        /// Task ID from 'hob scheduler list', or its name
        id: String,
        /// Maximum number of runs to show
        #[arg(short = 'n', long, default_value_t = 20, value_name = "RUNS", value_parser = whole::<usize>)]
        lines: usize,
        /// Print a JSON array with full results
        #[arg(long)]
        json: bool,
    },
    Run(SchedulerRunArgs),
    Start(SchedulerStartArgs),
}

/// Create a task
///
/// Tasks run while 'hob serve' or 'hob scheduler start' is running. Runs missed while Hob was off are made up by a single
/// run.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob scheduler create 'Say good morning.' --every 'weekdays 07:00'"
    "hob scheduler create 'Anything new?' --every 'every 2 hours' --tools web_fetch"
    "hob scheduler create 'Time to leave.' --every '2027-01-31 17:30' --channel telegram"
    "hob scheduler create 'What should I prepare?' --every 'daily 18:00' --first-call calendar"
    "hob scheduler create 'Say good night.' --type cron --value '0 22 * * *'"
})]
pub struct SchedulerCreateArgs {
    /// Prompt to send at each run
    pub prompt: String,

    /// When to run: 'weekdays 07:00', 'daily 7:30', 'every 15 minutes', 'monday and thursday 18:00', 'hourly', 'monthly on the
    /// 1st 09:00', 'first monday 09:00' or '2027-01-31 09:00'
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["kind", "value"], required_unless_present = "kind")]
    pub every: Option<String>,

    /// Schedule type, instead of --every: cron, interval or once
    #[arg(
        short = 't', long = "type", value_name = "TYPE", requires = "value",
        value_parser = ["cron", "interval", "once"], hide_possible_values = true
    )]
    pub kind: Option<String>,

    /// cron: five fields, six with seconds, or @daily; interval: seconds, or '1h 30m'; once: a date such as 2027-01-31T09:00
    #[arg(long, allow_hyphen_values = true, requires = "kind")]
    pub value: Option<String>,

    /// Name of the task, for 'hob scheduler run NAME'
    #[arg(long)]
    pub name: Option<String>,

    /// Time zone, e.g. Europe/Berlin [default: the zone of this machine]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,

    /// Agent to use: simple, orchestrator, react, codeact or none [default: orchestrator with --tools, else simple]
    #[arg(short, long, value_parser = agents(), hide_possible_values = true)]
    pub agent: Option<AgentChoice>,

    /// Model to use [default: the default model]; see 'hob model list'
    #[arg(short, long)]
    pub model: Option<String>,

    /// Comma-separated tools that the agent may use [default: tools without side effects]; see 'hob tools list'
    #[arg(long, value_delimiter = ',')]
    pub tools: Option<Vec<String>>,

    /// Tool to call before the prompt, with its arguments as JSON: 'calendar {"from": "today"}'; can be repeated. The model
    /// gets the results, so it need not call tools itself
    #[arg(long = "first-call", value_name = "CALL")]
    pub first_calls: Vec<String>,

    /// Begin each result with what the first calls returned, as lists. The model adds at most 300 tokens; if it fails or takes
    /// longer than two minutes, the lists are the result
    #[arg(long, requires = "first_calls")]
    pub show_results: bool,

    /// Channel to send results to, such as telegram, telegram:NUMBER or slack; see 'hob channel list'. telegram and email alone mean
    /// their only approved sender
    #[arg(long)]
    pub channel: Option<String>,

    /// Conversation on that channel
    #[arg(long, value_name = "ID", requires = "channel")]
    pub conversation: Option<String>,

    /// Number of retries after a failed run, 0 to 10 [default: 0]
    #[arg(long, value_name = "TIMES", value_parser = whole::<u32>)]
    pub retries: Option<u32>,

    /// Time limit per attempt, in seconds [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = whole::<u64>)]
    pub timeout: Option<u64>,

    /// What to do about missed runs: 'once' makes up for all of them with one run, 'skip' ignores them [default: once]
    #[arg(long, value_parser = ["once", "skip"], hide_possible_values = true)]
    pub missed: Option<String>,

    /// Key that pays for the runs and limits what they may use; see 'hob key list' [default: none]
    #[arg(long, value_name = "NAME")]
    pub key: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct SchedulerTaskArgs {
    /// Task ID from 'hob scheduler list', or its name
    pub id: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Run a task now, outside its schedule, and print the answer while it is written
///
/// The running server of this home runs the task, if there is one; otherwise this process does. Ctrl-C stops the run in both
/// cases.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob scheduler run TASK"
    "hob scheduler run briefing"
    "hob scheduler run TASK -m qwen3:8b"
})]
pub struct SchedulerRunArgs {
    /// Task ID from 'hob scheduler list', or its name
    pub id: String,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub engine: SchedulerEngineArgs,

    /// Run the task in this process, even if a server of this home is running
    #[arg(long)]
    pub standalone: bool,
}

/// Run tasks when they are due, until Ctrl-C
///
/// Several schedulers can run at the same time, also next to 'hob serve': each due run still happens only once.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob scheduler start"
    "hob scheduler start -e ollama"
})]
pub struct SchedulerStartArgs {
    #[command(flatten)]
    pub engine: SchedulerEngineArgs,
}

// The engine of runs. No doc comment: clap would use it as the help of the commands that flatten this.
#[derive(Debug, Parser)]
pub struct SchedulerEngineArgs {
    /// Engine to use, with no fallback [default: as configured, or one that is running]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineName>,

    /// Model to use [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Do not download a model, even if no engine is running
    #[arg(long)]
    pub offline: bool,
}

fn task_states() -> impl TypedValueParser<Value = TaskStatus> {
    PossibleValuesParser::new(TaskStatus::ALL.map(TaskStatus::as_str))
        .try_map(|name| TaskStatus::parse(&name))
}
