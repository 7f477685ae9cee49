//! The answer of a task that shows the results of the calls before its prompt: Hob lists them, and the model adds a short text. A run
//! succeeds without that text, so that it does not depend on the model.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::{
    Caller, FinishReason, FirstCalls, GenerateRequest, MaxTokens, REASONING_EFFORT, TextSink, ToolCall,
    ToolResult,
};
use serde_json::{Map, json};
use tokio::time::{Instant, timeout};

use crate::result_layout::{ResultSection, are_unchanged_pages, markdown, model_texts};
use crate::runner::{Runner, TaskAnswer, TaskQuestion, missing};

/// How long the model may take.
const MAX_TIME: Duration = Duration::from_secs(120);

/// Tokens that the model may write.
const MAX_TOKENS: i64 = 300;

/// Bytes of the results that the model gets, some 1,200 tokens: a processor without a graphics card reads them in time, and they fit
/// into a context of 2,048 tokens with the prompt and the text.
const MAX_RESULT_BYTES: usize = 4_800;

/// What stands between the results and the text of the model.
const SUMMARY_HEADING: &str = "\n\n## Summary\n";

/// What ends a sentence or an entry of a list.
const SENTENCE_ENDS: [char; 7] = ['.', '!', '?', '。', '！', '？', '\n'];

impl Runner {
    /// Makes the calls, lists their results, and asks the model for its text. `listener` gets each as soon as it is there.
    pub(crate) async fn show_results(
        &self,
        question: TaskQuestion,
        run_timeout: Duration,
        listener: Option<&dyn TextSink>,
    ) -> Result<TaskAnswer, String> {
        let began = Instant::now();
        let results = self.ask.make_first_calls(&question.request, &question.caller).await;
        let results = results.map_err(|error| error.to_string())?;
        let sections: Vec<ResultSection> = results.iter().map(ResultSection::of).collect();
        let mut text = markdown(&sections);
        if let Some(listener) = listener {
            listener.text(&text).await;
        }
        // The run must not reach its own timeout, or the results would be lost.
        let time_left = run_timeout.saturating_sub(began.elapsed()) / 2;
        let summary = match summary_question(question, &sections) {
            Some(question) => self.summary(question, MAX_TIME.min(time_left), listener).await.map(Some),
            None => Ok(None),
        };
        let unwritten = match summary {
            Ok(Some(summary)) => {
                text.push_str(SUMMARY_HEADING);
                text.push_str(&summary);
                None
            }
            Ok(None) => None,
            Err(reason) => Some(format!("the model added no summary: {reason}")),
        };
        let has_news = !are_unchanged_pages(&results);
        Ok(TaskAnswer { text, missing: missing(&results, unwritten), has_news })
    }

    async fn summary(
        &self,
        question: TaskQuestion,
        limit: Duration,
        listener: Option<&dyn TextSink>,
    ) -> Result<String, String> {
        let TaskQuestion { request, caller } = question;
        let asking = async {
            match listener {
                Some(listener) => {
                    let below = BelowHeading { listener, has_begun: AtomicBool::new(false) };
                    self.ask.ask_live(request, &caller, &below).await
                }
                None => self.ask.ask(request, &caller).await,
            }
        };
        // Dropping the question stops the engine.
        let Ok(answered) = timeout(limit, asking).await else {
            return Err(format!("it did not finish within {} s", limit.as_secs()));
        };
        let answer = answered.map_err(|error| error.to_string())?.generation.answer;
        let is_cut = answer.finish_reason == FinishReason::Length;
        let written = if is_cut { whole_sentences(&answer.content) } else { answer.content.trim() };
        match written {
            "" if is_cut => Err(format!("it wrote no whole sentence within {MAX_TOKENS} tokens")),
            "" => Err("its answer was empty".to_owned()),
            written => Ok(written.to_owned()),
        }
    }
}

/// The question for a summary, with as much of the results as the model gets; `None` if they have no entries.
fn summary_question(question: TaskQuestion, sections: &[ResultSection]) -> Option<TaskQuestion> {
    let TaskQuestion { request, caller } = question;
    let FirstCalls { calls, permit, .. } = caller.first_calls?;
    let given = model_texts(sections, MAX_RESULT_BYTES).into_iter().filter_map(|(place, content)| {
        let call = calls.get(place)?.clone();
        let result = ToolResult { tool_name: call.name.clone(), content, success: true };
        Some((call, result))
    });
    let (calls, results): (Vec<ToolCall>, Vec<ToolResult>) = given.unzip();
    if calls.is_empty() {
        return None;
    }
    let request = GenerateRequest {
        max_tokens: MaxTokens::new(MAX_TOKENS).ok(),
        // Reasoning would use up the tokens of the text.
        hints: Map::from_iter([(REASONING_EFFORT.to_owned(), json!("none"))]),
        ..request
    };
    let first_calls = Some(FirstCalls { calls, permit, results: Some(results) });
    Some(TaskQuestion { request, caller: Caller { first_calls, ..caller } })
}

/// The part of a text up to the end of its last whole sentence; empty if it has none. A point after a digit may belong to a number that
/// was cut off, or be that of the next entry of a list.
fn whole_sentences(text: &str) -> &str {
    let is_end = |(at, letter): &(usize, char)| {
        SENTENCE_ENDS.contains(letter)
            && !(*letter == '.' && text[..*at].ends_with(|c: char| c.is_ascii_digit()))
    };
    let end = text.char_indices().rfind(is_end).map_or(0, |(at, letter)| at + letter.len_utf8());
    text[..end].trim()
}

/// Passes on the text of the model, with the heading before its first piece.
struct BelowHeading<'a> {
    listener: &'a dyn TextSink,
    has_begun: AtomicBool,
}

#[async_trait]
impl TextSink for BelowHeading<'_> {
    async fn text(&self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            self.listener.text(SUMMARY_HEADING).await;
        }
        self.listener.text(piece).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_was_cut_ends_with_a_whole_sentence() {
        for (text, expected) in [
            ("One. Two! And a thi", "One. Two!"),
            ("- Heron\n- Den", "- Heron"),
            ("雨が降る。傘を", "雨が降る。"),
            ("Rain comes. It falls to 3.", "Rain comes."),
            ("1. Ann: dinner\n2. Bob", "1. Ann: dinner"),
            ("No end at all", ""),
            ("", ""),
        ] {
            assert_eq!(whole_sentences(text), expected);
        }
    }
}
