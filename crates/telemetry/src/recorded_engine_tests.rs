use std::future::ready;

use futures::StreamExt;
use futures::future::Either;
use hob_core::{
    CallReservation, Delta, EventBus, FinishReason, KeyGrant, LimitAnswer, Message, ReasoningSeal,
    RequestSource, Role, RunEvents, RunningRequest, Spending, ToolCallDelta, ToolDefinition,
};
use hob_testkit::{ScriptedEngine, member_grant};
use parking_lot::Mutex;

use super::*;
use crate::inference::{Inference, InferenceEnd, InferenceLog};
use crate::recorder::Recorder;

/// A log that a test can read: what was kept, without times.
#[derive(Default)]
struct Notebook(Mutex<Vec<Inference>>);

impl InferenceLog for Notebook {
    fn record(&self, inference: Inference) {
        self.0.lock().push(inference);
    }
}

impl Notebook {
    fn endings(&self) -> Vec<(InferenceEnd, Usage, bool)> {
        let kept = self.0.lock();
        kept.iter().map(|kept| (kept.ending.clone(), kept.usage, kept.estimated)).collect()
    }
}

/// Notes how each reservation ends, and for which prompt it was made.
#[derive(Clone, Default)]
struct Reservations(Arc<Mutex<Vec<&'static str>>>, Arc<Mutex<Vec<u64>>>);

impl Spending for Reservations {
    fn begin_request(&self) -> LimitAnswer<'_, RunningRequest> {
        Either::Left(ready(Ok(RunningRequest(Box::new(())))))
    }

    fn reserve<'a>(&'a self, call: PlannedCall<'a>) -> LimitAnswer<'a, Box<dyn CallReservation>> {
        self.1.lock().push(call.prompt_tokens);
        let reserved: Box<dyn CallReservation> = Box::new(Reserved { ends: self.clone(), how: "given back" });
        Either::Left(ready(Ok(reserved)))
    }
}

struct Reserved {
    ends: Reservations,
    how: &'static str,
}

impl CallReservation for Reserved {
    fn lowered_completion(&self) -> Option<u64> {
        None
    }

    fn settle(mut self: Box<Self>, _usage: Usage) {
        self.how = "settled";
    }

    fn keep(mut self: Box<Self>) {
        self.how = "kept";
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.ends.0.lock().push(self.how);
    }
}

fn paid_from(spending: &Reservations) -> Arc<KeyGrant> {
    let spending = Some(Arc::new(spending.clone()) as Arc<dyn Spending>);
    Arc::new(KeyGrant { cloud: true, spending, ..member_grant("ana") })
}

fn recorded(engine: ScriptedEngine) -> (RecordedEngine, Arc<Notebook>) {
    recorded_for(engine, None)
}

fn recorded_for(engine: ScriptedEngine, key: Option<Arc<KeyGrant>>) -> (RecordedEngine, Arc<Notebook>) {
    let log = Arc::new(Notebook::default());
    let context = RecordContext { key, ..context_of(&log) };
    (RecordedEngine::new(Arc::new(engine), context), log)
}

fn context_of(log: &Arc<Notebook>) -> RecordContext {
    RecordContext {
        run: "run".into(),
        source: RequestSource::Server,
        agent: None,
        events: RunEvents::without_subscribers(),
        recorder: Arc::new(Recorder::to(Arc::clone(log) as Arc<dyn InferenceLog>)),
        trace_parent: None,
        key: None,
        end_user: None,
        details: Default::default(),
        tally: None,
    }
}

fn asking() -> GenerateRequest {
    GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, "12345678")],
        ..GenerateRequest::default()
    }
}

fn without_usage() -> ScriptedEngine {
    ScriptedEngine::new(|_| {
        vec![
            Ok(Delta::text("12345")),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Length }),
            Ok(Delta::Done { usage: None }),
        ]
    })
}

const COUNTED: Usage = Usage {
    prompt_tokens: 3,
    completion_tokens: 1,
    cached_tokens: None,
    reasoning_tokens: None,
    load_time: None,
};
const ESTIMATED: Usage = Usage {
    prompt_tokens: 6,
    completion_tokens: 2,
    cached_tokens: None,
    reasoning_tokens: None,
    load_time: None,
};

#[tokio::test]
async fn a_whole_answer_and_a_stream_are_recorded_once_each() {
    let (engine, log) = recorded(ScriptedEngine::saying(&["hi"]));
    engine.generate(&asking()).await.unwrap();
    let deltas: Vec<_> = engine.stream(&asking()).await.unwrap().deltas.collect().await;
    assert_eq!(deltas.len(), 3);
    let complete = (InferenceEnd::Complete(FinishReason::Stop), COUNTED, false);
    assert_eq!(log.endings(), [complete.clone(), complete]);
    let kept = log.0.lock();
    assert_eq!((kept[0].streamed, kept[0].first_token), (false, None));
    assert!(kept[1].streamed && kept[1].first_token.is_some());
}

#[tokio::test]
async fn who_hears_of_the_end_of_a_call_finds_its_record() {
    let (log, bus) = (Arc::new(Notebook::default()), EventBus::new());
    let (records, found) = (Arc::clone(&log), Arc::new(Mutex::new(Vec::new())));
    let heard = Arc::clone(&found);
    let _subscription = bus.subscribe(move |happening| {
        if let Event::InferenceEnd { .. } = happening.event {
            heard.lock().push(records.endings().len());
        }
    });
    let context = RecordContext { events: RunEvents::new(bus.clone(), "run"), ..context_of(&log) };
    let engine = RecordedEngine::new(Arc::new(ScriptedEngine::saying(&["hi"])), context);
    engine.generate(&asking()).await.unwrap();
    engine.stream(&asking()).await.unwrap().deltas.collect::<Vec<_>>().await;
    assert_eq!(*found.lock(), [1, 2]);
}

#[tokio::test]
async fn missing_usage_is_estimated_and_marked() {
    let (engine, log) = recorded(without_usage());
    let generation = engine.generate(&asking()).await.unwrap();
    assert_eq!(generation.usage, Some(ESTIMATED));
    let last =
        engine.stream(&asking()).await.unwrap().deltas.map(Result::unwrap).collect::<Vec<_>>().await.pop();
    assert_eq!(last, Some(Delta::Done { usage: Some(ESTIMATED) }));
    let complete = (InferenceEnd::Complete(FinishReason::Length), ESTIMATED, true);
    assert_eq!(log.endings(), [complete.clone(), complete]);
}

#[tokio::test]
async fn a_disconnected_caller_is_recorded_as_cancelled_with_the_text_so_far() {
    let (engine, log) = recorded(ScriptedEngine::saying(&["1234", "5678"]));
    let mut deltas = engine.stream(&asking()).await.unwrap().deltas;
    deltas.next().await;
    drop(deltas);
    let until_then = Usage {
        prompt_tokens: 6,
        completion_tokens: 1,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    assert_eq!(log.endings(), [(InferenceEnd::Cancelled, until_then, true)]);
}

#[tokio::test]
async fn failures_are_recorded_before_and_in_the_middle_of_an_answer() {
    let broken = || EngineError::Interrupted { engine: "scripted".into(), reason: "cable".into() };
    let (engine, log) = recorded(ScriptedEngine::new(move |_| vec![Ok(Delta::text("a")), Err(broken())]));
    engine.generate(&asking()).await.unwrap_err();
    let _: Vec<_> = engine.stream(&asking()).await.unwrap().deltas.collect().await;
    let failed = InferenceEnd::Failed("scripted broke off its answer: cable".into());
    let endings: Vec<InferenceEnd> = log.endings().into_iter().map(|(ending, ..)| ending).collect();
    assert_eq!(endings, [failed.clone(), failed]);
}

#[tokio::test]
async fn a_call_without_an_answer_that_a_provider_may_charge_for_keeps_its_reservation() {
    let engine = || "scripted".to_owned();
    let after = std::time::Duration::from_secs(1);
    let refused = |code: Option<&str>| EngineError::Refused {
        engine: engine(),
        status: 400,
        message: "no".into(),
        code: code.map(str::to_owned),
        param: None,
        retry_after: None,
    };
    for (failure, expected) in [
        (Some(EngineError::Timeout { engine: engine(), after }), "kept"),
        (Some(EngineError::Interrupted { engine: engine(), reason: "cable".into() }), "kept"),
        // It cannot be read, but it was written.
        (Some(EngineError::Malformed { engine: engine(), reason: "no JSON".into() }), "kept"),
        // A stream that ends without a word.
        (None, "kept"),
        (Some(refused(None)), "given back"),
        // A filter reads the prompt first.
        (Some(refused(Some("content_filter"))), "settled"),
        (
            Some(EngineError::Unreachable { engine: engine(), address: "a".into(), reason: "b".into() }),
            "given back",
        ),
    ] {
        let ends = Reservations::default();
        let what = format!("{failure:?}");
        let failure = Mutex::new(failure);
        let engine = ScriptedEngine::new(move |_| failure.lock().take().map(Err).into_iter().collect());
        let (engine, _log) = recorded_for(engine, Some(paid_from(&ends)));
        let _: Vec<_> = engine.stream(&asking()).await.unwrap().deltas.collect().await;
        assert_eq!(*ends.0.lock(), [expected], "{what}");
    }
}

#[tokio::test]
async fn a_stream_that_a_caller_leaves_counts_with_what_was_written_or_with_what_was_reserved() {
    let named = ToolCallDelta { name: Some("add".into()), ..ToolCallDelta::default() };
    let hidden = ReasoningSeal::Redacted("AAAA".into());
    for (first, expected) in [
        (Delta::text("word"), "settled"),
        (Delta::ReasoningSeal { choice: 0, seal: hidden }, "settled"),
        // The answer has begun, and nothing says how much of it there is.
        (Delta::ToolCall(named), "kept"),
        (Delta::text(""), "kept"),
    ] {
        let ends = Reservations::default();
        let what = format!("{first:?}");
        let engine = ScriptedEngine::new(move |_| vec![Ok(first.clone()), Ok(Delta::text("more"))]);
        let (engine, _log) = recorded_for(engine, Some(paid_from(&ends)));
        let mut deltas = engine.stream(&asking()).await.unwrap().deltas;
        deltas.next().await.unwrap().unwrap();
        drop(deltas);
        assert_eq!(*ends.0.lock(), [expected], "{what}");
    }
}

#[tokio::test]
async fn an_engine_that_counts_nothing_or_nonsense_is_corrected() {
    let counting = |prompt_tokens, completion_tokens| {
        let usage = Usage { prompt_tokens, completion_tokens, ..COUNTED };
        let (engine, log) = recorded(ScriptedEngine::new(move |_| {
            vec![
                Ok(Delta::text("12345")),
                Ok(Delta::Finish { choice: 0, reason: FinishReason::ContentFilter }),
                Ok(Delta::Done { usage: Some(usage) }),
            ]
        }));
        async move {
            engine.generate(&asking()).await.unwrap();
            log.endings().pop().unwrap()
        }
    };
    let ending = InferenceEnd::Complete(FinishReason::ContentFilter);
    assert_eq!(counting(0, 0).await, (ending.clone(), ESTIMATED, true));
    let (_, usage, estimated) = counting(u64::MAX, u64::MAX).await;
    assert!(!estimated && usage.total_tokens() < u64::from(u32::MAX) << 20, "{usage:?}");
    let counted = Usage { prompt_tokens: 7, completion_tokens: 0, ..COUNTED };
    assert_eq!(counting(7, 0).await, (ending, counted, false));
}

#[tokio::test]
async fn the_tools_of_a_request_are_reserved_too() {
    let ends = Reservations::default();
    let (engine, _log) = recorded_for(ScriptedEngine::saying(&["hi"]), Some(paid_from(&ends)));
    let tool = ToolDefinition {
        name: "add".into(),
        description: Some("x".repeat(4_000)),
        parameters: None,
        strict: None,
    };
    let request = GenerateRequest { tools: vec![tool], ..asking() };
    engine.generate(&request).await.unwrap();
    let _: Vec<_> = engine.stream(&request).await.unwrap().deltas.collect().await;
    engine.generate(&asking()).await.unwrap();
    assert_eq!(*ends.1.lock(), [1_007, 1_007, 6]);
}

#[tokio::test]
async fn embeddings_are_recorded_without_completion_tokens() {
    let (engine, log) = recorded(ScriptedEngine::saying(&[]));
    let request = EmbedRequest {
        model: "m".into(),
        inputs: vec!["two words".to_owned()].into(),
        ..EmbedRequest::default()
    };
    engine.embed(&request).await.unwrap();
    let usage = Usage {
        prompt_tokens: 2,
        completion_tokens: 0,
        cached_tokens: None,
        reasoning_tokens: None,
        load_time: None,
    };
    assert_eq!(log.endings(), [(InferenceEnd::Complete(FinishReason::Stop), usage, false)]);
}
