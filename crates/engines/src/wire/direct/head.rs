//! The head of a response: its status, and how the body ends.

use std::borrow::Cow;
use std::mem::MaybeUninit;

use reqwest::StatusCode;
use thiserror::Error;

use super::chunked::{BadChunk, Chunked};

/// The longest head.
pub(super) const MAX_HEAD: usize = 64 << 10;

const MAX_HEADERS: usize = 96;

/// The most informational responses before the final one.
const MAX_INFORMATIONAL: usize = 8;

#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum BadHead {
    #[error("the response is not valid HTTP ({0})")]
    NoHttp(#[from] httparse::Error),
    #[error("the response has the invalid status {0}")]
    Status(u16),
    #[error("the head of the response is too long")]
    Endless,
    #[error("the response has no valid length")]
    Length,
}

/// What the head says.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    /// As it came.
    pub(super) retry_after: Option<String>,
    pub(super) content_type: Option<Cow<'static, str>>,
    pub(super) length: Length,
    /// Whether the connection can be reused.
    pub(super) reusable: bool,
}

/// How the body ends.
#[derive(Debug)]
pub(super) enum Length {
    /// After this many more bytes.
    Known(u64),
    Chunked(Chunked),
    /// At the end of the connection.
    Open,
}

impl Length {
    /// Whether the whole body was read.
    pub(super) fn is_reached(&self) -> bool {
        match self {
            Length::Known(left) => *left == 0,
            Length::Chunked(coding) => coding.is_complete(),
            Length::Open => false,
        }
    }

    /// Appends the body in `input` to `out` and returns how many bytes of `input` were used.
    pub(super) fn take(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, BadChunk> {
        let taken = match self {
            Length::Chunked(coding) => return coding.decode(input, out),
            Length::Open => input.len(),
            Length::Known(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
                *left -= taken as u64;
                taken
            }
        };
        out.extend_from_slice(&input[..taken]);
        Ok(taken)
    }
}

/// Parses a head and returns its end. `None` when it is incomplete.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Head, usize)>, BadHead> {
    let mut start = 0;
    for _ in 0..MAX_INFORMATIONAL {
        // Not initialized, because nearly all of it is never used.
        let mut headers = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut answer = httparse::Response::new(&mut []);
        let parser = httparse::ParserConfig::default();
        let parsed = parser.parse_response_with_uninit_headers(&mut answer, &bytes[start..], &mut headers);
        let end = match parsed? {
            httparse::Status::Complete(end) => end,
            httparse::Status::Partial if bytes.len() > MAX_HEAD => return Err(BadHead::Endless),
            httparse::Status::Partial => return Ok(None),
        };
        start += end;
        let code = answer.code.unwrap_or_default();
        let status = StatusCode::from_u16(code).map_err(|_| BadHead::Status(code))?;
        // The final response follows an informational one.
        if !status.is_informational() {
            return Ok(Some((understand(status, &answer)?, start)));
        }
    }
    Err(BadHead::Endless)
}

/// The type of the body. Those of nearly every answer take no memory.
fn content_type(value: &[u8]) -> Option<Cow<'static, str>> {
    const USUAL: [&str; 3] = ["application/json", "text/event-stream", "application/x-ndjson"];
    let value = std::str::from_utf8(value).ok()?;
    let usual = USUAL.into_iter().find(|usual| value == *usual);
    Some(usual.map_or_else(|| Cow::Owned(value.to_owned()), Cow::Borrowed))
}

fn understand(status: StatusCode, answer: &httparse::Response<'_, '_>) -> Result<Head, BadHead> {
    let mut head = Head {
        status,
        retry_after: None,
        content_type: None,
        length: Length::Open,
        reusable: answer.version == Some(1),
    };
    let (mut announced, mut chunked) = (None, false);
    for header in answer.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") {
            let length = number(value).ok_or(BadHead::Length)?;
            if announced.replace(length).is_some_and(|before| before != length) {
                return Err(BadHead::Length);
            }
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            // The request does not allow any other coding.
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(BadHead::Length);
            }
            chunked = true;
        } else if header.name.eq_ignore_ascii_case("connection") {
            let mut wishes = value.split(|byte| *byte == b',');
            head.reusable &= !wishes.any(|wish| wish.trim_ascii().eq_ignore_ascii_case(b"close"));
        } else if header.name.eq_ignore_ascii_case("retry-after") {
            head.retry_after = std::str::from_utf8(value).ok().map(str::to_owned);
        } else if header.name.eq_ignore_ascii_case("content-type") {
            head.content_type = content_type(value);
        }
    }
    let has_no_body = matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    head.length = match announced {
        _ if has_no_body => Length::Known(0),
        _ if chunked => Length::Chunked(Chunked::new()),
        Some(length) => Length::Known(length),
        None => Length::Open,
    };
    // With an ambiguous length, the rest of the body could be read as the next response.
    let ambiguous = chunked && (announced.is_some() || has_no_body) || has_no_body && announced > Some(0);
    head.reusable &= !ambiguous && !matches!(head.length, Length::Open);
    Ok(head)
}

fn number(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    plain.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<(u16, String, bool, usize)>, BadHead> {
        let read = read(text.as_bytes())?;
        Ok(read.map(|(head, end)| {
            let length = match head.length {
                Length::Known(length) => length.to_string(),
                Length::Chunked(_) => "chunked".to_owned(),
                Length::Open => "open".to_owned(),
            };
            (head.status.as_u16(), length, head.reusable, text.len() - end)
        }))
    }

    #[test]
    fn the_head_determines_the_end_of_the_body() {
        for (text, status, length, reusable) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", 200, "12", true),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n", 200, "chunked", true),
            ("HTTP/1.1 200 OK\r\n\r\n", 200, "open", false),
            ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\n", 200, "1", false),
            ("HTTP/1.1 503 Busy\r\ncontent-length: 1\r\nconnection: Close\r\n\r\n", 503, "1", false),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: keep-alive, close\r\n\r\n",
                200,
                "1",
                false,
            ),
            ("HTTP/1.1 204 No Content\r\n\r\n", 204, "0", true),
            ("HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n", 204, "0", false),
            ("HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n", 204, "0", false),
            ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n", 200, "3", true),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
                200,
                "chunked",
                false,
            ),
        ] {
            assert_eq!(head(text), Ok(Some((status, length.to_owned(), reusable, 0))), "{text:?}");
            assert_eq!(head(&format!("{text}rest")).unwrap().unwrap().3, 4);
            for cut in 0..text.len() {
                assert_eq!(head(&text[..cut]), Ok(None), "{text:?} up to {cut}");
            }
        }
    }

    #[test]
    fn a_head_that_cannot_be_trusted_is_refused() {
        for text in [
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
        ] {
            assert_eq!(head(text), Err(BadHead::Length), "{text:?}");
        }
        assert!(matches!(head("SSH-2.0-OpenSSH_9\r\n"), Err(BadHead::NoHttp(_))));
        assert_eq!(
            head("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n"),
            Err(BadHead::Length)
        );
        assert_eq!(head(&format!("HTTP/1.1 200 {}", "x".repeat(MAX_HEAD))), Err(BadHead::Endless));
        assert_eq!(
            head(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(5000)),
            Err(BadHead::Endless),
            "no end of asides"
        );
    }

    #[test]
    fn when_to_ask_again_is_read() {
        let text = "HTTP/1.1 429 Slow\r\nretry-after: 1.5 \r\ncontent-length: 0\r\n\r\n";
        assert_eq!(read(text.as_bytes()).unwrap().unwrap().0.retry_after.as_deref(), Some("1.5"));
    }
}
