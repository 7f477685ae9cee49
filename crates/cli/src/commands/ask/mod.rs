//! `hob ask`: one question, one answer.

pub mod answer_output;
mod answer_schema;
pub mod question;

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow, bail};
use futures::StreamExt;
use hob_app::AppOptions;
use hob_config::AgentName;
use hob_conversations::{AttachmentKind, SavedAttachment, TurnEnding};
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_core::{FinishReason, MaxTokens, Temperature, sources_line};
use serde_json::{Map, Value, json};

use self::answer_output::{AnswerOutput, ReasoningDisplay};
use self::answer_schema::AnswerSchema;
use crate::answers::question_files::{read_document, read_picture};
use crate::answers::{
    AnswerEvent, AnswerEvents, AnswerHead, AnswerProvider, AskQuestion, AskingCommand, UsedPassage,
    WholeAnswer, explain_overflow, explain_pictures,
};
use crate::args::{AgentChoice, AskArgs};
use crate::commands::chat::command::Switch;
use crate::commands::chat::saved_chats::SavedChats;
use crate::commands::chat::session::{ChatEffect, ChatSession, ChatSettings};
use crate::commands::open_app::ServerChoice;
use crate::commands::{block_on, open_app};
use crate::failure;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::text::{one_line, shortened};
use crate::settings;

/// The option that raises the limit of tokens.
pub const TOKENS_OPTION: &str = "--max-tokens";

/// Characters of a passage that are shown.
const SHOWN_OF_PASSAGE: usize = 80;

pub fn run(args: AskArgs, reasoning: ReasoningDisplay) -> Result<ExitCode> {
    // Before anything listens for signals, so that Ctrl-C still ends a wait for stdin.
    let question = question::read(&args.query)?;
    let files = question_files(&args)?;
    let schema = args.schema.as_deref().map(AnswerSchema::read).transpose()?;
    let mut config = settings::load()?;
    if let Some(model) = &args.answering.model {
        config.use_model(model);
    }
    if let Some(router) = args.router {
        config.intelligence.router = router;
        config.server.model = Some(AUTO.to_owned());
    }
    let mut session = ChatSession::new(session_settings(&args));
    let mut wishes = open_app::open_options(args.answering.engine, args.answering.offline.into());
    let mut saved_chats = None;
    if args.go_on {
        let databases = settings::databases(&config)?;
        saved_chats = Some(block_on(SavedChats::open_latest(databases.hob.clone(), &mut session))?);
        wishes = AppOptions { databases: Some(databases), ..wishes };
    }
    let has_documents = files.iter().any(|file| file.kind == AttachmentKind::Text);
    files.into_iter().for_each(|file| session.attach(file));
    let ChatEffect::Ask(messages) = session.ask(question) else { bail!("the question is empty.") };
    let question = AskQuestion {
        messages,
        // The documents are what the question is about.
        uses_memory: !args.no_context && !has_documents,
        schema: schema.as_ref().map(|schema| schema.value().clone()),
        is_whole: args.json || args.no_stream || schema.is_some(),
        ..asked(&args)
    };
    let printing = AnswerPrinting { json: args.json, has_agent: question.agent.is_some(), reasoning, schema };
    let has_pictures = !args.images.is_empty();
    let choice = ServerChoice::of(&args.answering, args.router);
    open_app::with_answers(&config, &choice, &wishes, async |source, signals| {
        // Dropping the answer stops the engine's work on it.
        let printed = tokio::select! {
            printed = printing.print(source, question) => printed,
            stop = signals.next() => return Ok(stop.exit_code()),
        };
        let explain = |error| match has_pictures {
            true => explain_pictures(error),
            false => error,
        };
        let Printed { text, model } =
            printed.map_err(|error| explain_overflow(explain(error), session.turns().len()))?;
        let keep = session.answered(text, TurnEnding::Complete, model);
        if let (Some(keep), Some(saved_chats)) = (keep, &saved_chats)
            && let Err(error) = saved_chats.keep(keep).await
        {
            output::warning(format_args!("this turn was not saved: {}", failure::explain(&error)));
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn question_files(args: &AskArgs) -> Result<Vec<SavedAttachment>> {
    let pictures = args.images.iter().map(|file| read_picture(file));
    pictures.chain(args.files.iter().map(|file| read_document(file))).collect()
}

/// The conversation that the question belongs to. Its other settings are part of the question.
fn session_settings(args: &AskArgs) -> ChatSettings {
    ChatSettings { system: args.system.clone(), ..ChatSettings::new(AgentChoice::None, Switch::On) }
}

/// The question as the options describe it. Tools need an agent.
fn asked(args: &AskArgs) -> AskQuestion {
    let answering = &args.answering;
    let wants_tools = answering.tools.is_some() || args.require_tool;
    let agent = match answering.agent {
        Some(AgentChoice::Agent(agent)) => Some(agent.to_string()),
        None if wants_tools => Some(AgentName::Orchestrator.to_string()),
        Some(AgentChoice::None) | None => None,
    };
    let router = args.router.map(|_| AUTO.to_owned());
    AskQuestion {
        command: AskingCommand::Ask,
        // Only the default model may fall back to another one.
        model: answering.model.clone().filter(|model| model != DEFAULT_MODEL).or(router),
        temperature: answering.temperature.map(Temperature::get),
        max_tokens: answering.max_tokens.map(MaxTokens::get),
        agent,
        tools: answering.tools.clone(),
        requires_tool: args.require_tool,
        ..AskQuestion::default()
    }
}

/// How an answer is printed.
struct AnswerPrinting {
    json: bool,
    has_agent: bool,
    reasoning: ReasoningDisplay,
    /// The schema that the answer must follow.
    schema: Option<AnswerSchema>,
}

/// What was printed.
struct Printed {
    text: String,
    model: String,
}

/// What was prepared for a question.
#[derive(Default)]
struct Prepared {
    passages: Vec<UsedPassage>,
    max_tokens: Option<u32>,
}

impl AnswerPrinting {
    async fn print(&self, source: &AnswerProvider<'_>, question: AskQuestion) -> Result<Printed> {
        let waiting = Spinner::start(asking(question.model.as_deref()));
        let is_whole = question.is_whole;
        let events = source.answer(question);
        match (self.json, is_whole) {
            (true, _) => self.print_json(events, waiting).await,
            (false, true) => self.print_whole(events, waiting).await,
            (false, false) => self.print_stream(events, waiting).await,
        }
    }

    /// Notes the numbered passages of the user's documents that the model gets.
    fn note_passages(&self, passages: &[UsedPassage]) {
        if self.reasoning == ReasoningDisplay::Hidden {
            return;
        }
        for (number, passage) in (1..).zip(passages) {
            output::note(format_args!("[{number}] {}  {}", one_line(&passage.location), beginning(passage)));
        }
    }

    /// Notes which model answers and why, if Hob chose it. A fallback is always reported.
    fn note_model_choice(&self, head: &AnswerHead) {
        if let Some(reason) = &head.reason
            && (self.reasoning == ReasoningDisplay::Shown || head.is_fallback)
        {
            output::note(format_args!(
                "{} on {}. {}",
                one_line(&head.model),
                one_line(&head.engine),
                one_line(reason)
            ));
        }
    }

    /// The whole answer.
    async fn whole(&self, mut events: AnswerEvents<'_>, waiting: Spinner) -> Result<(Prepared, WholeAnswer)> {
        let mut prepared = Prepared::default();
        while let Some(event) = events.next().await {
            match event? {
                AnswerEvent::Prepared { passages, max_tokens } => {
                    self.note_passages(&passages);
                    prepared = Prepared { passages, max_tokens };
                }
                AnswerEvent::Whole(answer) => {
                    drop(waiting);
                    return Ok((prepared, *answer));
                }
                _ => {}
            }
        }
        bail!("the answer ended before it was complete.")
    }

    async fn print_json(&self, events: AnswerEvents<'_>, waiting: Spinner) -> Result<Printed> {
        let (Prepared { passages, max_tokens }, answer) = self.whole(events, waiting).await?;
        let mut object = shape(&answer);
        // Only if passages were used, so that the object does not change for users without a memory.
        if !passages.is_empty() {
            let context: Vec<Value> = passages.into_iter().map(|used| used.passage).collect();
            object.insert("context".to_owned(), json!(context));
        }
        if let Some(reason) = &answer.head.reason {
            object.insert("model_reason".to_owned(), json!(reason));
        }
        if !self.has_agent {
            object.retain(|field, _| field != "turns" && field != "tool_results");
        }
        self.check(&answer, max_tokens)?;
        output::json(&Value::Object(object))?;
        if answer.content.trim().is_empty() {
            let reason = FinishReason::parse(&answer.finish_reason);
            return Err(no_answer(Some(&reason), max_tokens, TOKENS_OPTION));
        }
        Ok(Printed { text: answer.content, model: answer.head.model })
    }

    async fn print_whole(&self, events: AnswerEvents<'_>, waiting: Spinner) -> Result<Printed> {
        let (Prepared { passages, max_tokens }, answer) = self.whole(events, waiting).await?;
        self.note_model_choice(&answer.head);
        let mut output = AnswerOutput::new(self.reasoning);
        if let Some(reasoning) = &answer.reasoning {
            output.think(reasoning);
        }
        self.check(&answer, max_tokens)?;
        output.write(&answer.content).await?;
        output.end().await?;
        let finish_reason = FinishReason::parse(&answer.finish_reason);
        if !output.has_words() {
            return Err(no_answer(Some(&finish_reason), max_tokens, TOKENS_OPTION));
        }
        note_truncation(&finish_reason, max_tokens, TOKENS_OPTION);
        note_sources(&answer.content, &passages);
        Ok(Printed { text: answer.content, model: answer.head.model })
    }

    /// An answer that does not follow the schema is an error, and is not printed. An empty answer has its own error.
    fn check(&self, answer: &WholeAnswer, max_tokens: Option<u32>) -> Result<()> {
        let Some(schema) = self.schema.as_ref().filter(|_| !answer.content.trim().is_empty()) else {
            return Ok(());
        };
        let is_cut = matches!(FinishReason::parse(&answer.finish_reason), FinishReason::Length);
        schema.check(&answer.content).map_err(|error| match (is_cut, max_tokens) {
            (true, Some(max_tokens)) => anyhow!(
                "the answer was cut off at {max_tokens} tokens, so it does not follow the schema. Raise the limit with \
                 {TOKENS_OPTION}."
            ),
            (true, None) => anyhow!(
                "the answer was cut off because the model's context is full, so it does not follow the schema. Shorten \
                 the question."
            ),
            (false, _) => error,
        })
    }

    async fn print_stream(&self, mut events: AnswerEvents<'_>, waiting: Spinner) -> Result<Printed> {
        let is_verbose = self.reasoning == ReasoningDisplay::Shown;
        let mut waiting = Some(waiting);
        let mut output = AnswerOutput::new(self.reasoning);
        let (mut text, mut model) = (String::new(), String::new());
        let (mut finish_reason, mut limit) = (None, None);
        let mut used = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(AnswerEvent::Prepared { passages, max_tokens }) => {
                    self.note_passages(&passages);
                    (limit, used) = (max_tokens, passages);
                }
                Ok(AnswerEvent::Begun(head)) => {
                    if head.reason.is_some() && (is_verbose || head.is_fallback) {
                        drop(waiting.take());
                        self.note_model_choice(&head);
                    }
                    model = head.model;
                }
                Ok(AnswerEvent::Text(piece)) => {
                    drop(waiting.take());
                    output.write(&piece).await?;
                    text.push_str(&piece);
                }
                Ok(AnswerEvent::Reasoning(piece)) => {
                    if is_verbose {
                        drop(waiting.take());
                    }
                    output.think(&piece);
                }
                Ok(AnswerEvent::Step(line)) => {
                    if is_verbose {
                        drop(waiting.take());
                        output.step(&line);
                    }
                }
                Ok(AnswerEvent::Finished(reason)) => finish_reason = Some(FinishReason::parse(&reason)),
                Ok(AnswerEvent::Done | AnswerEvent::Whole(_)) => {}
                Err(error) => {
                    drop(waiting.take());
                    // The partial answer ends its line before the error.
                    output.end().await?;
                    return Err(error.into());
                }
            }
        }
        drop(waiting);
        output.end().await?;
        if !output.has_words() {
            return Err(no_answer(finish_reason.as_ref(), limit, TOKENS_OPTION));
        }
        if let Some(reason) = finish_reason {
            note_truncation(&reason, limit, TOKENS_OPTION);
        }
        note_sources(&text, &used);
        Ok(Printed { text, model })
    }
}

fn asking(model: Option<&str>) -> String {
    match model {
        None => "waiting for the default model".to_owned(),
        Some(named) => format!("waiting for {named}"),
    }
}

fn shape(answer: &WholeAnswer) -> Map<String, Value> {
    let usage = answer.usage.map(|(read, written)| {
        json!({
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read.saturating_add(written),
        })
    });
    let tool_results: Vec<Value> = answer
        .tool_results
        .iter()
        .map(|(tool, content, success)| json!({ "tool_name": tool, "content": content, "success": success }))
        .collect();
    let fields = [
        ("content", json!(answer.content)),
        ("turns", json!(answer.turns)),
        ("tool_results", json!(tool_results)),
        ("usage", json!(usage)),
        ("model", json!(answer.head.model)),
        ("engine", json!(answer.head.engine)),
        ("finish_reason", json!(answer.finish_reason)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// An empty answer is an error, so that scripts do not mistake it for an answer. `raise` is what raises the limit of tokens here.
pub fn no_answer(reason: Option<&FinishReason>, max_tokens: Option<u32>, raise: &str) -> Error {
    match (reason, max_tokens) {
        (Some(FinishReason::Length), Some(max_tokens)) => anyhow!(
            "the model gave no answer: it used up its {max_tokens} tokens or the agent's turns. Raise the limit with {raise}, or \
             raise [agent] max_turns."
        ),
        (Some(FinishReason::Length), None) => anyhow!(
            "the model gave no answer: it used up its context or the agent's turns. Shorten the question, or raise \
             [agent] max_turns."
        ),
        (Some(FinishReason::ContentFilter), _) => {
            anyhow!("the provider's content filter removed the whole answer.")
        }
        _ => anyhow!(
            "the model returned no answer. Rephrase the question, or try another model with -m; -v shows what the model did."
        ),
    }
}

/// The title of a passage and the beginning of its text, which often repeats the title.
fn beginning(passage: &UsedPassage) -> String {
    let title = one_line(&passage.title);
    let text = one_line(passage.passage["text"].as_str().unwrap_or_default());
    let text = text.strip_prefix(&format!("{title} ")).unwrap_or(&text);
    format!("{title}  {}", shortened(text, SHOWN_OF_PASSAGE)).trim().to_owned()
}

/// Names the documents that the answer is based on.
pub fn note_sources(answer: &str, passages: &[UsedPassage]) {
    let places = passages.iter().map(|passage| passage.location.as_str());
    if let Some(line) = sources_line(answer, places).filter(|_| !answer.trim().is_empty()) {
        output::note(one_line(&line));
    }
}

/// Notes an answer that is not complete. `raise` is what raises the limit of tokens here.
pub fn note_truncation(reason: &FinishReason, max_tokens: Option<u32>, raise: &str) {
    match reason {
        FinishReason::Length => match max_tokens {
            Some(max_tokens) => output::note(format_args!(
                "The answer was cut off at {max_tokens} tokens. Raise the limit with {raise}."
            )),
            None => output::note("The answer was cut off: the model's context is full."),
        },
        FinishReason::ContentFilter => output::note("The provider's content filter ended the answer."),
        FinishReason::Stop
        | FinishReason::StopSequence(_)
        | FinishReason::ToolCalls
        | FinishReason::Other(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_is_shown_by_its_title_and_the_beginning_of_its_text() {
        let shown = |title: &str, text: &str| {
            let location = "house.md:1".to_owned();
            beginning(&UsedPassage { location, title: title.into(), passage: json!({ "text": text }) })
        };
        assert_eq!(shown("House", "House\n\nThe boiler\nhums."), "House  The boiler hums.");
        assert_eq!(shown("x", "xylophone"), "x  xylophone");
        assert_eq!(shown("", &"é".repeat(81)), format!("{}…", "é".repeat(80)));
    }

    #[test]
    fn the_json_has_what_a_program_needs() {
        let answer = WholeAnswer {
            head: AnswerHead { engine: "ollama".into(), model: "m".into(), reason: None, is_fallback: false },
            content: "Paris.".into(),
            reasoning: None,
            usage: Some((3, 2)),
            turns: 1,
            tool_results: Vec::new(),
            finish_reason: "stop".into(),
        };
        let expected = json!({
            "content": "Paris.",
            "turns": 1,
            "tool_results": [],
            "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 },
            "model": "m",
            "engine": "ollama",
            "finish_reason": "stop",
        });
        assert_eq!(Value::Object(shape(&answer)), expected);
    }
}
