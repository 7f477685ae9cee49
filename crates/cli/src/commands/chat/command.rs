//! What a line means: a message for the model, or a command for the program.

use crate::args::AgentChoice;
use hob_system::store::chats::ChatId;

/// A command as it is explained.
pub struct CommandHelp {
    pub name: &'static str,
    pub argument: &'static str,
    pub does: &'static str,
}

const fn explained(name: &'static str, argument: &'static str, does: &'static str) -> CommandHelp {
    CommandHelp { name, argument, does }
}

/// All of them, in the order of the help.
pub const COMMANDS: [CommandHelp; 12] = [
    explained("/help", "", "show this"),
    explained("/model", "[NAME]", "show the models, or have another one answer"),
    explained("/agent", "[NAME|none]", "show who answers, or have an agent do it, or the model itself"),
    explained("/tools", "", "show the tools that agents use"),
    explained("/memory", "[on|off]", "answer with what your documents say, or without"),
    explained("/retry", "", "ask the last question again"),
    explained("/save", "FILE", "write the conversation to a file, as Markdown"),
    explained("/new", "", "begin another conversation"),
    explained("/list", "", "show the conversations that were kept"),
    explained("/resume", "ID", "go on with one of them"),
    explained("/forget", "ID", "delete one of them for good"),
    explained("/quit", "", "leave; so does Ctrl-D"),
];

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    On,
    Off,
}

/// What the program is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatCommand {
    Help,
    /// `None` to show what there is.
    Model(Option<String>),
    Agent(Option<AgentChoice>),
    Tools,
    Memory(Option<Switch>),
    Retry,
    Save(String),
    New,
    List,
    Resume(ChatId),
    Forget(ChatId),
    Quit,
}

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatInput {
    Nothing,
    Message(String),
    Command(ChatCommand),
    /// A command that cannot be understood, and why.
    Unclear(String),
}

/// Reads what was typed. A command is one line that begins with a slash; a path, which has several, is a message.
pub fn read(typed: &str) -> ChatInput {
    let text = without_continuations(typed);
    let text = text.trim_end();
    if text.trim().is_empty() {
        return ChatInput::Nothing;
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
        Some(_) => Err(format!("{name} takes nothing behind it.")),
    };
    match name {
        "/help" | "/?" => needs_none(ChatCommand::Help),
        "/model" => Ok(ChatCommand::Model(given.map(str::to_owned))),
        "/agent" => given.map(agent).transpose().map(ChatCommand::Agent),
        "/tools" => needs_none(ChatCommand::Tools),
        "/memory" => given.map(switch).transpose().map(ChatCommand::Memory),
        "/retry" => needs_none(ChatCommand::Retry),
        "/save" => {
            let file = given.ok_or("/save needs the name of a file, such as /save chat.md")?;
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
    ChatId::parse(argument)
        .ok_or_else(|| format!("{name} needs the number of a conversation; /list shows them."))
}

fn switch(word: &str) -> Result<Switch, String> {
    match word {
        "on" => Ok(Switch::On),
        "off" => Ok(Switch::Off),
        _ => Err("/memory takes 'on' or 'off'.".to_owned()),
    }
}

fn unknown(name: &str) -> String {
    let distance = |known: &CommandHelp| strsim::damerau_levenshtein(known.name, name);
    let nearest = COMMANDS.iter().min_by_key(|known| distance(known)).filter(|known| distance(known) <= 2);
    let names: Vec<&str> = COMMANDS.iter().map(|known| known.name).collect();
    match nearest {
        Some(known) => {
            format!("There is no {name}. Did you mean {}? There are {}.", known.name, names.join(" "))
        }
        None => format!(
            "There is no {name}. There are {}. A message may begin with a slash if a space stands before it.",
            names.join(" ")
        ),
    }
}

/// Whether what was typed is all: a backslash at its end, or a block of code that is open, wants another line.
pub fn is_complete(typed: &str) -> bool {
    let backslashes = typed.len() - typed.trim_end_matches('\\').len();
    let fences = typed.lines().filter(|line| line.trim_start().starts_with("```")).count();
    backslashes.is_multiple_of(2) && fences.is_multiple_of(2)
}

/// The text without the backslashes that only said that it goes on.
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
    use hob_config::AgentKey;

    use super::*;

    #[test]
    fn a_line_is_a_message_unless_it_is_a_command() {
        for message in ["hello", "/etc/passwd is what?", "a /help", "/help\nme", "what?"] {
            assert_eq!(read(message), ChatInput::Message(message.to_owned()));
        }
        assert_eq!(read(" /tmp?"), ChatInput::Message("/tmp?".into()), "a space makes it a message");
        assert_eq!(read(" \n "), ChatInput::Nothing);
    }

    #[test]
    fn commands_are_read_with_what_stands_behind_them() {
        let id = ChatId::parse("12").expect("a number");
        for (line, command) in [
            ("/help", ChatCommand::Help),
            ("/?", ChatCommand::Help),
            ("/model", ChatCommand::Model(None)),
            ("/model  qwen3:8b ", ChatCommand::Model(Some("qwen3:8b".into()))),
            ("/agent", ChatCommand::Agent(None)),
            ("/agent none", ChatCommand::Agent(Some(AgentChoice::None))),
            ("/agent react", ChatCommand::Agent(Some(AgentChoice::Agent(AgentKey::React)))),
            ("/tools", ChatCommand::Tools),
            ("/memory", ChatCommand::Memory(None)),
            ("/memory off", ChatCommand::Memory(Some(Switch::Off))),
            ("/retry", ChatCommand::Retry),
            ("/save my chat.md", ChatCommand::Save("my chat.md".into())),
            ("/new", ChatCommand::New),
            ("/list", ChatCommand::List),
            ("/resume 12", ChatCommand::Resume(id)),
            ("/forget 12", ChatCommand::Forget(id)),
            ("/quit", ChatCommand::Quit),
            ("/exit", ChatCommand::Quit),
        ] {
            assert_eq!(read(line), ChatInput::Command(command), "{line}");
        }
    }

    #[test]
    fn a_command_that_is_wrong_says_what_would_be_right() {
        for (line, expected) in [
            ("/modle", "Did you mean /model?"),
            ("/frobnicate", "There are /help /model"),
            ("/agent orchestra", "there are simple, orchestrator, react and codeact, or none"),
            ("/memory maybe", "'on' or 'off'"),
            ("/save", "the name of a file"),
            ("/resume", "/list shows them"),
            ("/resume twelve", "/list shows them"),
            ("/new conversation", "/new takes nothing behind it."),
        ] {
            match read(line) {
                ChatInput::Unclear(why) => assert!(why.contains(expected), "{line}: {why}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }

    #[test]
    fn every_command_that_is_explained_is_known() {
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
