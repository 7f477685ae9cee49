//! The access log: one line for each request, written by a thread of its own, so that a slow reader of the log does not delay
//! requests. Lines that do not fit into the queue are counted and dropped.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use axum::http::Method;
use axum::response::Response;
use hob_config::AccessLog;
use hob_core::CallTally;
use jiff::Timestamp;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::keep_until_sent::keep_until_sent;
use crate::request_id::RequestId;

/// Lines that wait for the thread that writes them.
const QUEUE: usize = 4_096;

/// How long the end of the server waits for the last lines. A reader of the log that hangs does not hold it for longer.
const LAST_LINES: Duration = Duration::from_secs(2);

/// Characters of what clients choose.
const MAX_METHOD: usize = 16;
const MAX_PATH: usize = 256;
const MAX_MODEL: usize = 128;

/// Writes lines to standard error.
pub(crate) struct AccessLogWriter {
    format: AccessLog,
    lines: SyncSender<String>,
    dropped: Arc<AtomicU64>,
    /// Cancelled when the thread has ended.
    ended: CancellationToken,
}

impl AccessLogWriter {
    /// `None` if the log is off, or if there is no thread for it.
    pub(crate) fn start(format: AccessLog) -> Option<Arc<Self>> {
        if format == AccessLog::Off {
            return None;
        }
        let (lines, waiting) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&dropped);
        let ended = CancellationToken::new();
        let end = ended.clone().drop_guard();
        let thread = std::thread::Builder::new().name("hob-access-log".to_owned());
        // The thread ends when the last sender is dropped, with the server.
        let work = move || {
            let _end = end;
            write_lines(&waiting, &counted);
        };
        match thread.spawn(work) {
            Ok(_) => Some(Arc::new(AccessLogWriter { format, lines, dropped, ended })),
            Err(error) => {
                tracing::error!(
                    %error,
                    "the access log cannot be started. Raise the limit on threads (ulimit -u, or TasksMax= \
                     in the unit), and restart Hob"
                );
                None
            }
        }
    }

    pub(crate) fn format(&self) -> AccessLog {
        self.format
    }

    /// Ends the log after the last requests, and waits until their lines are written.
    pub(crate) async fn close(log: &ArcSwapOption<Self>) {
        let Some(writer) = log.swap(None) else { return };
        let ended = writer.ended.clone();
        drop(writer);
        if tokio::time::timeout(LAST_LINES, ended.cancelled()).await.is_err() {
            tracing::warn!(
                "the last lines of the access log are missing: the reader of standard error is too slow. \
                 Redirect standard error to a file"
            );
        }
    }

    fn write(&self, request: &LoggedRequest) {
        let line = match self.format {
            AccessLog::Json => request.json(),
            AccessLog::Text | AccessLog::Off => request.text(),
        };
        if self.lines.try_send(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_lines(waiting: &Receiver<String>, dropped: &AtomicU64) {
    while let Ok(line) = waiting.recv() {
        let mut out = std::io::stderr().lock();
        // A closed stderr does not stop the server.
        let _ = out.write_all(line.as_bytes());
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(
                lost,
                "lines of the access log were dropped: the reader of standard error is too slow. Redirect \
                 standard error to a file"
            );
        }
    }
}

/// A request in progress. Its line is written when this is dropped: at the end of the answer, or when the caller leaves.
pub(crate) struct LoggedRequest {
    writer: Arc<AccessLogWriter>,
    started: Instant,
    method: String,
    path: String,
    peer: IpAddr,
    id: RequestId,
    /// Has the key too: `owner` for `[server] api_key`.
    tally: Arc<CallTally>,
    /// `None` if the caller left before the answer.
    status: Option<u16>,
}

impl LoggedRequest {
    pub(crate) fn begin(
        writer: &Arc<AccessLogWriter>,
        (method, path): (&Method, &str),
        (peer, id): (IpAddr, &RequestId),
    ) -> Self {
        LoggedRequest {
            writer: Arc::clone(writer),
            started: Instant::now(),
            method: cut(method.as_str(), MAX_METHOD),
            path: cut(path, MAX_PATH),
            peer,
            id: id.clone(),
            tally: Arc::default(),
            status: None,
        }
    }

    pub(crate) fn tally(&self) -> Arc<CallTally> {
        Arc::clone(&self.tally)
    }

    /// The response, whose end is the end of the request.
    pub(crate) fn finish_with(mut self, response: Response) -> Response {
        self.status = Some(response.status().as_u16());
        keep_until_sent(self, response)
    }

    fn model(&self) -> Option<String> {
        self.tally.model().map(|model| cut(&model, MAX_MODEL))
    }

    fn json(&self) -> String {
        let (prompt, completion) = self.tally.tokens();
        let line = json!({
            "time": shown_time(Timestamp::now()),
            "key": self.tally.key(),
            "peer": self.peer.to_string(),
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "model": self.model(),
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "ms": u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            "request_id": self.id.as_str(),
        });
        format!("{line}\n")
    }

    fn text(&self) -> String {
        let (prompt, completion) = self.tally.tokens();
        format!(
            "{} {} {} {} {} {} {} {prompt}+{completion} {}ms {}\n",
            shown_time(Timestamp::now()),
            self.tally.key().map_or_else(|| "-".to_owned(), one_word),
            self.peer,
            self.method,
            one_word(&self.path),
            self.status.map_or_else(|| "left".to_owned(), |status| status.to_string()),
            self.model().as_deref().map_or_else(|| "-".to_owned(), one_word),
            self.started.elapsed().as_millis(),
            self.id,
        )
    }
}

/// With milliseconds, so that all times have one width.
fn shown_time(at: Timestamp) -> String {
    format!("{at:.3}")
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// Text without spaces and control characters, so that no value can look like several, or like another line.
fn one_word(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if letter.is_whitespace() || letter.is_control() => word.extend(letter.escape_unicode()),
            letter => word.extend(letter.escape_debug()),
        }
    }
    if word.is_empty() { "-".to_owned() } else { word }
}

impl Drop for LoggedRequest {
    fn drop(&mut self) {
        self.writer.write(self);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use hob_core::Usage;
    use serde_json::Value;

    use super::*;

    fn logged(format: AccessLog) -> (LoggedRequest, Receiver<String>) {
        let (lines, waiting) = sync_channel(QUEUE);
        let writer = Arc::new(AccessLogWriter {
            format,
            lines,
            dropped: Arc::default(),
            ended: CancellationToken::new(),
        });
        let id = RequestId::of(&axum::http::HeaderMap::new());
        let request =
            LoggedRequest::begin(&writer, (&Method::POST, "/v1/x y"), ("192.168.1.7".parse().unwrap(), &id));
        request.tally.set_key("ana".into());
        let usage = |prompt_tokens, completion_tokens| Usage {
            prompt_tokens,
            completion_tokens,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        };
        request.tally.add("m", usage(3, 4));
        request.tally.add("qwen", usage(10, 20));
        (request, waiting)
    }

    #[test]
    fn a_line_has_who_what_and_how_much() {
        let (request, waiting) = logged(AccessLog::Json);
        let id = request.id.to_string();
        request.finish_with(Response::new(Body::from("done")));
        let mut line: Value = serde_json::from_str(&waiting.recv().unwrap()).unwrap();
        for changing in ["time", "ms"] {
            assert!(line.as_object_mut().unwrap().remove(changing).is_some(), "{changing}");
        }
        let expected = json!({
            "key": "ana", "peer": "192.168.1.7", "method": "POST", "path": "/v1/x y", "status": 200, "model": "qwen",
            "prompt_tokens": 13, "completion_tokens": 24, "request_id": id,
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn a_line_of_text_has_the_same_and_ends_once() {
        let (request, waiting) = logged(AccessLog::Text);
        let id = request.id.to_string();
        request.finish_with(Response::new(Body::from("done")));
        let line = waiting.recv().unwrap();
        let words: Vec<&str> = line.strip_suffix('\n').unwrap().split(' ').collect();
        let [time, key, peer, method, path, status, model, tokens, ms, last] = words[..] else {
            panic!("{line}")
        };
        time.parse::<Timestamp>().unwrap();
        ms.strip_suffix("ms").unwrap().parse::<u64>().unwrap();
        assert_eq!(
            [key, peer, method, path, status, model, tokens, last],
            ["ana", "192.168.1.7", "POST", "/v1/x\\u{20}y", "200", "qwen", "13+24", id.as_str()]
        );
    }

    #[test]
    fn no_value_of_a_client_can_look_like_another_column_or_line() {
        for format in [AccessLog::Text, AccessLog::Json] {
            let (mut request, waiting) = logged(format);
            request.path = cut(&format!("/a b\n\u{1b}[2J{}", "c".repeat(9_000)), MAX_PATH);
            let hostile = format!("m 200 1+1\u{2028}\r\nforged\\{}", "x".repeat(9_000));
            request.tally.add(&hostile, Usage::default());
            request.finish_with(Response::new(Body::from("done")));
            let line = waiting.recv().unwrap();
            assert!(line.len() < 2_000, "{}", line.len());
            assert_eq!(line.matches(['\n', '\r', '\u{1b}']).count(), 1, "{line:?}");
            match format {
                AccessLog::Json => {
                    let read: Value = serde_json::from_str(&line).unwrap();
                    assert!(read["model"].as_str().unwrap().starts_with("m 200 1+1"), "{read}");
                }
                AccessLog::Text | AccessLog::Off => assert_eq!(line.split(' ').count(), 10, "{line:?}"),
            }
        }
    }

    #[test]
    fn all_times_have_one_width() {
        let at =
            |nanosecond: i128| Timestamp::from_nanosecond(1_700_000_000_000_000_000 + nanosecond).unwrap();
        let shown = [0, 120_000_000, 123_456_789].map(|nanosecond| shown_time(at(nanosecond)));
        assert_eq!(
            shown,
            ["2023-11-14T22:13:20.000Z", "2023-11-14T22:13:20.120Z", "2023-11-14T22:13:20.123Z"]
        );
    }

    #[test]
    fn a_caller_who_leaves_is_logged_without_a_status() {
        let (request, waiting) = logged(AccessLog::Text);
        drop(request);
        let line = waiting.recv().unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(&words[1..4], ["ana", "192.168.1.7", "POST"]);
        assert!(line.contains(" left qwen 13+24 "), "{line}");
    }
}
