//! `hob ask`: one question, one answer.

pub mod answer_output;
pub mod complete_stream;
mod pictures;
pub mod question;

use std::process::ExitCode;

use anyhow::{Error, Result, anyhow, bail};
use futures::StreamExt;
use hob_app::{AnswerStream, App, AskService};
use hob_config::{AgentName, Config};
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_core::{
    AgentPreference, AgentStep, AnswerWarning, Answered, AskError, Caller, Content, Delta, FinishReason,
    GenerateRequest, Message, ModelReason, Permit, Reach, RequestSource, Role, ToolChoice, random_id,
};
use hob_engines::selection::SelectionReason;
use hob_memory::Passage;
use serde_json::{Map, Value, json};

use self::answer_output::{AnswerOutput, ReasoningDisplay};
use self::complete_stream::until_done;
use crate::advice;
use crate::args::{AgentChoice, AnsweringArgs, AskArgs};
use crate::commands::open_app;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::text::one_line;
use crate::settings;

pub fn run(args: AskArgs, reasoning: ReasoningDisplay) -> Result<ExitCode> {
    // Before anything listens for signals, so that Ctrl-C still ends a wait for stdin.
    let question = question::read(args.query.as_deref())?;
    let question = pictures::with_pictures(question, &args.images)?;
    let mut config = settings::load()?;
    if let Some(model) = &args.answering.model {
        config.use_model(model);
    }
    if let Some(router) = args.router {
        config.intelligence.router = router;
        config.server.model = Some(AUTO.to_owned());
    }
    if args.no_context {
        config.memory.context = false;
    }
    let caller = caller(&args);
    let wishes = open_app::open_options(args.answering.engine, args.answering.offline.into());
    open_app::with_app(&config, &wishes, async |app, signals| {
        note_fallback(app, &config);
        let asking = async {
            let mut request = request(&app.system, &args, question).await?;
            let passages = app.system.recall(&mut request, &caller).await;
            if reasoning == ReasoningDisplay::Shown {
                note_passages(&passages);
            }
            match (args.json, args.no_stream) {
                (true, _) => print_json(&app.system, request, &caller, &passages).await,
                (false, true) => print_whole(&app.system, request, &caller, reasoning).await,
                (false, false) => print_stream(&app.system, request, &caller, reasoning).await,
            }
        };
        // Dropping the request stops the engine's work on it.
        tokio::select! {
            outcome = asking => outcome.map(|()| ExitCode::SUCCESS),
            stop = signals.next() => Ok(stop.exit_code()),
        }
    })
}

/// The local user, who may use all tools. Tools need an agent.
fn caller(args: &AskArgs) -> Caller {
    let AnsweringArgs { agent, tools, .. } = &args.answering;
    let wants_tools = tools.is_some() || args.require_tool;
    let agent = match agent {
        Some(AgentChoice::Agent(agent)) => AgentPreference::Named(agent.to_string()),
        None if wants_tools => AgentPreference::Named(AgentName::Orchestrator.to_string()),
        Some(AgentChoice::None) | None => AgentPreference::None,
    };
    let permit = Permit { only: tools.clone(), ..Permit::up_to(Reach::Act) };
    Caller { permit, agent, ..Caller::trusted(RequestSource::Ask, random_id("ask-")) }
}

/// Notes that another engine than the configured one answers.
pub fn note_fallback(app: &App, config: &Config) {
    if let SelectionReason::Fallback { instead_of: Some(key) } = &app.because {
        let engine = app.system.engine();
        let reason = advice::passed_over(key, config);
        output::note(format_args!("{reason}; using {}", advice::place(engine.key(), engine.address())));
    }
}

/// The model that answers when none is named.
pub async fn default_model(system: &AskService) -> Result<String> {
    let Some(model) = system.default_model().await? else {
        let engine = system.engine();
        bail!(
            "{} has no model yet. {}.",
            advice::place(engine.key(), engine.address()),
            advice::how_to_get_a_model(engine.key())
        );
    };
    Ok(model)
}

async fn request(system: &AskService, args: &AskArgs, question: Content) -> Result<GenerateRequest> {
    let model = default_model(system).await?;
    // Only the default model may fall back to another one.
    let is_named = args.answering.model.as_ref().is_some_and(|model| model != DEFAULT_MODEL);
    let model = if is_named { model } else { DEFAULT_MODEL.to_owned() };
    Ok(GenerateRequest {
        model,
        messages: vec![Message::new(Role::User, question)],
        temperature: args.answering.temperature,
        max_tokens: args.answering.max_tokens,
        defaults: system.defaults(),
        tool_choice: args.require_tool.then_some(ToolChoice::Required),
        ..GenerateRequest::default()
    })
}

/// Whether a fallback answers instead of the configured model. This is always reported.
fn is_fallback(warnings: &[AnswerWarning]) -> bool {
    warnings
        .iter()
        .any(|warning| matches!(warning, AnswerWarning::FallbackModel | AnswerWarning::CloudFallback))
}

/// Prints which model answers and why, if Hob chose it.
fn note_model_choice(model: &str, engine: &str, reason: Option<&ModelReason>) {
    if let Some(reason) = reason {
        output::note(format_args!(
            "{} on {}. {}",
            one_line(model),
            one_line(engine),
            one_line(reason.as_str())
        ));
    }
}

/// Prints the numbered passages of the user's documents that the model gets.
fn note_passages(passages: &[Passage]) {
    for (number, passage) in (1..).zip(passages) {
        let place = one_line(&passage.location().to_string());
        output::note(format_args!("[{number}] {place}  {}", one_line(&passage.title)));
    }
}

async fn print_json(
    system: &AskService,
    request: GenerateRequest,
    caller: &Caller,
    passages: &[Passage],
) -> Result<()> {
    let max_tokens = request.max_tokens();
    let outcome = complete(system, request, caller).await?;
    let mut object = shape(&outcome);
    // Only if passages were used, so that the object does not change for users without a memory.
    if !passages.is_empty() {
        object.insert("context".to_owned(), json!(passages));
    }
    if let Some(reason) = &outcome.reason {
        object.insert("model_reason".to_owned(), json!(reason.as_str()));
    }
    if caller.agent == AgentPreference::None {
        object.retain(|field, _| field != "turns" && field != "tool_results");
    }
    output::json(&Value::Object(object))?;
    let answer = &outcome.generation.answer;
    if answer.content.trim().is_empty() {
        Err(no_answer(Some(&answer.finish_reason), max_tokens))
    } else {
        Ok(())
    }
}

fn shape(outcome: &Answered) -> Map<String, Value> {
    let Answered { engine, generation, turns, tool_results, .. } = outcome;
    let usage = generation.usage.map(|usage| {
        json!({
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens(),
        })
    });
    let tool_results: Vec<Value> = tool_results
        .iter()
        .map(|result| {
            json!({ "tool_name": result.tool_name, "content": result.content, "success": result.success })
        })
        .collect();
    let fields = [
        ("content", json!(generation.answer.content)),
        ("turns", json!(turns)),
        ("tool_results", json!(tool_results)),
        ("usage", json!(usage)),
        ("model", json!(generation.model)),
        ("engine", json!(engine)),
        ("finish_reason", json!(generation.answer.finish_reason.as_str())),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

async fn print_whole(
    system: &AskService,
    request: GenerateRequest,
    caller: &Caller,
    reasoning: ReasoningDisplay,
) -> Result<()> {
    let max_tokens = request.max_tokens();
    let Answered { engine, generation, reason, .. } = complete(system, request, caller).await?;
    if reasoning == ReasoningDisplay::Shown || is_fallback(&generation.warnings) {
        note_model_choice(&generation.model, &engine, reason.as_ref());
    }
    let answer = generation.answer;
    let mut output = AnswerOutput::new(reasoning);
    if let Some(reasoning) = &answer.reasoning {
        output.think(reasoning);
    }
    output.write(&answer.content).await?;
    output.end().await?;
    if !output.has_words() {
        return Err(no_answer(Some(&answer.finish_reason), max_tokens));
    }
    note_truncation(&answer.finish_reason, max_tokens);
    Ok(())
}

fn asking(model: &str) -> String {
    match model {
        DEFAULT_MODEL => "waiting for the default model".to_owned(),
        named => format!("waiting for {named}"),
    }
}

async fn complete(
    system: &AskService,
    request: GenerateRequest,
    caller: &Caller,
) -> Result<Answered, AskError> {
    let _waiting = Spinner::start(asking(&request.model));
    system.complete(request, caller).await
}

async fn print_stream(
    system: &AskService,
    request: GenerateRequest,
    caller: &Caller,
    reasoning: ReasoningDisplay,
) -> Result<()> {
    let max_tokens = request.max_tokens();
    let waiting = Spinner::start(asking(&request.model));
    let AnswerStream { engine, model, reason, warnings, deltas } = system.stream(request, caller).await?;
    let mut waiting = Some(waiting);
    if reason.is_some() && (reasoning == ReasoningDisplay::Shown || is_fallback(&warnings)) {
        drop(waiting.take());
        note_model_choice(&model, &engine, reason.as_ref());
    }
    let mut output = AnswerOutput::new(reasoning);
    let mut finish_reason = None;
    let mut deltas = until_done(deltas, &engine);
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(Delta::Text(piece)) => {
                drop(waiting.take());
                output.write(&piece.text).await?;
            }
            Ok(Delta::Reasoning { text, .. }) => {
                if reasoning == ReasoningDisplay::Shown {
                    drop(waiting.take());
                }
                output.think(&text);
            }
            Ok(Delta::Step(step)) => {
                if reasoning == ReasoningDisplay::Shown {
                    drop(waiting.take());
                    output.step(&one_step(&step));
                }
            }
            Ok(Delta::Finish { reason, .. }) => finish_reason = Some(reason),
            Ok(Delta::ReasoningSeal { .. } | Delta::ToolCall(_) | Delta::Done { .. }) => {}
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
        return Err(no_answer(finish_reason.as_ref(), max_tokens));
    }
    if let Some(reason) = finish_reason {
        note_truncation(&reason, max_tokens);
    }
    Ok(())
}

/// An empty answer is an error, so that scripts do not mistake it for an answer.
pub fn no_answer(reason: Option<&FinishReason>, max_tokens: Option<u32>) -> Error {
    match (reason, max_tokens) {
        (Some(FinishReason::Length), Some(max_tokens)) => anyhow!(
            "the model gave no answer: it used up its {max_tokens} tokens or the agent's turns. Raise --max-tokens or \
             [agent] max_turns."
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

/// An agent's step as one line.
pub fn one_step(step: &AgentStep) -> String {
    let text = |field: &str| match &step.data[field] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match step.name {
        AgentStep::WARNING => format!("! {}", text("warning")),
        "TOOL_CALL_START" => format!("→ {} {}", text("tool"), text("arguments")),
        _ if step.data["success"] == true => format!("← {} in {} s", text("tool"), text("latency")),
        _ => format!("← {} failed after {} s", text("tool"), text("latency")),
    }
}

pub fn note_truncation(reason: &FinishReason, max_tokens: Option<u32>) {
    match reason {
        FinishReason::Length => match max_tokens {
            Some(max_tokens) => output::note(format_args!(
                "The answer was cut off at {max_tokens} tokens. Raise the limit with --max-tokens."
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
    use hob_core::{Answer, Generation, Usage};

    use super::*;

    #[test]
    fn the_json_has_what_a_program_needs() {
        let generation = Generation {
            model: "m".into(),
            answer: Answer {
                content: "Paris.".into(),
                reasoning: None,
                tool_calls: Vec::new(),
                finish_reason: FinishReason::Stop,
                sealed_reasoning: Vec::new(),
                later_thoughts: Vec::new(),
                logprobs: None,
            },
            alternatives: Vec::new(),
            usage: Some(Usage {
                prompt_tokens: 3,
                completion_tokens: 2,
                cached_tokens: None,
                reasoning_tokens: None,
                load_time: None,
            }),
            warnings: Vec::new(),
        };
        let outcome = Answered {
            engine: "ollama".into(),
            generation,
            turns: 1,
            tool_results: Vec::new(),
            reason: None,
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
        assert_eq!(Value::Object(shape(&outcome)), expected);
    }
}
