//! Texts to continue: several at a time, the best of several tries, with the prompt before the answer. An engine continues one text at a
//! time and knows nothing of this.

use std::num::NonZeroU32;
use std::sync::Arc;

use futures::stream::{StreamExt, TryStreamExt};
use hob_core::{
    Answer, AnswerWarning, CompletionRequest, Delta, DeltaStream, DetokenizeRequest, Engine, EngineError,
    Generation, GenerationStream, Prompt, TextDelta, Usage,
};
use serde_json::Value;

/// Texts of one request that are continued at a time. A model in memory writes that many almost as fast as one.
const CONCURRENT_TEXTS: usize = 8;

/// Texts to continue.
#[derive(Debug, Clone, PartialEq)]
pub struct TextRequest {
    /// At least one. The answers to the first come first.
    pub prompts: Vec<Prompt>,
    /// What all of them share. Its own prompt is not used.
    pub request: CompletionRequest,
    /// How many continuations of each text are made, of which the likeliest `n` are the answers.
    pub best_of: Option<NonZeroU32>,
}

impl From<CompletionRequest> for TextRequest {
    fn from(mut request: CompletionRequest) -> Self {
        TextRequest { prompts: vec![std::mem::take(&mut request.prompt)], request, best_of: None }
    }
}

/// One text with everything the engine needs, and the text before its answers where Hob puts it there.
struct Piece {
    request: CompletionRequest,
    before: Option<String>,
}

/// The whole continuations as one answer, those of the first text first.
pub async fn complete_texts(engine: &dyn Engine, request: TextRequest) -> Result<Generation, EngineError> {
    let best_of = BestOf::read(&request);
    let pieces = pieces(engine, request, best_of.as_ref()).await?;
    let generations: Vec<Generation> = futures::stream::iter(pieces)
        .map(|Piece { request, before }| {
            let best_of = &best_of;
            async move {
                let mut generation = engine.complete(&request).await?;
                if let Some(best_of) = best_of {
                    generation = best_of.choose(generation, engine.key())?;
                }
                if let Some(before) = before {
                    generation.answer.content.insert_str(0, &before);
                    for answer in &mut generation.alternatives {
                        answer.content.insert_str(0, &before);
                    }
                }
                Ok::<_, EngineError>(generation)
            }
        })
        .buffered(CONCURRENT_TEXTS)
        .try_collect()
        .await?;
    joined(generations).ok_or_else(|| nothing_to_continue(engine.key()))
}

/// The continuations as they come, each under the number of its answer.
pub async fn stream_texts(
    engine: &Arc<dyn Engine>,
    request: TextRequest,
) -> Result<GenerationStream, EngineError> {
    let answers = request.request.answers();
    let mut pieces = pieces(engine.as_ref(), request, None).await?.into_iter();
    let Some(Piece { request: first, before }) = pieces.next() else {
        return Err(nothing_to_continue(engine.key()));
    };
    let GenerationStream { warnings, deltas } = engine.stream_completion(&first).await?;
    let first = with_before(deltas, before, answers);
    let others = (1..).zip(pieces).map(|(index, Piece { request, before })| {
        let engine = Arc::clone(engine);
        let begun = async move {
            let stream = engine.stream_completion(&request).await?;
            Ok::<_, EngineError>(with_before(stream.deltas, before, answers))
        };
        renumbered(futures::stream::once(begun).try_flatten().boxed(), index * answers)
    });
    let streams: Vec<DeltaStream> = std::iter::once(first).chain(others).collect();
    let deltas = match <[DeltaStream; 1]>::try_from(streams) {
        Ok([only]) => only,
        Err(streams) => together(streams),
    };
    Ok(GenerationStream { warnings, deltas })
}

fn nothing_to_continue(engine: &str) -> EngineError {
    EngineError::Malformed { engine: engine.to_owned(), reason: "there is no text to continue".to_owned() }
}

/// What the engine is asked for each text.
async fn pieces(
    engine: &dyn Engine,
    request: TextRequest,
    best_of: Option<&BestOf>,
) -> Result<Vec<Piece>, EngineError> {
    let TextRequest { prompts, request, .. } = request;
    let mut pieces = Vec::with_capacity(prompts.len());
    for prompt in prompts {
        let mut request = CompletionRequest { prompt, ..request.clone() };
        // Only the probabilities of a prompt are the engine's business.
        let before = match request.echo && !request.sampling.logprobs {
            true => Some(text_of(engine, &request).await?),
            false => None,
        };
        request.echo &= before.is_none();
        if let Some(best_of) = best_of {
            request.sampling.n = Some(best_of.made);
            request.sampling.logprobs = true;
        }
        pieces.push(Piece { request, before });
    }
    Ok(pieces)
}

async fn text_of(engine: &dyn Engine, request: &CompletionRequest) -> Result<String, EngineError> {
    match &request.prompt {
        Prompt::Text(text) => Ok(text.clone()),
        Prompt::Tokens(tokens) => {
            let request = DetokenizeRequest { model: request.model.clone(), tokens: tokens.clone() };
            engine.detokenize(&request).await
        }
    }
}

/// Chooses the likeliest of several continuations.
struct BestOf {
    made: NonZeroU32,
    kept: usize,
    /// Whether the caller asked for probabilities too.
    shows_logprobs: bool,
}

impl BestOf {
    /// `None` where nothing is left to choose.
    fn read(request: &TextRequest) -> Option<Self> {
        let made = request.best_of?;
        let kept = request.request.answers();
        (made.get() > kept).then_some(BestOf {
            made,
            kept: kept as usize,
            shows_logprobs: request.request.sampling.logprobs,
        })
    }

    fn choose(&self, generation: Generation, engine: &str) -> Result<Generation, EngineError> {
        let Generation { model, answer, alternatives, usage, warnings } = generation;
        let mut rated = Vec::with_capacity(alternatives.len() + 1);
        for answer in std::iter::once(answer).chain(alternatives) {
            let Some(likelihood) = mean_logprob(&answer) else {
                return Err(EngineError::Unsupported {
                    engine: engine.to_owned(),
                    field: "best_of".to_owned(),
                    hint: Some("it returns no probabilities to compare answers by".to_owned()),
                });
            };
            rated.push((likelihood, answer));
        }
        rated.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut best = rated.into_iter().take(self.kept).map(|(_, answer)| Answer {
            logprobs: answer.logprobs.filter(|_| self.shows_logprobs),
            ..answer
        });
        let answer = best.next().ok_or_else(|| nothing_to_continue(engine))?;
        Ok(Generation { model, answer, alternatives: best.collect(), usage, warnings })
    }
}

/// How likely an answer is, for each of its tokens. An empty one is as likely as can be.
fn mean_logprob(answer: &Answer) -> Option<f64> {
    let Some(logprobs) = &answer.logprobs else { return answer.content.is_empty().then_some(0.0) };
    let tokens = logprobs.get("content")?.as_array()?;
    let known: Vec<f64> =
        tokens.iter().filter_map(|token| token.get("logprob").and_then(Value::as_f64)).collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

/// All continuations as one answer; `None` without any.
fn joined(generations: Vec<Generation>) -> Option<Generation> {
    let mut generations = generations.into_iter();
    let mut first = generations.next()?;
    for generation in generations {
        let Generation { answer, alternatives, usage, warnings, .. } = generation;
        first.usage = Usage::sum(first.usage, usage);
        first.alternatives.push(answer);
        first.alternatives.extend(alternatives);
        add_new(&mut first.warnings, warnings);
    }
    Some(first)
}

/// The same warning of several texts is reported once.
fn add_new(warnings: &mut Vec<AnswerWarning>, more: Vec<AnswerWarning>) {
    for warning in more {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
}

/// The stream with a text before each of its answers.
fn with_before(deltas: DeltaStream, before: Option<String>, answers: u32) -> DeltaStream {
    let Some(text) = before else { return deltas };
    let piece = move |choice| Ok(Delta::Text(TextDelta { choice, text: text.clone(), logprobs: None }));
    futures::stream::iter(0..answers).map(piece).chain(deltas).boxed()
}

/// The stream with the numbers of its answers moved up.
fn renumbered(deltas: DeltaStream, first: u32) -> DeltaStream {
    let renumber = move |delta: Delta| match delta {
        Delta::Text(text) => Delta::Text(TextDelta { choice: first + text.choice, ..text }),
        Delta::Reasoning { choice, text } => Delta::Reasoning { choice: first + choice, text },
        Delta::ReasoningSeal { choice, seal } => Delta::ReasoningSeal { choice: first + choice, seal },
        Delta::Finish { choice, reason } => Delta::Finish { choice: first + choice, reason },
        other @ (Delta::ToolCall(_) | Delta::Step(_) | Delta::Done { .. }) => other,
    };
    deltas.map(move |delta| delta.map(renumber)).boxed()
}

/// The streams as one, which is done when all are, and broken when one is.
fn together(streams: Vec<DeltaStream>) -> DeltaStream {
    struct Rest {
        deltas: DeltaStream,
        unfinished: usize,
        usage: Option<Usage>,
    }
    let unfinished = streams.len();
    let deltas = futures::stream::iter(streams).flatten_unordered(CONCURRENT_TEXTS).boxed();
    let rest = Rest { deltas, unfinished, usage: None };
    futures::stream::try_unfold(Some(rest), |rest| async move {
        let Some(mut rest) = rest else { return Ok(None) };
        while let Some(delta) = rest.deltas.try_next().await? {
            let Delta::Done { usage } = delta else { return Ok(Some((delta, Some(rest)))) };
            rest.usage = Usage::sum(rest.usage, usage);
            rest.unfinished -= 1;
            if rest.unfinished == 0 {
                return Ok(Some((Delta::Done { usage: rest.usage }, None)));
            }
        }
        // A stream that ends without `Done` is broken, and so is the whole.
        Ok(None)
    })
    .boxed()
}

#[cfg(test)]
#[path = "text_completion_tests.rs"]
mod tests;
