//! The messages of a run. When they exceed the context of the model, results of tools are removed, oldest first, and a note
//! replaces them; then what the model thought. The messages of the caller stay.

use hob_core::{Content, GenerateRequest, Message, REASONING_CONTENT, THINKING_BLOCKS};

use crate::protocol::ShownResult;

/// The request of the next turn.
pub(crate) struct RunHistory {
    request: GenerateRequest,
    /// How many messages are the caller's.
    asked: usize,
    /// The results that are still present, oldest first.
    results: Vec<KeptResult>,
}

struct KeptResult {
    /// The index of its message.
    at: usize,
    label: &'static str,
    /// The text that would replace it.
    note: String,
}

impl RunHistory {
    pub(crate) fn new(request: GenerateRequest) -> Self {
        RunHistory { asked: request.messages.len(), request, results: Vec::new() }
    }

    pub(crate) fn request(&self) -> &GenerateRequest {
        &self.request
    }

    pub(crate) fn request_mut(&mut self) -> &mut GenerateRequest {
        &mut self.request
    }

    pub(crate) fn say(&mut self, message: Message) {
        self.request.messages.push(message);
    }

    pub(crate) fn show(&mut self, ShownResult { message, tool, label }: ShownResult) {
        let text = message.content.text();
        let characters = text.chars().count().saturating_sub(label.chars().count());
        let note = format!("[result of {tool} removed: {characters} characters]");
        // A result that is shorter than its note stays.
        if text.len() > label.len() + note.len() {
            self.results.push(KeptResult { at: self.request.messages.len(), label, note });
        }
        self.request.messages.push(message);
    }

    /// Removes the older half of the remaining results, so that even a long run fits after a few tries, and in the end the reasoning.
    /// Returns `false` if there is nothing left to remove.
    pub(crate) fn remove_oldest(&mut self) -> bool {
        let half = self.results.len().div_ceil(2);
        for KeptResult { at, label, note } in self.results.drain(..half) {
            if let Some(message) = self.request.messages.get_mut(at) {
                message.content = Content::Text(format!("{label}{note}"));
            }
        }
        half > 0 || self.remove_reasoning()
    }

    /// Removes the reasoning of this run. What a provider signed stays, because the provider refuses calls without it.
    fn remove_reasoning(&mut self) -> bool {
        let own = self.request.messages.iter_mut().skip(self.asked);
        let unsigned = own.filter(|message| !message.extra.contains_key(THINKING_BLOCKS));
        unsigned.filter_map(|message| message.extra.remove(REASONING_CONTENT)).count() > 0
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{EngineError, Role};
    use hob_testkit::Transcript;
    use serde_json::{Value, json};

    use super::*;

    fn is_outgrown(error: &EngineError) -> bool {
        error.is_context_overflow()
    }

    fn refused(status: u16, message: &str) -> EngineError {
        let (engine, message) = ("e".to_owned(), message.to_owned());
        EngineError::Refused { engine, status, message, code: None, param: None, retry_after: None }
    }

    fn result(text: &str) -> ShownResult {
        ShownResult { message: Message::new(Role::User, text), tool: "look".into(), label: "Observation: " }
    }

    fn texts(history: &RunHistory) -> Vec<String> {
        history.request().messages.iter().map(|message| message.content.text().into_owned()).collect()
    }

    #[test]
    fn context_errors_of_real_engines_are_recognised() {
        for engine in ["llama-server", "vllm", "sglang"] {
            let transcript = Transcript::load(&format!("{engine}/err_ctx_overflow"));
            let body: Value = serde_json::from_str(&transcript.body).unwrap();
            let message = body.pointer("/error/message").or(body.get("message")).and_then(Value::as_str);
            assert!(is_outgrown(&refused(transcript.status, message.unwrap())), "{engine}");
        }
        for words in [
            "prompt is too long: 210012 tokens > 200000 maximum",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "This model's maximum context length is 8192 tokens.",
        ] {
            assert!(is_outgrown(&refused(400, words)), "{words}");
        }
    }

    #[test]
    fn other_errors_are_not_context_errors() {
        assert!(!is_outgrown(&refused(400, "temperature must be a number")));
        assert!(!is_outgrown(&refused(500, "context length")));
        let timeout = EngineError::Timeout { engine: "e".into(), after: std::time::Duration::from_secs(1) };
        assert!(!timeout.is_context_overflow());
    }

    #[test]
    fn reasoning_is_removed_after_the_results_and_what_is_signed_stays() {
        let thinking = |fields: Value| Message {
            extra: fields.as_object().cloned().unwrap(),
            ..Message::new(Role::Assistant, "hm")
        };
        let thought = thinking(json!({ "reasoning_content": "a" }));
        let signed = thinking(json!({ "reasoning_content": "b", "thinking_blocks": [] }));
        let messages = vec![thought.clone()];
        let mut history = RunHistory::new(GenerateRequest { messages, ..GenerateRequest::default() });
        history.say(thought.clone());
        history.say(signed.clone());
        history.show(result(&format!("Observation: {}", "x".repeat(200))));
        assert!(history.remove_oldest());
        assert_eq!(history.request().messages[..3], [thought.clone(), thought.clone(), signed.clone()]);
        assert!(history.remove_oldest());
        assert_eq!(history.request().messages[..3], [thought, thinking(json!({})), signed]);
        assert!(!history.remove_oldest());
    }

    #[test]
    fn the_older_half_is_removed_first_and_the_callers_messages_stay() {
        let long = "ä".repeat(200);
        let caller = "a very long question ".repeat(20);
        let messages = vec![Message::new(Role::User, caller.as_str())];
        let mut history = RunHistory::new(GenerateRequest { messages, ..GenerateRequest::default() });
        for _ in 0..3 {
            history.show(result(&format!("Observation: {long}")));
        }
        history.show(result("Observation: 4"));
        let whole = format!("Observation: {long}");
        let note = "Observation: [result of look removed: 200 characters]".to_owned();

        assert!(history.remove_oldest());
        let short = "Observation: 4".to_owned();
        assert_eq!(texts(&history), [caller.clone(), note.clone(), note.clone(), whole, short.clone()]);
        assert!(history.remove_oldest());
        assert_eq!(texts(&history), [caller, note.clone(), note.clone(), note, short]);
        assert!(!history.remove_oldest());
    }
}
