//! Which messages a search finds, and the command that asks for them. Pure.

use jiff::civil::Date;

use super::command::Command;

/// Which messages to find. Everything that is set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MailQuery {
    /// The server compares days only.
    pub since: Option<Date>,
    pub unread: bool,
    pub from: Option<String>,
    pub subject: Option<String>,
    /// Anywhere in the message.
    pub text: Option<String>,
}

impl MailQuery {
    /// The command that finds these messages.
    pub(crate) fn command(&self) -> Command {
        let texts = [("FROM", &self.from), ("SUBJECT", &self.subject), ("TEXT", &self.text)];
        let mut command = Command::new("UID SEARCH");
        // Some servers refuse to search with any other name of a character set, and some with this one where it is not needed.
        if texts.iter().any(|(_, text)| text.as_deref().is_some_and(|text| !text.is_ascii())) {
            command = command.words("CHARSET UTF-8");
        }
        command = command.words(if self.unread { "UNSEEN" } else { "ALL" });
        if let Some(since) = self.since {
            command = command.words(&format!("SINCE {}", since.strftime("%-d-%b-%Y")));
        }
        for (name, text) in texts {
            if let Some(text) = text {
                command = command.words(name).text(text);
            }
        }
        command
    }
}
