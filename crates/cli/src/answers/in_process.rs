//! Answers questions with the app of this process. `hob serve` uses it for questions of the command line.

use futures::{StreamExt, stream};
use hob_app::{AnswerStream, AskService};
use hob_core::model::{AUTO, DEFAULT_MODEL};
use hob_core::{
    AgentStep, AnswerWarning, Answered, Caller, CallerRole, Delta, DeltaStream, GenerateRequest, ModelKind,
    request_budget,
};
use hob_memory::Passage;
use serde_json::{Value, json};

use super::complete_stream::until_done;
use super::events::{AnswerEvent, AnswerEvents, AnswerFailure, AnswerHead, UsedPassage, WholeAnswer};
use super::lists::ModelTable;
use super::question::AskQuestion;
use crate::engine_advice;

/// What an answer does next.
enum AnswerState {
    Prepare(Box<AskQuestion>),
    Ask { request: Box<GenerateRequest>, caller: Box<Caller>, is_whole: bool },
    Read(DeltaStream),
    End,
}

/// The answer to a question.
pub fn answer(system: &AskService, question: AskQuestion) -> AnswerEvents<'_> {
    Box::pin(stream::try_unfold(AnswerState::Prepare(Box::new(question)), move |state| next(system, state)))
}

async fn next(
    system: &AskService,
    state: AnswerState,
) -> Result<Option<(AnswerEvent, AnswerState)>, AnswerFailure> {
    match state {
        AnswerState::Prepare(question) => prepare(system, *question).await.map(Some),
        AnswerState::Ask { request, caller, is_whole: true } => {
            let outcome = system.complete(*request, &caller).await.map_err(AnswerFailure::of)?;
            Ok(Some((AnswerEvent::Whole(Box::new(whole(outcome))), AnswerState::End)))
        }
        AnswerState::Ask { request, caller, is_whole: false } => {
            let AnswerStream { engine, model, reason, warnings, deltas, .. } =
                system.stream(*request, &caller).await.map_err(AnswerFailure::of)?;
            let deltas = until_done(deltas, &engine);
            let reason = reason.map(|reason| reason.as_str().to_owned());
            let head = AnswerHead { engine, model, reason, is_fallback: is_fallback(&warnings) };
            Ok(Some((AnswerEvent::Begun(head), AnswerState::Read(deltas))))
        }
        AnswerState::Read(mut deltas) => {
            while let Some(delta) = deltas.next().await {
                let event = match delta.map_err(AnswerFailure::of)? {
                    Delta::Text(piece) => AnswerEvent::Text(piece.text),
                    Delta::Reasoning { text, .. } => AnswerEvent::Reasoning(text),
                    Delta::Step(step) => AnswerEvent::Step(one_step(&step)),
                    Delta::Finish { reason, .. } => AnswerEvent::Finished(reason.as_str().to_owned()),
                    Delta::ReasoningSeal { .. } | Delta::ToolCall(_) => continue,
                    Delta::Done { .. } => return Ok(Some((AnswerEvent::Done, AnswerState::End))),
                };
                return Ok(Some((event, AnswerState::Read(deltas))));
            }
            Ok(None)
        }
        AnswerState::End => Ok(None),
    }
}

async fn prepare(
    system: &AskService,
    mut question: AskQuestion,
) -> Result<(AnswerEvent, AnswerState), AnswerFailure> {
    let model = match &question.model {
        Some(model) => model.clone(),
        None => default_model(system).await?,
    };
    if let Some(engine) = question.engine.take() {
        check_engine(system, &engine, &model).await?;
        // By its name, because the default model may have a fallback on another engine.
        question.model = Some(model);
    }
    let (caller, is_whole) = (question.caller(), question.is_whole);
    let has_schema = question.schema.is_some();
    let mut request = question.into_request(system.defaults()).map_err(AnswerFailure::of)?;
    if has_schema {
        request_budget::check_request(&request).map_err(|over| AnswerFailure::new(over.to_string()))?;
    }
    let passages = system.recall(&mut request, &caller).await;
    let event = AnswerEvent::Prepared {
        passages: passages.iter().map(used).collect(),
        max_tokens: request.max_tokens(),
    };
    Ok((event, AnswerState::Ask { request: Box::new(request), caller: Box::new(caller), is_whole }))
}

/// Whether this engine answers for the model.
pub(super) async fn check_engine(
    system: &AskService,
    engine: &str,
    model: &str,
) -> Result<(), AnswerFailure> {
    let meant = system.meant_by(model);
    let default = match meant {
        DEFAULT_MODEL => Some(default_model(system).await?),
        _ => None,
    };
    let meant = default.as_deref().unwrap_or(meant);
    if meant == AUTO {
        return Err(AnswerFailure::new(format!(
            "the running server may choose a model that {engine} does not have. Omit --engine, or use --standalone."
        )));
    }
    let found = system.pool().engine_of(meant).await.map_err(AnswerFailure::of)?;
    if found.key() == engine {
        return Ok(());
    }
    Err(AnswerFailure::new(format!(
        "the running server answers '{model}' with {}, not with {engine}. Omit --engine, or use --standalone.",
        found.key()
    )))
}

fn used(passage: &Passage) -> UsedPassage {
    UsedPassage {
        location: passage.location().to_string(),
        title: passage.title.clone(),
        passage: json!(passage),
    }
}

fn whole(outcome: Answered) -> WholeAnswer {
    let Answered { engine, generation, turns, tool_results, reason, .. } = outcome;
    WholeAnswer {
        head: AnswerHead {
            engine,
            is_fallback: is_fallback(&generation.warnings),
            model: generation.model,
            reason: reason.map(|reason| reason.as_str().to_owned()),
        },
        content: generation.answer.content,
        reasoning: generation.answer.reasoning,
        usage: generation.usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens)),
        turns,
        tool_results: tool_results
            .into_iter()
            .map(|result| (result.tool_name, result.content, result.success))
            .collect(),
        finish_reason: generation.answer.finish_reason.as_str().to_owned(),
    }
}

/// Whether a fallback answers instead of the configured model.
fn is_fallback(warnings: &[AnswerWarning]) -> bool {
    warnings
        .iter()
        .any(|warning| matches!(warning, AnswerWarning::FallbackModel | AnswerWarning::CloudFallback))
}

/// An agent's step as one line.
fn one_step(step: &AgentStep) -> String {
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

/// The model that answers when none is named.
pub async fn default_model(system: &AskService) -> Result<String, AnswerFailure> {
    let model = system.default_model().await.map_err(AnswerFailure::of)?;
    model.ok_or_else(|| {
        let engine = system.engine();
        AnswerFailure::new(format!(
            "{} has no model yet. {}.",
            engine_advice::place(engine.key(), engine.address()),
            engine_advice::how_to_get_a_model(engine.key())
        ))
    })
}

/// The models that can answer, with a mark at `current`.
pub async fn models(system: &AskService, current: &str) -> Result<ModelTable, AnswerFailure> {
    let mut listed = system.listed_models(CallerRole::Owner).await.map_err(AnswerFailure::of)?;
    listed.retain(|listed| listed.model.kind == ModelKind::Text);
    // Several engines may have a model of this name; the first one answers.
    let answering = listed.iter().position(|listed| system.pool().means(current, listed));
    let models = listed.into_iter().map(|listed| (listed.model.id, listed.engine)).collect();
    Ok(ModelTable { models, answering })
}

/// Whether an engine has the model.
pub async fn check_model(system: &AskService, model: &str) -> Result<(), AnswerFailure> {
    if model != AUTO {
        system.pool().engine_of(model).await.map_err(AnswerFailure::of)?;
    }
    Ok(())
}
