//! `web_fetch`: a page of the public web as readable text.
//!
//! Only public addresses can be reached: not by numbers in any notation, names, redirects, or a name that resolves differently
//! later. Requests never use a proxy.

mod fetch;
mod owner_address;

use std::sync::LazyLock;

use async_trait::async_trait;
use hob_core::{Effect, Permit, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use hob_text::{charset, html_to_text};
use serde::Deserialize;
use serde_json::{Value, json};

use fetch::FetchedPage;
pub use fetch::WebFetchOptions;
pub(crate) use fetch::{Fetcher, Redirects};

pub struct WebFetch {
    fetcher: Fetcher,
}

impl WebFetch {
    pub fn new(options: WebFetchOptions) -> Self {
        WebFetch { fetcher: Fetcher::new(options) }
    }
}

#[derive(Deserialize)]
struct Arguments {
    url: String,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    ToolSpec {
        effect: Effect::Sends,
        untrusted_output: true,
        ..ToolSpec::new(
            "web_fetch",
            "Fetches a web page as text. Headings and links stay; text and JSON are unchanged. Only public addresses are allowed.",
            // The request reveals to a server what was asked for.
            Reach::Act,
            object_schema(
                json!({ "url": { "type": "string", "description": "Begins with https:// or http://" } }),
                &["url"],
            ),
        )
    }
});

#[async_trait]
impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    /// A page whose address the owner wrote may be fetched also after untrusted text: its server learns nothing else.
    fn is_named_by_owner(&self, arguments: &Value, owner_words: &str) -> bool {
        let url = arguments.get("url").and_then(Value::as_str);
        url.is_some_and(|url| owner_address::is_written(url, owner_words))
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        self.read(arguments, Redirects::Anywhere).await
    }

    /// In a tainted run, the host of an address was approved, so a redirect must not lead to another host.
    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let redirects = if permit.tainted { Redirects::SameSite } else { Redirects::Anywhere };
        self.read(arguments, redirects).await
    }
}

impl WebFetch {
    async fn read(&self, arguments: Value, redirects: Redirects) -> Result<String, ToolError> {
        let Arguments { url } = tool_arguments::read(arguments)?;
        let page = self.fetcher.fetch(&url, redirects).await;
        let page = page.map_err(ToolError::new)?;
        // A large page takes a while, which must not block other requests.
        let rendering = tokio::task::spawn_blocking(move || render(&page));
        rendering.await.map_err(|error| ToolError::new(format!("cannot read the page: {error}")))?
    }
}

/// A kind of content.
enum Kind {
    Html,
    Text,
}

fn render(page: &FetchedPage) -> Result<String, ToolError> {
    let kind = kind(page)?;
    let decoded = charset::decode(&page.body, page.content_type.as_deref());
    let (title, text) = match kind {
        Kind::Html => {
            let readable = html_to_text::readable(&decoded, &page.url);
            (readable.title, readable.text)
        }
        Kind::Text => (None, decoded),
    };
    if text.trim().is_empty() {
        return Err(ToolError::new(format!("{} has no readable text", page.url)));
    }
    let title = title.map(|title| format!("Title: {title}\n")).unwrap_or_default();
    let cut = if page.is_cut { "\n\n[the page is longer; this is its beginning]" } else { "" };
    Ok(format!("{title}URL: {}\n\n{text}{cut}", page.url))
}

fn kind(page: &FetchedPage) -> Result<Kind, ToolError> {
    let named = page
        .content_type
        .as_deref()
        .unwrap_or("")
        .split(';')
        .next()
        .unwrap_or("")
        .trim()
        .to_ascii_lowercase();
    match named.as_str() {
        "text/html" | "application/xhtml+xml" => Ok(Kind::Html),
        "application/json" | "application/xml" | "application/yaml" | "application/javascript" => {
            Ok(Kind::Text)
        }
        named if named.starts_with("text/") || named.ends_with("+json") || named.ends_with("+xml") => {
            Ok(Kind::Text)
        }
        "" if !page.body.contains(&0) => Ok(Kind::Text),
        other => {
            let what = if other.is_empty() { "binary data" } else { other };
            Err(ToolError::new(format!("{} is {what}; only web pages and text can be read", page.url)))
        }
    }
}
