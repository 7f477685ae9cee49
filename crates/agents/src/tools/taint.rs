//! Restricts a run that has read untrusted text. Pure.
//!
//! Untrusted text can contain instructions to the model. A run that has read such text is tainted: tools that send or save
//! something are refused unless the owner allows them by name.

use serde_json::Value;
use url::Url;

pub(super) const SETTING: &str = "[tools] allow_after_untrusted";

/// Tools that the owner allows in tainted runs: `NAME`, `PREFIX*`, or `NAME:HOST` for calls that fetch from one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedAfterUntrusted(Vec<AllowedTool>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct AllowedTool {
    tool: String,
    host: Option<String>,
}

impl AllowedAfterUntrusted {
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let entry = |text: &str| match text.trim().split_once(':') {
            Some((tool, host)) => AllowedTool { tool: tool.to_owned(), host: Some(host.to_lowercase()) },
            None => AllowedTool { tool: text.trim().to_owned(), host: None },
        };
        AllowedAfterUntrusted(entries.into_iter().map(entry).collect())
    }

    pub(super) fn allows(&self, tool: &str, arguments: &Value) -> bool {
        self.0.iter().any(|entry| {
            let is_named = match entry.tool.strip_suffix('*') {
                Some(prefix) => tool.starts_with(prefix),
                None => tool == entry.tool,
            };
            is_named && entry.host.as_ref().is_none_or(|host| host_of(arguments).as_ref() == Some(host))
        })
    }
}

/// The host in the argument `url`.
fn host_of(arguments: &Value) -> Option<String> {
    let url = Url::parse(arguments.get("url")?.as_str()?).ok()?;
    url.host_str().map(str::to_owned)
}

/// Whether a run has read untrusted text, and from which tool.
#[derive(Debug, Default)]
pub(super) struct Taint {
    /// The tool whose output the model had read before this turn.
    read: Option<String>,
    /// The tool that read untrusted text in this turn.
    read_in_turn: Option<String>,
    /// Whether the run has turns. Without turns, every call may depend on earlier ones.
    in_turns: bool,
}

impl Taint {
    /// A run that begins with untrusted text.
    pub(super) fn initially_tainted() -> Self {
        Taint { read: Some("the request".to_owned()), ..Taint::default() }
    }

    pub(super) fn begin_turn(&mut self) {
        self.in_turns = true;
        self.read = self.read.take().or(self.read_in_turn.take());
    }

    /// A tool with untrusted output was called.
    pub(super) fn note_read(&mut self, tool: &str) {
        self.read_in_turn.get_or_insert_with(|| tool.to_owned());
    }

    /// The tool that tainted the run before this turn, if any.
    pub(super) fn source(&self) -> Option<&str> {
        let so_far = if self.in_turns { None } else { self.read_in_turn.as_deref() };
        self.read.as_deref().or(so_far)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_names_a_tool_a_prefix_or_a_host() {
        let allowed = AllowedAfterUntrusted::new(["memory_store", "files__*", "web_fetch:Example.org"]);
        let url = |url: &str| json!({ "url": url });
        for (tool, arguments, expected) in [
            ("memory_store", json!({}), true),
            ("memory_index", json!({}), false),
            ("files__read", json!({}), true),
            ("files", json!({}), false),
            ("web_fetch", url("https://example.org/a?b=c"), true),
            ("web_fetch", url("https://EXAMPLE.org:8443/"), true),
            ("web_fetch", url("https://example.org.evil.test/"), false),
            ("web_fetch", url("https://evil.test/example.org"), false),
            ("web_fetch", url("https://example.org@evil.test/"), false),
            ("web_fetch", url("no url"), false),
            ("web_fetch", json!({}), false),
        ] {
            assert_eq!(allowed.allows(tool, &arguments), expected, "{tool} {arguments}");
        }
        assert!(!AllowedAfterUntrusted::default().allows("memory_store", &json!({})));
    }

    #[test]
    fn untrusted_text_taints_the_next_turns() {
        let mut taint = Taint::default();
        taint.begin_turn();
        taint.note_read("web_fetch");
        assert_eq!(taint.source(), None, "its other calls were chosen before that");
        taint.begin_turn();
        assert_eq!(taint.source(), Some("web_fetch"));
        taint.begin_turn();
        assert_eq!(taint.source(), Some("web_fetch"), "it stays so");
    }

    #[test]
    fn without_turns_every_call_may_depend_on_the_one_before() {
        let mut taint = Taint::default();
        assert_eq!(taint.source(), None);
        taint.note_read("file_read");
        assert_eq!(taint.source(), Some("file_read"));
        assert_eq!(Taint::initially_tainted().source(), Some("the request"));
    }
}
