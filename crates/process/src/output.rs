//! The output of a child: every line is passed on, and the last ones are saved for error messages.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

/// A longer line is cut.
const MAX_LINE_BYTES: usize = 2_048;

/// The last lines of a stream.
#[derive(Debug, Clone)]
pub struct OutputTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    most: usize,
}

impl OutputTail {
    pub fn keeping(most: usize) -> Self {
        OutputTail { lines: Arc::default(), most }
    }

    fn push(&self, line: String) {
        let mut lines = self.lines.lock();
        if lines.len() >= self.most {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    pub fn joined(&self, separator: &str) -> String {
        Vec::from(self.lines.lock().clone()).join(separator)
    }
}

/// Reads until the end, so that the child never blocks on a full pipe, and calls `log` with each line.
pub async fn drain(stream: impl AsyncRead + Unpin, tail: OutputTail, log: impl Fn(&str)) {
    let mut reader = BufReader::new(stream);
    // A pipe that cannot be read has ended.
    while let Ok(Some(line)) = read_line(&mut reader).await {
        if !line.is_empty() {
            log(&line);
            tail.push(line);
        }
    }
}

/// The next line without its end, cut to the longest length; `None` at the end of the stream.
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
        let tail = OutputTail::keeping(12);
        drain(written, tail.clone(), |_| {}).await;
        tail.joined("\n")
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let written: String = (1..=40).map(|number| format!("line {number}\r\n\n")).collect();
        let expected: Vec<String> = (29..=40).map(|number| format!("line {number}")).collect();
        assert_eq!(kept(written.as_bytes()).await, expected.join("\n"));
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_one_is_complete() {
        let written = [vec![b'x'; 1 << 20], b"\nnext".to_vec()].concat();
        assert_eq!(kept(&written).await, format!("{}\nnext", "x".repeat(MAX_LINE_BYTES)));
    }

    #[tokio::test]
    async fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(kept(b"\xff\xfeok\n").await, "\u{fffd}\u{fffd}ok");
    }
}
