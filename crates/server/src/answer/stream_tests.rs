use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use hob_core::FinishReason;

use super::*;
use crate::error::ErrorFormat;
use crate::limits::concurrency_limit::ConcurrencyLimit;

/// The simplest wire format: the text, and a word for the end.
struct Words;

impl StreamEncoder for Words {
    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match delta {
            Delta::Text(piece) => out.extend_from_slice(piece.text.as_bytes()),
            Delta::Done { .. } => out.extend_from_slice(b" done"),
            _ => {}
        }
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(&error.event(ErrorFormat::Ollama));
    }
}

fn rendered(deltas: &[Delta]) -> String {
    let mut out = Vec::new();
    for delta in deltas {
        Words.push(delta, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn finish(choice: u32, reason: FinishReason) -> Delta {
    Delta::Finish { choice, reason }
}

const DONE: Delta = Delta::Done { usage: None };

type Piece = Result<Delta, EngineError>;

fn body(deltas: impl futures::Stream<Item = Piece> + Send + 'static) -> AnswerBody<Words> {
    let limit = ConcurrencyLimit::new(1, 0, Duration::ZERO);
    let admitted = limit.acquire().now_or_never().unwrap().unwrap();
    let held = (admitted, BodyPermit::default());
    let client = StreamClient { role: CallerRole::Owner, connection: Arc::default(), held };
    AnswerBody::new(Box::pin(deltas), Words, client)
}

/// The next frame, if one is ready: `None` for pending, `Some(None)` for the end.
fn poll(body: &mut AnswerBody<Words>) -> Option<Option<String>> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    match Pin::new(body).poll_frame(&mut context) {
        Poll::Pending => None,
        Poll::Ready(None) => Some(None),
        Poll::Ready(Some(Ok(frame))) => {
            let bytes = frame.into_data().unwrap();
            Some(Some(String::from_utf8(bytes.to_vec()).unwrap()))
        }
    }
}

fn whole_answer() -> Vec<Delta> {
    vec![Delta::text("a"), Delta::text("b"), finish(0, FinishReason::Stop), DONE]
}

#[test]
fn pieces_that_are_ready_together_leave_together() {
    let mut body = body(stream::iter(whole_answer().into_iter().map(Ok)));
    assert_eq!(poll(&mut body), Some(Some(rendered(&whole_answer()))));
    assert!(body.is_end_stream());
    assert_eq!(poll(&mut body), Some(None));
}

#[test]
fn what_is_ready_does_not_wait_for_what_is_not() {
    let mut body = body(stream::iter([Ok(Delta::text("a"))]).chain(stream::pending()));
    assert_eq!(poll(&mut body), Some(Some(rendered(&[Delta::text("a")]))));
    assert_eq!(poll(&mut body), None);
    assert!(!body.is_end_stream());
}

#[test]
fn nothing_is_asked_of_the_engine_after_it_is_done() {
    let after = stream::poll_fn(|_| -> Poll<Option<Piece>> { panic!("asked for more") });
    let mut body = body(stream::iter(whole_answer().into_iter().map(Ok)).chain(after));
    assert_eq!(poll(&mut body), Some(Some(rendered(&whole_answer()))));
    assert_eq!(poll(&mut body), Some(None));
}

#[test]
fn a_stream_that_breaks_never_looks_complete() {
    let cable = EngineError::Interrupted { engine: "vllm".into(), reason: "cable".into() };
    let broken: [Vec<Piece>; 2] = [
        vec![Ok(Delta::text("a")), Err(cable)],
        // Without `Done` even a finished answer may lack something.
        vec![Ok(Delta::text("a")), Ok(finish(0, FinishReason::Stop))],
    ];
    for (deltas, message) in broken.into_iter().zip([
        "vllm broke off its answer: cable",
        "the engine broke off its answer: it ended without a finish",
    ]) {
        let mut body = body(stream::iter(deltas));
        let frame = poll(&mut body).unwrap().unwrap();
        assert!(
            frame.starts_with("a") && frame.ends_with(&format!("{{\"error\":\"{message}\"}}")),
            "{frame}"
        );
        assert_eq!(poll(&mut body), Some(None));
    }
}

#[test]
fn a_frame_has_a_bound_however_much_is_ready() {
    let kilobyte = Delta::text("x".repeat(1 << 10));
    let one = rendered(std::slice::from_ref(&kilobyte)).len();
    let mut body = body(stream::repeat_with(move || Ok(kilobyte.clone())));
    for _ in 0..3 {
        let frame = poll(&mut body).unwrap().unwrap();
        assert!((MAX_FRAME_BYTES..MAX_FRAME_BYTES + one).contains(&frame.len()), "{}", frame.len());
    }
}

#[test]
fn an_engine_that_has_nothing_new_is_asked_once() {
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let silent = stream::poll_fn(move |_| -> Poll<Option<Piece>> {
        counted.fetch_add(1, Ordering::Relaxed);
        Poll::Pending
    });
    let mut body = body(stream::iter([Ok(Delta::text("a"))]).chain(silent));
    assert_eq!(poll(&mut body), Some(Some(rendered(&[Delta::text("a")]))));
    for _ in 0..3 {
        assert_eq!(poll(&mut body), None);
    }
    assert_eq!(polls.load(Ordering::Relaxed), 1);
}

#[test]
fn a_cut_ends_the_answer_of_a_silent_engine() {
    let mut body = body(stream::iter([Ok(Delta::text("a"))]).chain(stream::pending()));
    assert_eq!(poll(&mut body), Some(Some("a".to_owned())));
    assert_eq!(poll(&mut body), None);
    body.client.connection.cut();
    let last = poll(&mut body).unwrap().unwrap();
    assert!(last.contains("\"error\"") && !last.contains("done"), "{last}");
    assert_eq!(poll(&mut body), Some(None));
}
