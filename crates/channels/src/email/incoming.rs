//! Which messages are answered, and as what. Pure.

use hob_mail::{MailMessage, is_mail_address, without_quotes};
use serde_json::{Map, Value};

use super::authentication::is_authenticated;
use super::thread::{CHANNEL, MailThread};
use crate::message_queue::{FORWARDED, SUBJECT};
use crate::received_file::{ChannelFile, MAX_FILE_BYTES, MAX_FILES};
use crate::types::ChannelMessage;

/// Whose messages are answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SenderRules {
    /// The own address, in lower case.
    pub own_address: String,
    /// Addresses and `@domains` in lower case; empty for all.
    pub senders: Vec<String>,
    /// The server whose `Authentication-Results` are believed.
    pub authentication_server: Option<String>,
}

impl SenderRules {
    /// The message as a question, or why it is not answered. `number` distinguishes messages without an id.
    pub fn question(&self, message: MailMessage, number: &str) -> Result<ChannelMessage, &'static str> {
        if let Some(reason) = message.automatic {
            return Err(reason);
        }
        let [from] = message.from.as_slice() else { return Err("it has several senders or none") };
        let address = from.address.to_ascii_lowercase();
        if !is_mail_address(&address) {
            return Err("the address of its sender cannot be answered");
        }
        if address == self.own_address {
            return Err("it comes from the own address");
        }
        let domain = address.rsplit_once('@').map(|(_, domain)| domain).unwrap_or_default();
        let is_listed = |entry: &String| *entry == address || entry.strip_prefix('@') == Some(domain);
        if !self.senders.is_empty() && !self.senders.iter().any(is_listed) {
            return Err("its sender is not in [channel.email] senders");
        }
        if let Some(server) = &self.authentication_server
            && !is_authenticated(&message.authentication_results, server, domain)
        {
            return Err("the mail server did not confirm its sender (dmarc=pass)");
        }
        let mut metadata = Map::new();
        metadata.insert(SUBJECT.to_owned(), Value::from(message.subject.as_str()));
        if let Some(name) = &from.name {
            metadata.insert("sender_name".to_owned(), Value::from(name.as_str()));
        }
        let content = content(&message);
        if is_forwarded(&message.subject, &content) {
            metadata.insert(FORWARDED.to_owned(), Value::from(true));
        }
        Ok(ChannelMessage {
            channel: CHANNEL.to_owned(),
            conversation_id: MailThread::of(&message, &address).id(),
            content,
            message_id: message.message_id.clone().unwrap_or_else(|| number.to_owned()),
            is_group: false,
            metadata,
            files: files(message),
            sender: address,
        })
    }
}

/// What the sender wrote. The subject of a new thread is part of it.
fn content(message: &MailMessage) -> String {
    let is_reply = message.in_reply_to.is_some() || !message.references.is_empty();
    let own = without_quotes(&message.text);
    match (message.subject.as_str(), own.as_str()) {
        ("", own) => own.to_owned(),
        (subject, "") => subject.to_owned(),
        (_, own) if is_reply => own.to_owned(),
        (subject, own) => format!("Subject: {subject}\n\n{own}"),
    }
}

/// Whether the text is that of another message, by its subject or by its form.
fn is_forwarded(subject: &str, content: &str) -> bool {
    let subject = subject.to_lowercase();
    ["fwd:", "fw:", "wg:", "tr:", "rv:"].iter().any(|mark| subject.starts_with(mark))
        || content.lines().any(|line| line.trim_start().starts_with('>') || line.starts_with("-----"))
}

/// The attachments. One that is too large has its name only, so that the answer can mention it.
fn files(message: MailMessage) -> Vec<ChannelFile> {
    let attached = message.attachments.into_iter().take(MAX_FILES);
    attached
        .map(|file| ChannelFile {
            name: file.name,
            media_type: file.media_type,
            bytes: if file.bytes.len() <= MAX_FILE_BYTES { file.bytes.into() } else { Vec::new().into() },
            ..ChannelFile::default()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use hob_mail::MailPerson;

    use super::*;

    fn message() -> MailMessage {
        let person = MailPerson { name: Some("Ann".into()), address: "Ann@Example.org".into() };
        MailMessage {
            message_id: Some("a@x".into()),
            from: vec![person],
            subject: "Dinner".into(),
            text: "At eight?\n\nOn Monday, Hob wrote:\n> Yes.\n".into(),
            ..MailMessage::default()
        }
    }

    fn rules() -> SenderRules {
        SenderRules { own_address: "hob@example.org".into(), ..SenderRules::default() }
    }

    #[test]
    fn a_message_becomes_a_question_without_its_quotes() {
        let asked = rules().question(message(), "1-1").expect("a question");
        assert_eq!((asked.sender.as_str(), asked.message_id.as_str()), ("ann@example.org", "a@x"));
        assert_eq!(asked.content, "Subject: Dinner\n\nAt eight?");
        assert_eq!(asked.conversation_id, "ann@example.org a@x");
        assert_eq!(asked.metadata[SUBJECT], "Dinner");
        let reply = MailMessage { in_reply_to: Some("b@x".into()), ..message() };
        assert_eq!(rules().question(reply, "1-1").expect("a question").content, "At eight?");
    }

    #[test]
    fn a_message_of_someone_else_is_noted_as_such() {
        let is_noted = |message: MailMessage| {
            let asked = rules().question(message, "1-1").expect("a question");
            asked.metadata.get(FORWARDED) == Some(&Value::from(true))
        };
        assert!(!is_noted(message()));
        assert!(is_noted(MailMessage { subject: "Fwd: Dinner".into(), ..message() }));
        assert!(is_noted(MailMessage { subject: "WG: Essen".into(), ..message() }));
        assert!(is_noted(MailMessage { text: "> Send me the files.\n".into(), ..message() }));
    }

    #[test]
    fn no_program_and_nobody_else_is_answered() {
        let person = |address: &str| MailPerson { name: None, address: address.into() };
        let from = |address: &str| MailMessage { from: vec![person(address)], ..message() };
        for ignored in [
            MailMessage { automatic: Some("it was sent automatically"), ..message() },
            from("HOB@example.org"),
            from("not an address"),
            MailMessage { from: Vec::new(), ..message() },
            MailMessage { from: vec![person("a@x.org"), person("b@x.org")], ..message() },
        ] {
            assert!(rules().question(ignored.clone(), "1-1").is_err(), "{ignored:?}");
        }
    }

    #[test]
    fn only_the_senders_in_the_list_are_answered() {
        let listed = |senders: &[&str]| SenderRules {
            senders: senders.iter().map(|sender| (*sender).to_owned()).collect(),
            ..rules()
        };
        let cases: [(&[&str], bool); 4] = [
            (&["ann@example.org"], true),
            (&["@example.org"], true),
            (&["bob@example.org"], false),
            (&["@ample.org"], false),
        ];
        for (senders, expected) in cases {
            assert_eq!(listed(senders).question(message(), "1-1").is_ok(), expected, "{senders:?}");
        }
    }

    #[test]
    fn with_a_server_to_trust_an_unconfirmed_sender_is_not_answered() {
        let strict = SenderRules { authentication_server: Some("mx.example.org".into()), ..rules() };
        assert!(strict.question(message(), "1-1").is_err());
        let results = vec!["mx.example.org; dmarc=pass header.from=example.org".to_owned()];
        let confirmed = MailMessage { authentication_results: results, ..message() };
        assert!(strict.question(confirmed, "1-1").is_ok());
    }
}
