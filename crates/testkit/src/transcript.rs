//! Requests and answers of real engines, as recorded.

use std::path::Path;

/// One exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    pub method: String,
    pub path: String,
    pub request_body: String,
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Transcript {
    /// Loads `transcripts/NAME.txt`, such as `ollama/chat`.
    pub fn load(name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("transcripts").join(format!("{name}.txt"));
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self::parse(&text).unwrap_or_else(|| panic!("{} is no transcript", path.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let (request, answer) = text.split_once("\n< HTTP/1.1 ")?;
        let (answer, _elapsed) = answer.rsplit_once("[elapsed ")?;

        let (request_head, request_body) = request.split_once("\n\n").unwrap_or((request, ""));
        let mut words = request_head.lines().next()?.strip_prefix("> ")?.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());

        let (head, body) = answer.split_once("\n\n")?;
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').next()?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.strip_prefix("< ")?.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        // The recorder ends a body with one line feed of its own.
        let body = body.strip_suffix('\n').unwrap_or(body).to_owned();
        Some(Transcript { method, path, request_body: request_body.trim().to_owned(), status, headers, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_exchange_is_read_whole() {
        let transcript = Transcript::load("ollama/err_model_not_found");
        assert_eq!(
            (transcript.method.as_str(), transcript.path.as_str(), transcript.status),
            ("POST", "/api/chat", 404)
        );
        assert!(transcript.request_body.starts_with("{\"model\": \"nope\""));
        assert_eq!(transcript.body, "{\"error\":\"model \\\"nope\\\" not found, try pulling it first\"}");
    }

    #[test]
    fn every_recorded_stream_keeps_its_blank_lines() {
        let body = Transcript::load("vllm/chat_stream").body;
        assert!(body.ends_with("data: [DONE]\n\n"), "{body:?}");
    }
}
