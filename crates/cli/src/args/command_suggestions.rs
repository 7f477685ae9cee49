//! Words that people try first, and the commands that they mean. Similar spellings are clap's own suggestions.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Words, and what does the same in Hob.
const WORDS: &[(&[&str], &str)] = &[
    (
        &["tasks", "task", "schedule", "schedules", "cron", "jobs", "job", "remind"],
        "'hob scheduler' manages scheduled tasks",
    ),
    (
        &["documents", "document", "docs", "doc", "files", "notes", "index", "search", "rag"],
        "'hob memory' indexes and searches documents",
    ),
    (&["users", "user", "tokens", "token", "keys", "auth"], "'hob key' manages API keys"),
    (
        &["config", "configure", "configuration", "settings", "setup"],
        "'hob init' writes the configuration file, 'hob doctor' shows where it is",
    ),
    (
        &["logs", "log"],
        "the server writes its log to stderr; 'hob telemetry stats' shows recorded calls, 'hob audit list' shows changes",
    ),
    (&["start", "up", "server", "daemon"], "'hob serve' starts the server"),
    (
        &["quit", "exit", "kill", "shutdown", "down"],
        "Ctrl-C stops the server where 'hob serve' runs, and 'hob service stop' stops a service",
    ),
    (&["restart"], "'hob reload' makes the running server read its configuration again"),
    (&["models"], "'hob model list' lists the models"),
    (&["download", "install"], "'hob model pull MODEL' downloads a model"),
    (&["delete", "remove"], "'hob model rm MODEL' deletes a model"),
    (&["question", "prompt", "query", "generate"], "'hob ask' asks one question"),
    (
        &["talk", "repl", "chats", "history", "conversations"],
        "'hob chat' chats; 'hob chat --list' lists conversations",
    ),
    (
        &["agents", "agent", "tool"],
        "'hob ask -a orchestrator' asks an agent, 'hob tools list' lists its tools",
    ),
    (&["status", "info"], "'hob' shows what is running, 'hob doctor' what is wrong"),
    (&["stats", "usage", "metrics"], "'hob telemetry stats' shows recorded calls"),
    (
        &["mail", "mails", "email", "emails", "e-mail", "imap", "smtp", "inbox"],
        "'hob channel add email --read-only' connects a mailbox that agents read, 'hob channel add email' one that Hob answers",
    ),
    (&["telegram", "bot"], "'hob channel add telegram' connects a Telegram bot"),
    (&["whatsapp"], "'hob channel login whatsapp' links a WhatsApp account"),
    (
        &["slack", "signal", "discord", "matrix", "gateway"],
        "'hob channel' connects Telegram, e-mail, WhatsApp and gateways",
    ),
    (
        &["channels", "message", "messages", "send", "notify"],
        "'hob channel add telegram' connects a channel, 'hob channel send' sends messages",
    ),
    (&["briefing", "brief", "digest", "morning"], "'hob recipes add briefing' creates a morning briefing"),
    (&["recipe", "templates", "automation", "automations"], "'hob recipes' lists ready tasks"),
    (
        &[
            "source",
            "calendar",
            "calendars",
            "caldav",
            "agenda",
            "events",
            "rss",
            "feed",
            "feeds",
            "atom",
            "news",
            "weather",
            "page",
            "pages",
        ],
        "'hob sources list' lists calendars, feeds, pages and the weather; 'hob recipes add briefing' asks for them",
    ),
    (&["phone", "lan", "qr"], "'hob serve --lan' prints a QR code for a phone"),
    (&["version"], "'hob --version' prints the version"),
    (&["upgrade", "updates"], "'hob update' says what is new and how to update"),
    (&["services", "systemd", "launchd", "autostart"], "'hob service install' makes Hob start by itself"),
];

/// Characters of a question that a tip repeats.
const LONGEST_QUESTION: usize = 80;

/// A command, words that people try after it, and what does the same.
const NESTED_WORDS: &[(&str, &[&str], &str)] = &[
    ("memory", &["add", "import", "load", "new"], "'hob memory index PATH' adds documents"),
    (
        "memory",
        &["delete", "remove", "rm", "clear"],
        "'hob memory forget PATH' removes documents from the index",
    ),
    ("scheduler", &["delete", "remove", "rm", "stop"], "'hob scheduler cancel TASK' ends a task for good"),
    ("scheduler", &["add", "new"], "'hob scheduler create PROMPT' creates a task"),
    (
        "key",
        &["delete", "remove", "rm"],
        "'hob key revoke NAME' makes a key invalid for good, 'hob key disable NAME' for a while",
    ),
    ("key", &["add", "new"], "'hob key create NAME' creates a key"),
];

/// The error, with a tip if the command `first`, or the one after it, is a word that means another one.
pub fn with_tip(mut error: Error, first: Option<&str>) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let tip = match first {
        Some(first) if first == word => {
            tip(word).map(str::to_owned).or_else(|| is_question(word).then(|| question_tip(word)))
        }
        Some(first) => nested_tip(first, word).map(str::to_owned),
        None => None,
    };
    if let Some(tip) = tip {
        // Instead of the words that are spelt alike.
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

/// Whether a word is a question without its command. Commands have no spaces.
fn is_question(word: &str) -> bool {
    word.trim().contains(char::is_whitespace) || word.ends_with('?')
}

fn question_tip(question: &str) -> String {
    // A long question is not repeated, and one with a quote cannot be quoted simply.
    let is_plain = |letter: char| letter != '\'' && !letter.is_control();
    match question.chars().count() <= LONGEST_QUESTION && question.chars().all(is_plain) {
        true => format!("to ask a question, write: hob ask '{question}'"),
        false => "to ask a question, write: hob ask 'QUESTION'".to_owned(),
    }
}

fn tip(word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    WORDS.iter().find(|(words, _)| words.contains(&word.as_str())).map(|(_, tip)| *tip)
}

fn nested_tip(command: &str, word: &str) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let mut of_command = NESTED_WORDS.iter().filter(|(name, ..)| *name == command);
    of_command.find(|(_, words, _)| words.contains(&word.as_str())).map(|(.., tip)| *tip)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Args;

    fn refusal(line: &[&str]) -> String {
        let error = Args::try_parse_from(["hob"].iter().chain(line)).expect_err("no such command");
        with_tip(error, line.first().copied()).to_string()
    }

    #[test]
    fn a_word_for_another_command_gets_a_tip() {
        for (word, expected) in [
            ("tasks", "tip: 'hob scheduler' manages scheduled tasks\n"),
            ("docs", "tip: 'hob memory' indexes and searches documents\n"),
            ("users", "tip: 'hob key' manages API keys\n"),
            ("config", "tip: 'hob init' writes the configuration file"),
            ("logs", "tip: the server writes its log to stderr"),
            ("up", "tip: 'hob serve' starts the server\n"),
            ("start", "tip: 'hob serve' starts the server\n"),
            ("mail", "tip: 'hob channel add email --read-only' connects a mailbox that agents read"),
            ("Email", "tip: 'hob channel add email --read-only' connects a mailbox that agents read"),
            ("telegram", "tip: 'hob channel add telegram' connects a Telegram bot\n"),
            ("briefing", "tip: 'hob recipes add briefing' creates a morning briefing\n"),
            ("recipe", "tip: 'hob recipes' lists ready tasks\n"),
            ("calendar", "tip: 'hob sources list' lists calendars"),
            ("rss", "tip: 'hob sources list' lists calendars"),
            ("feeds", "tip: 'hob sources list' lists calendars"),
        ] {
            let refusal = refusal(&[word]);
            assert!(refusal.contains(expected), "{word}: {refusal}");
            assert_eq!(refusal.matches("tip:").count(), 1, "{word}: {refusal}");
        }
    }

    #[test]
    fn a_word_after_a_command_gets_a_tip() {
        for (line, expected) in [
            (["memory", "add"], "tip: 'hob memory index PATH' adds documents\n"),
            (["scheduler", "delete"], "tip: 'hob scheduler cancel TASK' ends a task for good\n"),
            (["key", "Delete"], "tip: 'hob key revoke NAME' makes a key invalid for good"),
        ] {
            let refusal = refusal(&line);
            assert!(refusal.contains(expected), "{line:?}: {refusal}");
            assert_eq!(refusal.matches("tip:").count(), 1, "{line:?}: {refusal}");
        }
        assert!(refusal(&["quit"]).contains("tip: Ctrl-C stops the server"));
    }

    #[test]
    fn a_question_without_its_command_gets_a_tip() {
        for (question, expected) in [
            ("Why is the sky blue?", "tip: to ask a question, write: hob ask 'Why is the sky blue?'\n"),
            ("Really?", "tip: to ask a question, write: hob ask 'Really?'\n"),
            ("What's new", "tip: to ask a question, write: hob ask 'QUESTION'\n"),
        ] {
            let refusal = refusal(&[question]);
            assert!(refusal.contains(expected), "{question}: {refusal}");
        }
    }

    #[test]
    fn other_mistakes_keep_their_own_suggestions() {
        assert!(refusal(&["serv"]).contains("'serve'"));
        let nested = refusal(&["scheduler", "tasks"]);
        assert!(
            nested.contains("unrecognized subcommand") && !nested.contains("'hob scheduler'"),
            "{nested}"
        );
    }

    #[test]
    fn a_word_is_listed_once_and_is_no_command() {
        let command = Args::command();
        let mut seen = BTreeSet::new();
        for word in WORDS.iter().flat_map(|(words, _)| *words) {
            assert!(seen.insert(*word), "{word} is listed twice");
            assert!(command.find_subcommand(word).is_none(), "{word} is a command");
        }
        for (name, words, _) in NESTED_WORDS {
            let parent = command.find_subcommand(name).expect(name);
            for word in *words {
                assert!(seen.insert(format!("{name} {word}").leak()), "{name} {word} is listed twice");
                assert!(parent.find_subcommand(word).is_none(), "{name} {word} is a command");
            }
        }
    }

    #[test]
    fn a_tip_names_only_commands_that_exist() {
        let tips = WORDS.iter().map(|(_, tip)| tip).chain(NESTED_WORDS.iter().map(|(.., tip)| tip));
        for tip in tips {
            let quoted: Vec<&str> = tip.split('\'').skip(1).step_by(2).collect();
            assert!(!quoted.is_empty(), "{tip}");
            for line in quoted {
                let words = line.strip_prefix("hob").expect(tip).split_whitespace();
                let mut command = Args::command();
                for word in words.take_while(|word| !word.starts_with('-')) {
                    let Some(found) = command.find_subcommand(word).cloned() else {
                        assert!(!command.has_subcommands(), "'{line}': there is no '{word}'");
                        break;
                    };
                    command = found;
                }
            }
        }
    }
}
