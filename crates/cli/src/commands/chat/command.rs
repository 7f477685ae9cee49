//! Parses a line: a message for the model, or a command for the program.

use hob_conversations::ChatId;
use hob_core::{MaxTokens, Temperature};

use crate::args::AgentChoice;

/// The help of a command.
pub struct CommandHelp {
    pub name: &'static str,
    pub argument: &'static str,
    pub does: &'static str,
}

const fn explained(name: &'static str, argument: &'static str, does: &'static str) -> CommandHelp {
    CommandHelp { name, argument, does }
}

/// All commands, in the order of the help.
pub const COMMANDS: [CommandHelp; 16] = [
    explained("/help", "", "show this help"),
    explained("/model", "[NAME]", "list the models, or switch to another one"),
    explained("/agent", "[NAME|none]", "show the agent, or switch to another one or to none"),
    explained("/tools", "", "list the tools that agents use"),
    explained("/memory", "[on|off]", "turn the use of your documents on or off"),
    explained("/system", "[TEXT|none]", "show or set the instructions before the conversation"),
    explained("/set", "[NAME VALUE]", "show or set temperature, max_tokens, top_p or seed"),
    explained("/attach", "FILE", "send a picture or a document with the next message"),
    explained("/retry", "", "ask the last question again"),
    explained("/copy", "", "copy the last answer to the clipboard"),
    explained("/save", "FILE", "save the conversation to a Markdown file"),
    explained("/new", "", "start a new conversation"),
    explained("/list", "", "list saved conversations"),
    explained("/resume", "ID", "resume a saved conversation"),
    explained("/forget", "ID", "delete a saved conversation"),
    explained("/quit", "", "quit (also exit or quit alone on the line, or Ctrl-D)"),
];

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// A change of how tokens are chosen. `None` returns to the default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SamplingChange {
    Temperature(Option<Temperature>),
    MaxTokens(Option<MaxTokens>),
    TopP(Option<f64>),
    Seed(Option<i64>),
}

/// A command.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatCommand {
    Help,
    /// `None` lists the models.
    Model(Option<String>),
    Agent(Option<AgentChoice>),
    Tools,
    Memory(Option<Switch>),
    /// `Some(None)` removes the instructions.
    System(Option<Option<String>>),
    Set(Option<SamplingChange>),
    Attach(String),
    Retry,
    Copy,
    Save(String),
    New,
    List,
    Resume(ChatId),
    Forget(ChatId),
    Quit,
}

/// The user's input.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatInput {
    Nothing,
    Message(String),
    Command(ChatCommand),
    /// An invalid command, and the reason.
    Unclear(String),
}

/// Parses the input. A command is one line that starts with a slash; a path, which has several slashes, is a message. As in a
/// shell, `exit` and `quit` alone leave too; after a space they are a message.
pub fn read(typed: &str) -> ChatInput {
    let text = without_continuations(typed);
    let text = text.trim_end();
    if text.trim().is_empty() {
        return ChatInput::Nothing;
    }
    if matches!(text, "exit" | "quit") {
        return ChatInput::Command(ChatCommand::Quit);
    }
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is_command = name.starts_with('/') && !name[1..].contains('/') && !text.contains('\n');
    if !is_command {
        return ChatInput::Message(text.trim().to_owned());
    }
    match command(name, rest.trim()) {
        Ok(command) => ChatInput::Command(command),
        Err(why) => ChatInput::Unclear(why),
    }
}

fn command(name: &str, argument: &str) -> Result<ChatCommand, String> {
    let given = Some(argument).filter(|argument| !argument.is_empty());
    let needs_none = |command| match given {
        None => Ok(command),
        Some(_) => Err(format!("{name} takes no argument.")),
    };
    match name {
        "/help" | "/?" => needs_none(ChatCommand::Help),
        "/model" => Ok(ChatCommand::Model(given.map(str::to_owned))),
        "/agent" => given.map(agent).transpose().map(ChatCommand::Agent),
        "/tools" => needs_none(ChatCommand::Tools),
        "/memory" => given.map(switch).transpose().map(ChatCommand::Memory),
        "/system" => {
            Ok(ChatCommand::System(given.map(|text| Some(text.to_owned()).filter(|text| text != "none"))))
        }
        "/set" => given.map(sampling_change).transpose().map(ChatCommand::Set),
        "/attach" => {
            let file = given.ok_or("/attach needs a file name, e.g. /attach report.pdf")?;
            Ok(ChatCommand::Attach(file.to_owned()))
        }
        "/retry" => needs_none(ChatCommand::Retry),
        "/copy" => needs_none(ChatCommand::Copy),
        "/save" => {
            let file = given.ok_or("/save needs a file name, e.g. /save chat.md")?;
            Ok(ChatCommand::Save(file.to_owned()))
        }
        "/new" => needs_none(ChatCommand::New),
        "/list" => needs_none(ChatCommand::List),
        "/resume" => number(name, argument).map(ChatCommand::Resume),
        "/forget" => number(name, argument).map(ChatCommand::Forget),
        "/quit" | "/exit" => needs_none(ChatCommand::Quit),
        _ => Err(unknown(name)),
    }
}

fn agent(name: &str) -> Result<AgentChoice, String> {
    match name {
        "none" => Ok(AgentChoice::None),
        name => name.parse().map(AgentChoice::Agent).map_err(|error| format!("{error}, or none.")),
    }
}

fn number(name: &str, argument: &str) -> Result<ChatId, String> {
    ChatId::parse(argument).ok_or_else(|| format!("{name} needs a conversation ID; /list shows them."))
}

fn switch(word: &str) -> Result<Switch, String> {
    match word {
        "on" => Ok(Switch::On),
        "off" => Ok(Switch::Off),
        _ => Err("/memory takes 'on' or 'off'.".to_owned()),
    }
}

/// Such as `temperature 0.2`, or `temperature default`.
fn sampling_change(argument: &str) -> Result<SamplingChange, String> {
    let usage = || {
        "/set takes a name and a value, e.g. /set temperature 0.2. Names: temperature, max_tokens, top_p, seed. The value \
         'default' returns to the default."
            .to_owned()
    };
    let (name, value) = argument.split_once(char::is_whitespace).ok_or_else(usage)?;
    let value = Some(value.trim()).filter(|value| *value != "default");
    let number =
        |text: &str| text.parse::<f64>().map_err(|_| format!("{name} must be a number, got {text}."));
    let whole =
        |text: &str| text.parse::<i64>().map_err(|_| format!("{name} must be a whole number, got {text}."));
    let described = |error: hob_core::InvalidValue| format!("{error}.");
    match name {
        "temperature" => {
            let read = |text| Temperature::new(number(text)?).map_err(described);
            value.map(read).transpose().map(SamplingChange::Temperature)
        }
        "max_tokens" => {
            let read = |text| MaxTokens::new(whole(text)?).map_err(described);
            value.map(read).transpose().map(SamplingChange::MaxTokens)
        }
        "top_p" => {
            let read = |text| match number(text)? {
                top_p if (0.0..=1.0).contains(&top_p) => Ok(top_p),
                top_p => Err(format!("top_p must be between 0.0 and 1.0, got {top_p}.")),
            };
            value.map(read).transpose().map(SamplingChange::TopP)
        }
        "seed" => value.map(whole).transpose().map(SamplingChange::Seed),
        _ => Err(usage()),
    }
}

fn unknown(name: &str) -> String {
    let distance = |known: &CommandHelp| strsim::damerau_levenshtein(known.name, name);
    let nearest = COMMANDS.iter().min_by_key(|known| distance(known)).filter(|known| distance(known) <= 2);
    let names: Vec<&str> = COMMANDS.iter().map(|known| known.name).collect();
    match nearest {
        Some(known) => {
            format!("Unknown command {name}. Did you mean {}? Commands: {}.", known.name, names.join(" "))
        }
        None => format!(
            "Unknown command {name}. Commands: {}. To send text that starts with '/', type a space first.",
            names.join(" ")
        ),
    }
}

/// Whether the input is complete: a backslash at its end, or an open code block, continues it.
pub fn is_complete(typed: &str) -> bool {
    let backslashes = typed.len() - typed.trim_end_matches('\\').len();
    let fences = typed.lines().filter(|line| line.trim_start().starts_with("```")).count();
    backslashes.is_multiple_of(2) && fences.is_multiple_of(2)
}

/// The text without the backslashes that continue lines.
fn without_continuations(typed: &str) -> String {
    let mut lines: Vec<&str> = typed.split('\n').collect();
    let last = lines.pop();
    let mut text: String = lines
        .into_iter()
        .map(|line| {
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            let kept = if backslashes % 2 == 1 { &line[..line.len() - 1] } else { line };
            format!("{kept}\n")
        })
        .collect();
    text.push_str(last.unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use hob_config::AgentName;

    use super::*;

    #[test]
    fn a_line_is_a_message_unless_it_is_a_command() {
        for message in
            ["hello", "/etc/passwd is what?", "a /help", "/help\nme", "what?", "exit now", "quit\nnow"]
        {
            assert_eq!(read(message), ChatInput::Message(message.to_owned()));
        }
        assert_eq!(read(" /tmp?"), ChatInput::Message("/tmp?".into()), "a space makes it a message");
        assert_eq!(read(" exit"), ChatInput::Message("exit".into()), "a space makes it a message");
        assert_eq!(read(" \n "), ChatInput::Nothing);
    }

    #[test]
    fn commands_are_parsed_with_their_arguments() {
        let id = ChatId::parse("12").expect("a number");
        for (line, command) in [
            ("/help", ChatCommand::Help),
            ("/?", ChatCommand::Help),
            ("/model", ChatCommand::Model(None)),
            ("/model  qwen3:8b ", ChatCommand::Model(Some("qwen3:8b".into()))),
            ("/agent", ChatCommand::Agent(None)),
            ("/agent none", ChatCommand::Agent(Some(AgentChoice::None))),
            ("/agent react", ChatCommand::Agent(Some(AgentChoice::Agent(AgentName::React)))),
            ("/tools", ChatCommand::Tools),
            ("/memory", ChatCommand::Memory(None)),
            ("/memory off", ChatCommand::Memory(Some(Switch::Off))),
            ("/system", ChatCommand::System(None)),
            ("/system Be brief.", ChatCommand::System(Some(Some("Be brief.".into())))),
            ("/system none", ChatCommand::System(Some(None))),
            ("/set", ChatCommand::Set(None)),
            (
                "/set temperature 0.2",
                ChatCommand::Set(Some(SamplingChange::Temperature(Some(
                    Temperature::new(0.2).expect("valid"),
                )))),
            ),
            (
                "/set max_tokens 9",
                ChatCommand::Set(Some(SamplingChange::MaxTokens(Some(MaxTokens::new(9).expect("valid"))))),
            ),
            ("/set top_p 0.5", ChatCommand::Set(Some(SamplingChange::TopP(Some(0.5))))),
            ("/set  seed  7", ChatCommand::Set(Some(SamplingChange::Seed(Some(7))))),
            ("/set seed default", ChatCommand::Set(Some(SamplingChange::Seed(None)))),
            ("/attach my report.pdf", ChatCommand::Attach("my report.pdf".into())),
            ("/retry", ChatCommand::Retry),
            ("/copy", ChatCommand::Copy),
            ("/save my chat.md", ChatCommand::Save("my chat.md".into())),
            ("/new", ChatCommand::New),
            ("/list", ChatCommand::List),
            ("/resume 12", ChatCommand::Resume(id)),
            ("/forget 12", ChatCommand::Forget(id)),
            ("/quit", ChatCommand::Quit),
            ("/exit", ChatCommand::Quit),
            ("exit", ChatCommand::Quit),
            ("quit ", ChatCommand::Quit),
        ] {
            assert_eq!(read(line), ChatInput::Command(command), "{line}");
        }
    }

    #[test]
    fn an_invalid_command_gets_a_hint() {
        for (line, expected) in [
            ("/modle", "Did you mean /model?"),
            ("/frobnicate", "Commands: /help /model"),
            ("/agent orchestra", "known agents: simple, orchestrator, react, codeact, or none"),
            ("/memory maybe", "'on' or 'off'"),
            ("/set temperature", "Names: temperature, max_tokens, top_p, seed."),
            ("/set colour blue", "Names: temperature, max_tokens, top_p, seed."),
            ("/set temperature warm", "temperature must be a number, got warm."),
            ("/set temperature 9", "between 0.0 and 2.0, got 9."),
            ("/set max_tokens 0", "at least 1, got 0."),
            ("/set top_p 2", "between 0.0 and 1.0, got 2."),
            ("/set seed x", "seed must be a whole number, got x."),
            ("/attach", "a file name"),
            ("/save", "a file name"),
            ("/resume", "/list shows them"),
            ("/resume twelve", "/list shows them"),
            ("/new conversation", "/new takes no argument."),
        ] {
            match read(line) {
                ChatInput::Unclear(why) => assert!(why.contains(expected), "{line}: {why}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn every_documented_command_exists() {
        for CommandHelp { name, argument, .. } in COMMANDS {
            let line = match argument {
                "FILE" => format!("{name} x"),
                "ID" => format!("{name} 1"),
                _ => name.to_owned(),
            };
            assert!(matches!(read(&line), ChatInput::Command(_)), "{line}");
        }
    }

    #[test]
    fn a_message_may_have_several_lines() {
        assert!(!is_complete("one \\"));
        assert!(is_complete("one \\\\"), "a backslash itself");
        assert!(!is_complete("```rust\nfn main"));
        assert!(is_complete("```rust\nfn main() {}\n```"));
        assert_eq!(read("one \\\ntwo"), ChatInput::Message("one \ntwo".into()));
        assert_eq!(read("C:\\\\\ntwo"), ChatInput::Message("C:\\\\\ntwo".into()));
    }
}
