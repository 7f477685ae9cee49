//! The line editor, with history and completion, on a separate thread because it blocks.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context as _, Result};
use rustyline::completion::Completer;
use rustyline::config::Behavior;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Cmd, Config, Context, Helper, KeyCode, KeyEvent, Modifiers};
use tokio::sync::oneshot;

use super::command::{COMMANDS, is_complete};
use crate::output::style::NAME;

/// The maximum number of lines in the history.
const REMEMBERED: usize = 1_000;

/// Longer texts do not enter the history.
const LONGEST_REMEMBERED: usize = 10_000;

const PROMPT: &str = "> ";

/// The result of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub enum EditorEvent {
    Line(String),
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D, or the terminal was closed.
    End,
}

/// A line, and the width of the terminal when it was typed.
#[derive(Debug)]
pub struct EditorInput {
    pub typed: EditorEvent,
    pub width: Option<usize>,
}

/// Options of the editor.
pub struct EditorOptions {
    /// The history file. Only its owner can read it.
    pub history: PathBuf,
    pub has_colours: bool,
    /// Whether stdout is the terminal. Where it is not, the terminal is still used for typing.
    pub is_stdout: bool,
}

type InputReply = oneshot::Sender<Result<EditorInput>>;

/// The editor's thread. It ends when this value is dropped, or with the program if it waits for a key.
pub struct Editor {
    wishes: mpsc::Sender<InputReply>,
}

impl Editor {
    pub fn start(options: EditorOptions) -> Result<Self> {
        let (wishes, wished) = mpsc::channel();
        thread::Builder::new()
            .name("editor".to_owned())
            .spawn(move || serve(&options, &wished))
            .context("cannot start the line editor")?;
        Ok(Editor { wishes })
    }

    /// Starts waiting for a line.
    pub fn read(&self) -> oneshot::Receiver<Result<EditorInput>> {
        let (reply, input) = oneshot::channel();
        // If the editor thread is gone, awaiting the reply fails.
        let _ = self.wishes.send(reply);
        input
    }
}

fn serve(options: &EditorOptions, wished: &mpsc::Receiver<InputReply>) {
    let mut editor = open(options);
    for reply in wished {
        let input = match &mut editor {
            Ok(editor) => read(editor, options),
            Err(error) => Err(anyhow::anyhow!("cannot start the line editor: {error}")),
        };
        // A receiver that is gone means that the program ends.
        let _ = reply.send(input);
    }
}

fn open(options: &EditorOptions) -> rustyline::Result<rustyline::Editor<EditorHelper, FileHistory>> {
    let config = Config::builder()
        .max_history_size(REMEMBERED)?
        .history_ignore_dups(true)?
        // As in shells, a leading space keeps a line out of the history.
        .history_ignore_space(true)
        .behavior(if options.is_stdout { Behavior::Stdio } else { Behavior::PreferTerm })
        .build();
    let mut editor = rustyline::Editor::with_config(config)?;
    editor.set_helper(Some(EditorHelper));
    editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
    // The file does not exist the first time, and a chat works without it.
    if let Err(error) = editor.load_history(&options.history) {
        tracing::debug!(%error, "starting without earlier lines");
    }
    Ok(editor)
}

fn read(
    editor: &mut rustyline::Editor<EditorHelper, FileHistory>,
    options: &EditorOptions,
) -> Result<EditorInput> {
    let styled = if options.has_colours { format!("{NAME}{PROMPT}{NAME:#}") } else { PROMPT.to_owned() };
    let typed = match editor.readline(&(PROMPT, styled)) {
        Ok(line) => EditorEvent::Line(line),
        Err(ReadlineError::Interrupted) => EditorEvent::Interrupt,
        Err(ReadlineError::Eof) => EditorEvent::End,
        Err(error) => return Err(error).context("cannot read what is typed"),
    };
    if let EditorEvent::Line(line) = &typed
        && line.len() <= LONGEST_REMEMBERED
    {
        remember(editor, line, &options.history);
    }
    let width = editor.dimensions().map(|(columns, _)| usize::from(columns));
    Ok(EditorInput { typed, width })
}

/// Written immediately, so that a killed program loses nothing.
fn remember(editor: &mut rustyline::Editor<EditorHelper, FileHistory>, line: &str, file: &Path) {
    let written = editor.add_history_entry(line).and_then(|_| editor.append_history(file));
    if let Err(error) = written {
        tracing::debug!(%error, "a line is not remembered");
    }
}

/// Completion and validation for the editor.
struct EditorHelper;

impl Helper for EditorHelper {}
impl Highlighter for EditorHelper {}

impl Hinter for EditorHelper {
    type Hint = String;
}

impl Completer for EditorHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok((0, completions(&line[..position])))
    }
}

impl Validator for EditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match is_complete(context.input()) {
            true => ValidationResult::Valid(None),
            false => ValidationResult::Incomplete,
        })
    }
}

/// Completions of a line.
fn completions(begun: &str) -> Vec<String> {
    let agents =
        ["simple", "orchestrator", "react", "codeact", "none"].map(|agent| format!("/agent {agent}"));
    let switches = ["on", "off"].map(|switch| format!("/memory {switch}"));
    let commands = COMMANDS.iter().map(|command| match command.argument {
        "" => command.name.to_owned(),
        _ => format!("{} ", command.name),
    });
    let matching = |line: &String| !begun.is_empty() && line.starts_with(begun) && line != begun;
    let found: Vec<String> = commands.filter(matching).collect();
    if found.is_empty() { agents.into_iter().chain(switches).filter(matching).collect() } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_their_arguments_are_completed() {
        assert_eq!(completions("/m"), ["/model ", "/memory "]);
        assert_eq!(completions("/q"), ["/quit"]);
        assert_eq!(completions("/agent o"), ["/agent orchestrator"]);
        assert_eq!(completions("/memory "), ["/memory on", "/memory off"]);
        assert!(completions("hello").is_empty() && completions("").is_empty());
    }
}
