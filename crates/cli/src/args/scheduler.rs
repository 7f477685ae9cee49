//! `hob scheduler` as it is typed.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use hob_config::EngineKey;
use hob_tasks::TaskStatus;

use super::values::{AgentChoice, agents, engines, whole};

#[derive(Debug, Subcommand)]
pub enum SchedulerCommand {
    Create(SchedulerCreateArgs),
    /// List the tasks, the next to run first
    ///
    /// Those that are over, completed or cancelled, are left out unless they are asked for.
    List {
        /// Those that are over as well
        #[arg(long, conflicts_with = "status")]
        all: bool,
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
        #[arg(short = 'n', long, default_value_t = 20, value_name = "RUNS", value_parser = whole::<usize>)]
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

    /// Time zone, e.g. Europe/Berlin [default: that of this machine]
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
    #[arg(long, value_name = "TIMES", value_parser = whole::<u32>)]
    pub retries: Option<u32>,

    /// Seconds that one try may take [default: 600]
    #[arg(long, value_name = "SECONDS", value_parser = whole::<u64>)]
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
    pub engine: SchedulerEngineArgs,
}

/// Run tasks at their time, until Ctrl-C
///
/// Several may run at once, also beside 'hob serve': every slot is still run only once.
#[derive(Debug, Parser)]
pub struct SchedulerStartArgs {
    #[command(flatten)]
    pub engine: SchedulerEngineArgs,
}

// Who answers. No documentation, which would replace that of the commands that have these.
#[derive(Debug, Parser)]
pub struct SchedulerEngineArgs {
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

fn task_states() -> impl TypedValueParser<Value = TaskStatus> {
    PossibleValuesParser::new(TaskStatus::ALL.map(TaskStatus::as_str))
        .try_map(|name| TaskStatus::parse(&name))
}
