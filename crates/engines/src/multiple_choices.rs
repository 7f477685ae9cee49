//! Several answers to one request (`n`), at an engine that gives one answer per request: Hob sends several requests.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt, TryStreamExt};
use hob_core::{Delta, DeltaStream, EngineError, Generation, GenerationStream, Usage};

use crate::wire::client::Endpoint;

/// The most answers of one request. Each is a separate request to the engine.
pub const MAX_ANSWERS: u32 = 16;

/// The most concurrent requests to the engine for one request.
const MAX_CONCURRENT: usize = 4;

/// Requests `count` answers one by one and joins them. `ask` gets the index of an answer.
pub async fn collected<F>(
    endpoint: &Endpoint,
    count: u32,
    ask: impl Fn(u32) -> F,
) -> Result<Generation, EngineError>
where
    F: Future<Output = Result<Generation, EngineError>>,
{
    let answers = futures::stream::iter(0..count).map(ask).buffered(MAX_CONCURRENT).try_collect().await?;
    joined(answers).ok_or_else(|| endpoint.malformed("the request asks for no answer"))
}

/// The stream of the first answer together with those of the others, which send their requests when they are first polled.
pub fn streamed<F>(first: GenerationStream, count: u32, ask: impl Fn(u32) -> F) -> GenerationStream
where
    F: Future<Output = Result<DeltaStream, EngineError>> + Send + 'static,
{
    let others = (1..count).map(|answer| futures::stream::once(ask(answer)).try_flatten().boxed());
    let streams = std::iter::once(first.deltas).chain(others).collect();
    GenerationStream { warnings: first.warnings, deltas: interleaved(streams) }
}

/// Joins the answers into one, in order. `None` without answers.
fn joined(generations: Vec<Generation>) -> Option<Generation> {
    let mut generations = generations.into_iter();
    let mut first = generations.next()?;
    for generation in generations {
        first.usage = Usage::sum(first.usage, generation.usage);
        first.alternatives.push(generation.answer);
    }
    Some(first)
}

/// Joins the streams into one. The deltas of stream `n` get the choice `n`. At most [`MAX_CONCURRENT`] streams are
/// read at a time.
fn interleaved(streams: Vec<DeltaStream>) -> DeltaStream {
    let unfinished = streams.len();
    let streams = (0..)
        .zip(streams)
        .map(|(choice, deltas)| deltas.map(move |delta| delta.map(|delta| of_choice(delta, choice))).boxed());
    let deltas = futures::stream::iter(streams.collect::<Vec<_>>()).flatten_unordered(MAX_CONCURRENT);
    Box::pin(Interleaved { deltas: deltas.boxed(), unfinished, usage: None })
}

struct Interleaved {
    deltas: DeltaStream,
    unfinished: usize,
    usage: Option<Usage>,
}

impl Stream for Interleaved {
    type Item = Result<Delta, EngineError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        while self.unfinished > 0 {
            match ready!(self.deltas.as_mut().poll_next(context)) {
                Some(Ok(Delta::Done { usage })) => {
                    self.unfinished -= 1;
                    self.usage = Usage::sum(self.usage, usage);
                }
                Some(Ok(delta)) => return Poll::Ready(Some(Ok(delta))),
                // One broken answer breaks the whole stream: otherwise the other answers would look complete.
                Some(Err(error)) => {
                    self.deltas = futures::stream::empty().boxed();
                    self.unfinished = 0;
                    return Poll::Ready(Some(Err(error)));
                }
                None => return Poll::Ready(None),
            }
            if self.unfinished == 0 {
                return Poll::Ready(Some(Ok(Delta::Done { usage: self.usage })));
            }
        }
        Poll::Ready(None)
    }
}

fn of_choice(delta: Delta, choice: u32) -> Delta {
    match delta {
        Delta::Text(text) => Delta::Text(hob_core::TextDelta { choice, ..text }),
        Delta::Reasoning { text, .. } => Delta::Reasoning { choice, text },
        Delta::ReasoningSeal { seal, .. } => Delta::ReasoningSeal { choice, seal },
        Delta::ToolCall(call) => Delta::ToolCall(hob_core::ToolCallDelta { choice, ..call }),
        Delta::Finish { reason, .. } => Delta::Finish { choice, reason },
        Delta::Step(step) => Delta::Step(step),
        Delta::Done { usage } => Delta::Done { usage },
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{Collector, FinishReason};

    use super::*;

    fn answer(text: &str) -> DeltaStream {
        let usage = Some(Usage {
            prompt_tokens: 3,
            completion_tokens: 1,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        });
        futures::stream::iter(vec![
            Ok(Delta::text(text)),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
            Ok(Delta::Done { usage }),
        ])
        .boxed()
    }

    #[tokio::test]
    async fn answers_stay_apart_and_are_done_once() {
        let texts = ["a", "b", "c", "d", "e", "f"];
        let deltas: Vec<_> = interleaved(texts.map(answer).into()).collect().await;
        assert_eq!(deltas.iter().filter(|delta| matches!(delta, Ok(Delta::Done { .. }))).count(), 1);
        let mut collector = Collector::default();
        deltas.into_iter().for_each(|delta| collector.push(delta.unwrap()));
        let generation = collector.finish("m").unwrap();
        assert_eq!(generation.answers().map(|answer| answer.content.as_str()).collect::<Vec<_>>(), texts);
        assert_eq!(
            generation.usage,
            Some(Usage {
                prompt_tokens: 18,
                completion_tokens: 6,
                cached_tokens: None,
                reasoning_tokens: None,
                load_time: None
            })
        );
    }

    #[tokio::test]
    async fn one_that_breaks_off_breaks_all_off() {
        let cut = || Err(EngineError::Interrupted { engine: "ollama".into(), reason: "cable".into() });
        let broken = futures::stream::iter(vec![Ok(Delta::text("half")), cut()]).boxed();
        let deltas: Vec<_> = interleaved(vec![broken, answer("whole")]).collect().await;
        assert!(deltas.last().is_some_and(Result::is_err), "{deltas:?}");
        assert!(!deltas.iter().any(|delta| matches!(delta, Ok(Delta::Done { .. }))), "{deltas:?}");
    }
}
