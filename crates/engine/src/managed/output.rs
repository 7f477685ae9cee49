//! What a child writes: every line goes to the log, the last ones are kept for when it dies.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// The longest line that is kept; the rest of a longer one is left out.
const MAX_LINE_BYTES: usize = 2_048;

/// As many lines as an error shows.
const KEPT_LINES: usize = 12;

/// The last lines of a stream.
#[derive(Debug, Clone, Default)]
pub struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    fn push(&self, line: String) {
        let mut lines = self.lock();
        if lines.len() == KEPT_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub fn text(&self) -> String {
        Vec::from(self.lock().clone()).join("\n")
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads until the end, so that the child never waits for a full pipe.
pub async fn drain(stream: impl AsyncRead + Unpin, tail: Tail) {
    let mut reader = BufReader::new(stream);
    // A pipe that cannot be read has ended, as far as anybody can tell.
    while let Ok(Some(line)) = read_line(&mut reader).await {
        if !line.is_empty() {
            tracing::debug!(target: "hob_engine::managed::output", "{line}");
            tail.push(line);
        }
    }
}

/// The next line without its end, cut to a bearable length; `None` at the end of the stream.
async fn read_line(reader: &mut (impl AsyncBufRead + Unpin)) -> std::io::Result<Option<String>> {
    let mut line = Vec::new();
    let mut is_at_end = true;
    loop {
        let chunk = reader.fill_buf().await?;
        if chunk.is_empty() {
            break;
        }
        is_at_end = false;
        let line_feed = memchr::memchr(b'\n', chunk);
        let text = &chunk[..line_feed.unwrap_or(chunk.len())];
        let room = MAX_LINE_BYTES - line.len();
        line.extend_from_slice(&text[..text.len().min(room)]);
        let used = line_feed.map_or(chunk.len(), |at| at + 1);
        reader.consume(used);
        if line_feed.is_some() {
            break;
        }
    }
    Ok((!is_at_end).then(|| String::from_utf8_lossy(&line).trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(written: &[u8]) -> String {
        let tail = Tail::default();
        drain(written, tail.clone()).await;
        tail.text()
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let written: String = (1..=40).map(|number| format!("line {number}\r\n\n")).collect();
        let expected: Vec<String> = (29..=40).map(|number| format!("line {number}")).collect();
        assert_eq!(kept(written.as_bytes()).await, expected.join("\n"));
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut_and_the_next_one_is_whole() {
        let written = [vec![b'x'; 1 << 20], b"\nnext".to_vec()].concat();
        assert_eq!(kept(&written).await, format!("{}\nnext", "x".repeat(MAX_LINE_BYTES)));
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_do_no_harm() {
        assert_eq!(kept(b"\xff\xfeok\n").await, "\u{fffd}\u{fffd}ok");
    }
}
