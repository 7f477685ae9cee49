//! The agent tool `mail`: lists, finds and reads messages of the owner's mailbox. It changes nothing there.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::tool::{Reach, Tool, ToolError, ToolSpec, object_schema};
use hob_core::tool_arguments;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::account::MailAccount;
use crate::error::MailError;
use crate::imap::query::MailQuery;
use crate::imap::session::ImapSession;
use crate::message::{MailMessage, MailPerson, MailSummary, MessageLimits};

/// The most messages in a list, and the number without a limit in the call.
const MOST_LISTED: usize = 50;
const USUALLY_LISTED: usize = 20;

/// The longest text of a message that the model gets.
const MAX_TEXT_CHARS: usize = 20_000;

/// The most bytes of a message that are read for its text.
const MAX_BYTES: usize = 4 << 20;

/// A year.
const MOST_HOURS: i64 = 24 * 366;

/// The tool for one folder of an account.
pub fn mail_tool(account: MailAccount, folder: String) -> Arc<dyn Tool> {
    Arc::new(MailTool { account, folder })
}

struct MailTool {
    account: MailAccount,
    folder: String,
}

#[derive(Deserialize)]
struct MailArguments {
    id: Option<u32>,
    hours: Option<i64>,
    #[serde(default)]
    unread: bool,
    from: Option<String>,
    subject: Option<String>,
    text: Option<String>,
    limit: Option<usize>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    untrusted_output: true,
    timeout: Some(Duration::from_secs(90)),
    ..ToolSpec::new(
        "mail",
        "Lists the newest e-mails of the user, or reads one by its id. It cannot send or change any.",
        Reach::Read,
        object_schema(
            json!({
                "id": { "type": "integer", "minimum": 1, "description": "Reads the e-mail with this id from the list" },
                "hours": { "type": "integer", "minimum": 1, "maximum": MOST_HOURS, "description": "Only e-mails of the last hours" },
                "unread": { "type": "boolean", "description": "Only unread e-mails" },
                "from": { "type": "string", "maxLength": 200, "description": "Only from this sender" },
                "subject": { "type": "string", "maxLength": 200 },
                "text": { "type": "string", "maxLength": 200, "description": "Words anywhere in the e-mail" },
                "limit": { "type": "integer", "minimum": 1, "maximum": MOST_LISTED }
            }),
            &[],
        ),
    )
});

#[async_trait]
impl Tool for MailTool {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["subject", "limit"]
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let arguments: MailArguments = tool_arguments::read(arguments)?;
        let answered = match arguments.id {
            Some(id) => self.read(id).await,
            None => self.list(&arguments).await,
        };
        answered.map_err(ToolError::new)
    }
}

impl MailTool {
    async fn open(&self) -> Result<ImapSession, MailError> {
        let mut session = ImapSession::open(&self.account).await?;
        session.examine(&self.folder).await?;
        Ok(session)
    }

    async fn read(&self, id: u32) -> Result<String, MailError> {
        let mut session = self.open().await?;
        let bytes = session.message(id, MAX_BYTES).await?;
        session.close().await;
        let limits = MessageLimits { text_chars: MAX_TEXT_CHARS, attachment_bytes: 0 };
        Ok(match bytes.and_then(|bytes| MailMessage::read(&bytes, limits)) {
            Some(message) => shown_message(&message),
            None => format!("There is no e-mail with the id {id}."),
        })
    }

    async fn list(&self, arguments: &MailArguments) -> Result<String, MailError> {
        let now = Timestamp::now();
        let hours_ago = |hours: i64| now.checked_sub(hours.clamp(1, MOST_HOURS).hours()).unwrap_or(now);
        let since = arguments.hours.map(hours_ago);
        let query = MailQuery {
            // A day early, because the server may be in another time zone.
            since: since.map(|since| since.to_zoned(TimeZone::UTC).date().saturating_sub(1.day())),
            unread: arguments.unread,
            from: arguments.from.clone(),
            subject: arguments.subject.clone(),
            text: arguments.text.clone(),
        };
        let limit = arguments.limit.unwrap_or(USUALLY_LISTED).clamp(1, MOST_LISTED);
        let mut session = self.open().await?;
        let found = session.search(&query).await?;
        let newest: Vec<u32> = found.iter().rev().take(limit).copied().collect();
        let summaries = session.summaries(&newest).await?;
        session.close().await;
        Ok(shown_list(summaries, newest.len(), found.len(), since))
    }
}

/// The e-mails of the `newest` ones among those that the server found, if they are not older than `since`.
fn shown_list(
    mut summaries: Vec<MailSummary>,
    newest: usize,
    found: usize,
    since: Option<Timestamp>,
) -> String {
    let read = summaries.len();
    if let Some(since) = since {
        summaries.retain(|summary| summary.received.or(summary.date).is_none_or(|time| time >= since));
    }
    if summaries.is_empty() {
        return "There are no such e-mails.".to_owned();
    }
    let mut lines: Vec<String> = summaries.iter().map(shown_summary).collect();
    // If some of the newest are too old, the others usually are too, and a number would mislead. Only an e-mail that was moved into the
    // folder is among the newest with an old date.
    if found > newest && summaries.len() == read {
        // The server also found those of the day before.
        let most = if since.is_some() { "at most " } else { "" };
        lines.push(format!("(The newest {newest} of {most}{found}.)"));
    }
    lines.join("\n")
}

fn shown_summary(summary: &MailSummary) -> String {
    let from = summary.from.as_ref().map_or_else(|| "unknown sender".to_owned(), MailPerson::shown);
    let date = summary.received.or(summary.date).map(shown_time).unwrap_or_default();
    let unread = if summary.is_read { "" } else { " (unread)" };
    format!("id {}: {date} {from}: {}{unread}", summary.uid, summary.subject)
}

fn shown_message(message: &MailMessage) -> String {
    let people = |people: &[MailPerson]| people.iter().map(MailPerson::shown).collect::<Vec<_>>().join(", ");
    let mut lines = vec![
        format!("From: {}", people(&message.from)),
        format!("To: {}", people(&message.to)),
        format!("Subject: {}", message.subject),
    ];
    if !message.cc.is_empty() {
        lines.push(format!("Cc: {}", people(&message.cc)));
    }
    lines.extend(message.date.map(|date| format!("Date: {}", shown_time(date))));
    let attached = message.attachments.iter();
    lines.extend(attached.map(|file| format!("Attachment: {} ({} bytes)", file.name, file.size)));
    lines.push(String::new());
    lines.push(message.text.clone());
    if message.is_shortened {
        lines.push("(The rest is not shown.)".to_owned());
    }
    lines.join("\n")
}

fn shown_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_how_many_were_found_unless_the_others_are_too_old() {
        let at = |time: &str| -> Timestamp { time.parse().unwrap() };
        let mail = |uid: u32, time: &str| MailSummary {
            uid,
            subject: "Hi".to_owned(),
            received: Some(at(time)),
            is_read: true,
            ..MailSummary::default()
        };
        let mails = || vec![mail(9, "2026-12-01T10:00:00Z"), mail(8, "2026-11-30T11:00:00Z")];
        let (new, old) = (
            "id 9: 2026-12-01 10:00 UTC unknown sender: Hi",
            "id 8: 2026-11-30 11:00 UTC unknown sender: Hi",
        );
        let list = |since: Option<&str>| shown_list(mails(), 2, 5, since.map(at));
        assert_eq!(list(None), format!("{new}\n{old}\n(The newest 2 of 5.)"));
        assert_eq!(list(Some("2026-11-30T10:30:00Z")), format!("{new}\n{old}\n(The newest 2 of at most 5.)"));
        assert_eq!(list(Some("2026-11-30T12:00:00Z")), new);
        assert_eq!(list(Some("2026-12-01T12:00:00Z")), "There are no such e-mails.");
        assert_eq!(shown_list(mails(), 2, 2, None), format!("{new}\n{old}"), "all that there are");
    }
}
