//! An inference in a page: an array of JSON. A row for each would be several times the work. Knows nothing of SQL.

use std::borrow::Cow;

use serde::Deserialize;

use crate::call_record::CallOutcome;
use crate::entry::{Cost, Entry};

/// The fields in order. Those at the end need a default, options too: a shorter array has none of them.
#[derive(Debug, Deserialize)]
pub(crate) struct Packed<'a> {
    pub(crate) started: i64,
    pub(crate) series: i64,
    #[serde(borrow)]
    pub(crate) run: Cow<'a, str>,
    pub(crate) streamed: u8,
    pub(crate) prompt_tokens: u64,
    pub(crate) completion_tokens: u64,
    pub(crate) estimated: u8,
    pub(crate) latency_us: i64,
    pub(crate) outcome: CallOutcome,
    #[serde(default)]
    pub(crate) first_token_us: Option<i64>,
    #[serde(default)]
    pub(crate) finish_reason: Option<String>,
    #[serde(default)]
    pub(crate) cached_tokens: Option<u64>,
    #[serde(default)]
    pub(crate) cost_pico: Option<u64>,
    #[serde(default)]
    pub(crate) energy_uj: Option<u64>,
    #[serde(default)]
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) end_user: Option<String>,
    #[serde(default)]
    pub(crate) request_id: Option<String>,
    #[serde(default)]
    pub(crate) route: Option<String>,
    #[serde(default)]
    pub(crate) host: Option<String>,
    #[serde(default)]
    pub(crate) queue_us: Option<i64>,
}

/// Appends an entry of this series, in the order of [`Packed`].
pub(crate) fn pack(series: i64, entry: &Entry<'_>, text: &mut Vec<u8>) -> serde_json::Result<()> {
    let cost = match entry.cost {
        Cost::Pico(pico) => Some(pico),
        Cost::Free | Cost::Unknown => None,
    };
    let fields = (
        entry.started.microseconds(),
        series,
        entry.run,
        u8::from(entry.streamed),
        entry.prompt_tokens,
        entry.completion_tokens,
        u8::from(entry.estimated),
        entry.latency_us,
        entry.outcome.as_str(),
        entry.first_token_us,
        entry.finish_reason,
        entry.cached_tokens,
        cost,
        entry.energy_uj,
        entry.error,
        entry.end_user,
    );
    serde_json::to_writer(&mut *text, &fields)?;
    // Serde has tuples of up to sixteen values, so the rest is a second array that is joined to the first.
    let rest = (entry.request_id, entry.route, entry.host, entry.queue_us);
    text.pop();
    let joint = text.len();
    serde_json::to_writer(&mut *text, &rest)?;
    text[joint] = b',';
    omit_trailing_nulls(text);
    Ok(())
}

/// Omits trailing nulls, which most calls have. A text value would end in a quotation mark.
fn omit_trailing_nulls(text: &mut Vec<u8>) {
    while text.ends_with(b",null]") {
        text.truncate(text.len() - b",null]".len());
        text.push(b']');
    }
}

/// The inferences of a page.
pub(crate) fn unpack(page: &str) -> serde_json::Result<Vec<Packed<'_>>> {
    serde_json::from_str(page)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::inference::{CallDetails, Energy, Inference, InferenceEnd};
    use crate::savings::Prices;
    use crate::store::tests::inference;

    fn packed(inference: &Inference) -> String {
        let mut text = Vec::new();
        pack(7, &Entry::of(inference, &Prices::standard()), &mut text).expect("packed");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn unknown_values_take_no_space() {
        let start = r#"[1794744000000000,7,"run-1",1,100,50,0,2000000"#;
        assert_eq!(packed(&inference()), format!(r#"{start},"complete",250000,"stop",20]"#));
        let cancelled = Inference { ending: InferenceEnd::Cancelled, first_token: None, ..inference() };
        assert_eq!(packed(&cancelled), format!(r#"{start},"cancelled",null,null,20]"#));
        let measured = Inference { energy: Some(Energy::from_microjoules(5)), ..inference() };
        assert_eq!(packed(&measured), format!(r#"{start},"complete",250000,"stop",20,null,5]"#));
    }

    #[test]
    fn where_a_call_came_from_is_at_the_end() {
        let details = CallDetails {
            request_id: Some("req-1".into()),
            route: Some("/v1/messages"),
            queued: Some(Duration::from_millis(3)),
            host: None,
        };
        let page = format!("[{}]", packed(&Inference { details, ..inference() }));
        assert!(
            page.ends_with(r#","stop",20,null,null,null,null,"req-1","/v1/messages",null,3000]]"#),
            "{page}"
        );
        let read = &unpack(&page).expect("readable")[0];
        assert_eq!(
            (read.request_id.as_deref(), read.route.as_deref()),
            (Some("req-1"), Some("/v1/messages"))
        );
        assert_eq!((read.host.as_deref(), read.queue_us), (None, Some(3000)));
    }

    #[test]
    fn text_that_looks_like_the_format_is_unchanged() {
        let words = "\"],[1,\u{1}\\ é,null";
        let failed =
            Inference { run: words.into(), ending: InferenceEnd::Failed(words.to_owned()), ..inference() };
        let page = format!("[{0},{0}]", packed(&failed));
        let read = unpack(&page).expect("readable");
        assert_eq!(read.len(), 2);
        assert_eq!((&*read[1].run, read[1].error.as_deref()), (words, Some(words)));
        assert_eq!((read[1].outcome, read[1].started), (CallOutcome::Failed, 1_794_744_000_000_000));
    }
}
