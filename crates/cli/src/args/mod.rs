//! The command line: one file per command. Checks the form of every value; knows nothing of their effect.

use clap::{ArgAction, Parser, Subcommand};

use crate::output::style;

/// Examples below a command's options. clap removes the escape codes where colours are not supported.
macro_rules! examples {
    ($($line:literal)+) => { concat!("\u{1b}[1mExamples:\u{1b}[0m" $(, "\n  ", $line)+) };
}

// Below the macro, which is known to what follows it.
mod answering;
mod ask;
mod audit;
mod bench;
mod channel;
mod chat;
mod command_suggestions;
mod completions;
mod database;
mod doctor;
mod feedback;
mod health;
mod init;
mod key;
mod man;
mod mcp;
mod memory;
mod model;
mod ollama_commands;
mod recipes;
mod reload;
mod router;
mod scheduler;
mod serve;
mod service;
mod sources;
mod telemetry;
mod tools;
mod update;
mod values;

pub use answering::AnsweringArgs;
pub use ask::AskArgs;
pub use audit::AuditCommand;
pub use bench::{BenchCommand, BenchRunArgs, Benchmark};
pub use channel::{ChannelAddArgs, ChannelCommand, ChannelSendArgs};
pub use chat::ChatArgs;
pub use completions::CompletionsArgs;
pub use database::{BackupArgs, DatabaseAddress, DatabaseCommand, DatabaseCopyArgs, RestoreArgs};
pub use doctor::DoctorArgs;
pub use feedback::FeedbackArgs;
pub use health::HealthArgs;
pub use init::InitArgs;
pub use key::{KeyChangeArgs, KeyCommand, KeyCreateArgs};
pub use man::ManArgs;
pub use mcp::McpArgs;
pub use memory::{MemoryCommand, MemoryIndexArgs, MemoryListArgs, MemorySearchArgs};
pub use model::ModelCommand;
pub use ollama_commands::OllamaCommand;
pub use recipes::{RecipeAddArgs, RecipesArgs, RecipesCommand};
pub use reload::ReloadArgs;
pub use router::RouterCommand;
pub use scheduler::{
    SchedulerCommand, SchedulerCreateArgs, SchedulerEngineArgs, SchedulerRunArgs, SchedulerStartArgs,
    SchedulerTaskArgs,
};
pub use serve::ServeArgs;
pub use service::{ServiceCommand, ServiceScopeArgs};
pub use sources::SourcesCommand;
pub use telemetry::{ExportFormat, TelemetryCommand};
pub use tools::ToolsCommand;
pub use update::UpdateArgs;
pub use values::{AgentChoice, NetworkAccess};

/// Parses the command line of this process. An error ends the process, with a tip for words that mean a command of another name.
pub fn parse() -> Args {
    Args::try_parse().unwrap_or_else(|error| {
        let mut words = std::env::args_os().skip(1).filter_map(|word| word.into_string().ok());
        let first = words.find(|word| !word.starts_with('-'));
        command_suggestions::with_tip(error, first.as_deref()).exit()
    })
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
    after_help = examples! {
        "hob                                   show what is running and what to do next"
        "hob init                              detect the hardware and write a configuration"
        "hob chat                              chat with the default model"
        "hob ask 'Why is the sky blue?'        ask the default model"
        "hob serve                             serve OpenAI clients on http://localhost:8000/v1"
        "hob doctor                            find out what is wrong"
        "hob run, ps, list, pull, show, stop, rm   the same as in Ollama"
    }
)]
pub struct Args {
    /// `None` shows what is running.
    #[command(subcommand)]
    pub command: Option<CliCommand>,

    /// Use verbose output on stderr; repeat for more detail (-vv)
    #[arg(short, long, global = true, action = ArgAction::Count, display_order = 100)]
    pub verbose: u8,
}

#[derive(Debug, Subcommand)]
pub enum CliCommand {
    Serve(ServeArgs),
    Ask(AskArgs),
    Chat(ChatArgs),
    /// List, find, download and choose models
    #[command(subcommand, after_help = examples! {
        "hob model list                        list the models of all running engines"
        "hob model list --available            list models to download, and which of them fit this machine"
        "hob model pull qwen3:8b               download a model"
        "hob model use qwen3:8b                make it the default model"
        ""
        "Ollama's commands work too: hob run, ps, list, pull, show, stop, rm."
    })]
    Model(ModelCommand),
    /// List, inspect and run the tools that agents use
    #[command(subcommand, after_help = examples! {
        "hob tools list                        list all tools and what they can reach"
        "hob tools info calculator             show its description and arguments"
        "hob tools run calculator '{\"expression\": \"17 * 23\"}'"
    })]
    Tools(ToolsCommand),
    /// Index and search your documents
    #[command(subcommand, after_help = examples! {
        "hob memory index ~/notes              index new and changed files"
        "hob memory search 'when was the boiler serviced'"
        "hob ask 'When was the boiler serviced?'   answer from your documents"
    })]
    Memory(MemoryCommand),
    /// List and check the calendars, feeds and pages that agents read
    #[command(subcommand, after_help = examples! {
        "hob sources list                      list the configured sources"
        "hob sources check                     read each source once"
        "hob tools run calendar '{\"from\": \"week\"}'"
    })]
    Sources(SourcesCommand),
    /// Schedule prompts, once or repeatedly
    #[command(subcommand, after_help = examples! {
        "hob scheduler create 'Say good morning.' --every 'weekdays 07:00'"
        "hob scheduler list                    list tasks, next run first"
        "hob scheduler start                   run tasks when they are due, until Ctrl-C"
    })]
    Scheduler(SchedulerCommand),
    Recipes(RecipesArgs),
    Mcp(McpArgs),
    Feedback(FeedbackArgs),
    /// Show or reset what the model router has learned
    #[command(subcommand, after_help = examples! {
        "hob router show                       show results and probability of each model"
        "hob router reset -y                   start over without confirmation"
    })]
    Router(RouterCommand),
    /// Create and change named API keys
    #[command(subcommand, after_help = examples! {
        "hob key create ana                    create a member's key and show its secret once"
        "hob key create ci --models 'qwen*' --requests-per-minute 60 --budget '200k tokens/day'"
        "hob key list                          list the keys"
        "hob key change ana --expires 90d      change what a key may use"
        "hob key revoke ana                    make a key invalid for good"
    })]
    Key(KeyCommand),
    /// Show, export or check the log of changes
    #[command(subcommand, after_help = examples! {
        "hob audit list                        list the newest changes of keys, models and tasks"
        "hob audit verify                      check that no change was altered or removed"
    })]
    Audit(AuditCommand),
    /// Show, export or delete recorded calls
    #[command(subcommand, after_help = examples! {
        "hob telemetry stats                   show calls, tokens, latency and cost"
        "hob telemetry export -f csv -o calls.csv"
        "hob telemetry clear -y                delete all records without confirmation"
    })]
    Telemetry(TelemetryCommand),
    /// Measure how fast an engine answers
    #[command(subcommand, after_help = examples! {
        "hob bench run                         latency, and throughput at 1, 4 and 16 concurrent requests"
        "hob bench run -m qwen3:8b -n 20 -o before.jsonl"
        "hob bench compare before.jsonl after.jsonl"
    })]
    Bench(BenchCommand),
    /// Connect Telegram, e-mail, WhatsApp or a gateway, and send messages
    #[command(subcommand, after_help = examples! {
        "hob channel add telegram              connect a Telegram bot, and write to Hob from your phone"
        "hob channel add email                 connect a mail account, and write to Hob by e-mail"
        "hob channel approve ABCD-EFGH         approve a person who wrote to Hob"
        "hob channel send telegram:12345 'Dinner is ready.'"
        "hob channel login whatsapp            link a WhatsApp account"
        "hob channel status                    check whether the channels answer"
    })]
    Channel(ChannelCommand),
    /// Copy all data between SQLite and PostgreSQL
    #[command(subcommand, after_help = examples! {
        "hob database copy --from sqlite --to postgres"
        "hob database copy --from postgres --to sqlite"
    })]
    Database(DatabaseCommand),
    Backup(BackupArgs),
    Restore(RestoreArgs),
    Init(InitArgs),
    Doctor(DoctorArgs),
    Health(HealthArgs),
    Reload(ReloadArgs),
    /// Run the server as a service that starts by itself
    #[command(subcommand, after_help = examples! {
        "hob service install                   start Hob whenever you log in"
        "hob service status                    show whether it runs"
        "hob service uninstall                 stop it and remove its file"
    })]
    Service(ServiceCommand),
    Update(UpdateArgs),
    Completions(CompletionsArgs),
    #[command(flatten)]
    OllamaCommand(OllamaCommand),
    #[command(hide = true)]
    Man(ManArgs),
    /// Read a document from stdin for the parent process
    #[command(hide = true)]
    ReadFile,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use hob_config::AgentName;

    use super::*;

    fn parse(line: &[&str]) -> Result<Args, String> {
        Args::try_parse_from(["hob"].iter().chain(line)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_shows_examples() {
        let mut commands = vec![Args::command()];
        while let Some(command) = commands.pop() {
            let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(below.contains("Examples:"), "the help of '{}' has no examples", command.get_name());
            commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()).cloned());
        }
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
            Ok(Some(CliCommand::Serve(serve))) => serve.agent,
            other => panic!("{other:?}"),
        };
        assert_eq!(agent("react"), Some(AgentChoice::Agent(AgentName::React)));
        assert_eq!(agent("openhands"), Some(AgentChoice::Agent(AgentName::Codeact)));
        assert_eq!(agent("none"), Some(AgentChoice::None));
        assert_eq!(agent(""), Some(AgentChoice::None));
        assert!(parse(&["serve", "-a", "orchestra"]).is_err());
    }

    #[test]
    fn a_port_goes_by_its_first_letter() {
        let port = |line: &[&str]| match parse(line).map(|args| args.command) {
            Ok(Some(CliCommand::Serve(serve))) => serve.port,
            Ok(Some(CliCommand::Health(health))) => health.port,
            other => panic!("{other:?}"),
        };
        assert_eq!(port(&["serve", "-p", "9000"]), Some(9000));
        assert_eq!(port(&["health", "-p", "9000"]), Some(9000));
    }

    #[test]
    fn an_invalid_number_gets_our_own_error() {
        for (line, expected) in [
            (&["serve", "-p", "http"][..], "expected a port number from 0 to 65535"),
            (&["serve", "-p", "65536"], "expected a port number from 0 to 65535"),
            (&["telemetry", "stats", "-n", "all"], "expected a whole number"),
            (&["scheduler", "logs", "id", "-n", "all"], "expected a whole number"),
            (&["memory", "index", ".", "--chunk-size", "1.5"], "expected a whole number"),
        ] {
            let refusal = parse(line).expect_err(line[0]);
            assert!(refusal.contains(expected), "{line:?}: {refusal}");
        }
    }

    #[test]
    fn the_words_of_ollama_are_understood_and_hidden() {
        for line in [
            &["run", "qwen3:8b", "Hello", "you"][..],
            &["ps"],
            &["list"],
            &["pull", "qwen3:8b"],
            &["show", "qwen3:8b"],
            &["stop", "qwen3:8b"],
            &["stop"],
            &["rm", "qwen3:8b"],
        ] {
            let args = parse(line).expect(line[0]);
            assert!(matches!(args.command, Some(CliCommand::OllamaCommand(_))), "{line:?}");
            let command = Args::command();
            assert!(command.find_subcommand(line[0]).is_some_and(clap::Command::is_hide_set), "{line:?}");
        }
    }

    #[test]
    fn a_misspelt_engine_is_recognised() {
        let refusal = parse(&["ask", "-e", "olama", "q"]).expect_err("no such engine");
        assert!(refusal.contains("'ollama'"), "{refusal}");
    }
}
