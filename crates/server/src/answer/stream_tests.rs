use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{FutureExt, StreamExt, future, stream};
use hob_core::{AnswerWarning, FinishReason, ToolCallDelta};
use tokio::time::{Instant, sleep};

use super::*;
use crate::error::ErrorFormat;
use crate::limits::body_limit::BodyLimit;
use crate::limits::concurrency_limit::ConcurrencyLimit;
use crate::limits::peer_share::PeerKey;

/// The simplest wire format: the text, and a word for the end. It cannot write calls of tools.
#[derive(Default)]
struct Words {
    has_failed: bool,
}

impl StreamEncoder for Words {
    fn answered_by(&mut self, _model: &str) {}

    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match delta {
            Delta::Text(piece) => out.extend_from_slice(piece.text.as_bytes()),
            Delta::Done { .. } => out.extend_from_slice(b" done"),
            Delta::Step(step) => push_step(step, out),
            Delta::ToolCall(_) => {
                self.has_failed = true;
                out.extend_from_slice(b" failed");
            }
            _ => {}
        }
    }

    fn has_failed(&self) -> bool {
        self.has_failed
    }

    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(&error.event(ErrorFormat::Ollama));
    }
}

fn rendered(deltas: &[Delta]) -> String {
    let mut out = Vec::new();
    for delta in deltas {
        Words::default().push(delta, &mut out);
    }
    String::from_utf8(out).unwrap()
}

fn finish(choice: u32, reason: FinishReason) -> Delta {
    Delta::Finish { choice, reason }
}

const DONE: Delta = Delta::Done { usage: None };

type Piece = Result<Delta, EngineError>;

fn client() -> StreamClient {
    let limit = ConcurrencyLimit::new(1, 0, Duration::ZERO);
    let admitted = limit.acquire().now_or_never().unwrap().unwrap();
    let held = (admitted, BodyPermit::default(), None);
    StreamClient { role: CallerRole::Owner, connection: Arc::default(), held, stored: BodyPermit::default() }
}

fn body(deltas: impl futures::Stream<Item = Piece> + Send + 'static) -> AnswerBody<Words> {
    AnswerBody::new(Box::pin(deltas), Words::default(), client())
}

/// An answer with a warning.
fn answer(deltas: impl futures::Stream<Item = Piece> + Send + 'static) -> AnswerStream {
    AnswerStream {
        engine: "vllm".into(),
        model: "m".into(),
        reason: None,
        warnings: vec![AnswerWarning::ToolsDropped],
        sources: Vec::new(),
        first_results: Vec::new(),
        deltas: Box::pin(deltas),
    }
}

fn unreachable() -> ApiError {
    let reason = "Connection refused".into();
    ApiError::from(EngineError::Unreachable { engine: "vllm".into(), address: "http://x".into(), reason })
}

/// The next frame, and after how many seconds it came.
async fn frame<B: Body<Data = Bytes> + Unpin>(body: &mut B) -> (u64, Option<String>) {
    let began = Instant::now();
    let frame = future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
    let text = frame.map(|frame| match frame {
        Ok(frame) => String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap(),
        Err(_) => panic!("a body never fails"),
    });
    (began.elapsed().as_secs(), text)
}

fn heard(seconds: u64, text: &str) -> (u64, Option<String>) {
    (seconds, Some(text.to_owned()))
}

const KEEP_ALIVE: &str = ": keep-alive\n\n";

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

#[tokio::test]
async fn what_is_ready_does_not_wait_for_what_is_not() {
    let mut body = body(stream::iter([Ok(Delta::text("a"))]).chain(stream::pending()));
    assert_eq!(poll(&mut body), Some(Some(rendered(&[Delta::text("a")]))));
    assert_eq!(poll(&mut body), None);
    assert!(!body.is_end_stream());
}

#[tokio::test]
async fn streams_of_one_thread_share_a_buffer_that_stays_small() {
    let saying = |text: String| body(stream::iter([Ok(Delta::text(text))]).chain(stream::pending()));
    let large = "x".repeat(MAX_KEPT_BYTES + 1);
    let mut bodies = ["a", large.as_str(), "b"].map(|text| saying(text.to_owned()));
    let frames = bodies.each_mut().map(poll);
    assert_eq!(frames, ["a", large.as_str(), "b"].map(|text| Some(Some(text.to_owned()))));
    assert_eq!(bodies.each_mut().map(poll), [None, None, None]);
    assert_eq!(bodies.map(|body| body.out.capacity()), [0, 0, 0], "a stream that waits holds no buffer");
    assert!(BUFFER.take().capacity() <= MAX_KEPT_BYTES);
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

#[tokio::test]
async fn an_engine_that_has_nothing_new_is_asked_once() {
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

#[tokio::test]
async fn a_cut_ends_the_answer_of_a_silent_engine() {
    let mut body = body(stream::iter([Ok(Delta::text("a"))]).chain(stream::pending()));
    assert_eq!(poll(&mut body), Some(Some("a".to_owned())));
    assert_eq!(poll(&mut body), None);
    body.client.connection.cut();
    let last = poll(&mut body).unwrap().unwrap();
    assert!(last.contains("\"error\"") && !last.contains("done"), "{last}");
    assert_eq!(poll(&mut body), Some(None));
}

#[tokio::test(start_paused = true)]
async fn a_client_of_a_silent_engine_hears_something_every_fifteen_seconds() {
    let late = stream::once(async {
        sleep(Duration::from_secs(50)).await;
        Ok(DONE)
    });
    let mut body = body(stream::iter([Ok(Delta::text("a"))]).chain(late));
    assert_eq!(frame(&mut body).await, heard(0, "a"));
    let mut waited = 0;
    for _ in 0..3 {
        let (seconds, text) = frame(&mut body).await;
        assert!(seconds <= 15 && text.as_deref() == Some(KEEP_ALIVE), "{seconds} {text:?}");
        waited += seconds;
    }
    let (seconds, text) = frame(&mut body).await;
    assert_eq!(text.as_deref(), Some(" done"));
    assert!(waited + seconds <= 50 && seconds <= 15, "{waited} {seconds}");
    assert_eq!(frame(&mut body).await, (0, None));
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_regular_text_has_no_keep_alive() {
    let slow = stream::iter(0..20).then(|_| async {
        sleep(Duration::from_secs(7)).await;
        Ok(Delta::text("a"))
    });
    let mut body = body(slow.chain(stream::pending()));
    for _ in 0..20 {
        assert_eq!(frame(&mut body).await, heard(7, "a"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_piece_that_ends_a_long_silence_has_no_keep_alive_behind_it() {
    let late = stream::once(async {
        sleep(Duration::from_secs(15)).await;
        Ok(Delta::text("b"))
    });
    let mut body = body(stream::iter([Ok(Delta::text("a"))]).chain(late).chain(stream::pending()));
    assert_eq!(frame(&mut body).await, heard(0, "a"));
    assert_eq!(frame(&mut body).await, heard(15, "b"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_late_begins_after_the_head_with_its_warnings() {
    let late = async {
        sleep(Duration::from_secs(20)).await;
        Ok(answer(stream::iter(whole_answer().into_iter().map(Ok))))
    };
    let mut body = AnswerBody::pending(Box::pin(late), Words::default(), client());
    assert_eq!(frame(&mut body).await, heard(0, KEEP_ALIVE));
    assert_eq!(frame(&mut body).await, heard(15, KEEP_ALIVE));
    let rest = ": hob WARNING {\"warning\":\"tools-dropped\"}\n\nab done";
    assert_eq!(frame(&mut body).await, heard(5, rest));
    assert_eq!(frame(&mut body).await, (0, None));
}

#[tokio::test]
async fn an_engine_that_fails_late_is_an_error_in_the_stream() {
    let mut body = AnswerBody::pending(Box::pin(future::err(unreachable())), Words::default(), client());
    let (_, text) = frame(&mut body).await;
    let text = text.unwrap();
    assert!(text.starts_with(": keep-alive\n\n{\"error\":\"cannot reach vllm"), "{text}");
    assert_eq!(frame(&mut body).await, (0, None));
}

#[tokio::test]
async fn an_error_that_the_wire_format_finds_ends_the_stream_and_the_engines_work() {
    let working = Arc::new(());
    let held = Arc::clone(&working);
    let endless = stream::repeat_with(move || {
        let _held = &held;
        Ok(Delta::ToolCall(ToolCallDelta::default()))
    });
    let mut body = body(endless);
    assert_eq!(frame(&mut body).await, heard(0, " failed"));
    assert!(body.is_end_stream());
    assert_eq!(frame(&mut body).await, (0, None));
    drop(body);
    assert_eq!(Arc::strong_count(&working), 1);
}

/// What a client gets for an answer that takes so many seconds to begin, and when.
async fn sent(
    seconds: u64,
    answer: Result<AnswerStream, ApiError>,
) -> (u64, Result<axum::response::Response, ApiError>) {
    let late = async move {
        sleep(Duration::from_secs(seconds)).await;
        answer
    };
    let began = Instant::now();
    let ignored = [AnswerWarning::Ignored("store".into())];
    let body = axum::body::Body::new;
    let response = crate::answer::send_stream(late, &ignored, client(), Words::default(), body).await;
    (began.elapsed().as_secs(), response)
}

fn warnings(response: &axum::response::Response) -> Vec<&str> {
    response.headers().get_all("x-hob-warning").iter().map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn the_head_waits_for_the_first_piece_and_not_for_ever() {
    let whole = || answer(stream::iter(whole_answer().into_iter().map(Ok)));
    let (seconds, response) = sent(14, Ok(whole())).await;
    let response = response.unwrap();
    assert_eq!(seconds, 14);
    assert_eq!(warnings(&response), ["ignored=store", "tools-dropped"]);
    assert_eq!(response.headers()["x-hob-engine"], "vllm");
    assert_eq!(frame(&mut response.into_body()).await, heard(0, "ab done"));

    let (seconds, response) = sent(40, Ok(whole())).await;
    let response = response.unwrap();
    assert_eq!((seconds, response.status().as_u16()), (15, 200));
    assert_eq!(warnings(&response), ["ignored=store"]);
    let mut body = response.into_body();
    assert_eq!(frame(&mut body).await, heard(0, KEEP_ALIVE));
    assert_eq!(frame(&mut body).await, heard(15, KEEP_ALIVE));
    let (seconds, text) = frame(&mut body).await;
    assert!(seconds == 10 && text.unwrap().ends_with("ab done"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_head_keeps_its_status() {
    let (seconds, response) = sent(14, Err(unreachable())).await;
    assert_eq!(seconds, 14);
    assert_eq!(axum::response::IntoResponse::into_response(response.unwrap_err()).status(), 502);
    let (_, response) = sent(16, Err(unreachable())).await;
    let response = response.unwrap();
    assert_eq!(response.status(), 200);
    let mut body = response.into_body();
    assert_eq!(frame(&mut body).await, heard(0, KEEP_ALIVE));
    let (seconds, text) = frame(&mut body).await;
    assert!(seconds == 1 && text.unwrap().starts_with("{\"error\":"));
}

#[tokio::test(start_paused = true)]
async fn a_released_body_leaves_its_part_of_the_share_to_its_peer() {
    const LARGEST: usize = 2 << 20;
    let bodies = BodyLimit::new(LARGEST, Duration::ZERO);
    let peer = PeerKey::of("192.0.2.1".parse().unwrap());
    let mut clients = Vec::new();
    while let Ok(permit) = bodies.begin(peer, Some(LARGEST)).await {
        let mut client = client();
        client.held.1 = permit;
        clients.push(client);
    }
    clients[0].release_body();
    assert!(bodies.begin(peer, Some(LARGEST)).await.is_ok());
}
