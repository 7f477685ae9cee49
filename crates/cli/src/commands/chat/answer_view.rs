//! Shows an answer in the chat: rendered Markdown on a terminal, plain text elsewhere, with the steps of agents in between.

use std::io;

use crate::commands::ask::answer_output::AnswerOutput;
use crate::commands::ask::answer_output::ReasoningDisplay;
use crate::output;
use crate::output::markdown::{Markdown, MarkdownLook};
use crate::output::progress::Spinner;
use crate::output::text::{one_line, shortened};

/// Characters of a line about a tool.
const LONGEST_STEP: usize = 200;

pub struct AnswerView {
    output: AnswerOutput,
    reasoning: ReasoningDisplay,
    steps: StepDisplay,
    /// `None` for plain text.
    look: Option<MarkdownLook>,
    markdown: Option<Markdown>,
    waiting: Option<Spinner>,
    /// The text of the spinner.
    awaited: String,
}

/// Whether the steps of agents are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepDisplay {
    Shown,
    Hidden,
}

impl AnswerView {
    pub fn new(look: Option<MarkdownLook>, steps: StepDisplay, reasoning: ReasoningDisplay) -> Self {
        AnswerView {
            output: AnswerOutput::new(reasoning),
            reasoning,
            steps,
            look,
            markdown: look.map(Markdown::new),
            waiting: None,
            awaited: String::new(),
        }
    }

    /// Shows a spinner until something else is printed.
    pub fn wait(&mut self, what: String) {
        self.waiting = Some(Spinner::start(what.clone()));
        self.awaited = what;
    }

    /// Adds a piece of the answer.
    pub async fn text(&mut self, piece: &str) -> io::Result<()> {
        let Some(markdown) = &mut self.markdown else {
            self.waiting = None;
            return self.output.write(piece).await;
        };
        let shown = markdown.push(piece);
        self.show(&shown).await
    }

    async fn show(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.waiting = None;
        self.output.write_rendered(text).await
    }

    /// Adds a piece of the model's reasoning.
    pub fn think(&mut self, text: &str) {
        if self.reasoning == ReasoningDisplay::Shown {
            self.waiting = None;
            self.output.think(text);
        }
    }

    /// Prints a step on a separate line.
    pub async fn step(&mut self, line: &str) -> io::Result<()> {
        if self.steps == StepDisplay::Hidden {
            return Ok(());
        }
        self.end().await?;
        output::note(shortened(&one_line(line), LONGEST_STEP));
        self.wait(self.awaited.clone());
        Ok(())
    }

    /// Ends the current text. The next text starts on a new line.
    pub async fn end(&mut self) -> io::Result<()> {
        self.waiting = None;
        if let Some(markdown) = self.markdown.take() {
            let rest = markdown.finish();
            self.show(&rest).await?;
            self.markdown = self.look.map(Markdown::new);
        }
        self.output.end().await
    }
}
