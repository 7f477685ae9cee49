//! Conversations by e-mail: a person and the first message of a thread. Pure.
//!
//! The person is part of a conversation, because anyone can name the messages of others in a header. That alone gives no access to
//! their conversation.

use hob_mail::{MailMessage, is_mail_address};

/// The name of the channel.
pub const CHANNEL: &str = "email";

/// Whether messages to `channel` are sent by e-mail: `email`, or `email:ann@example.org`.
pub fn is_ours(channel: &str) -> bool {
    channel == CHANNEL || address_in(channel).is_some()
}

/// The address in `email:ann@example.org`.
pub(super) fn address_in(channel: &str) -> Option<&str> {
    channel.strip_prefix(CHANNEL)?.strip_prefix(':').filter(|address| is_mail_address(address))
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MailThread {
    /// In lower case.
    pub address: String,
    /// The id of the first message; `None` for a message without one.
    pub root: Option<String>,
}

impl MailThread {
    /// The conversation that a message of this person belongs to.
    pub fn of(message: &MailMessage, address: &str) -> Self {
        let root =
            message.references.first().or(message.in_reply_to.as_ref()).or(message.message_id.as_ref());
        MailThread { address: address.to_owned(), root: root.cloned() }
    }

    /// As the other parts of Hob name the conversation.
    pub fn id(&self) -> String {
        match &self.root {
            Some(root) => format!("{} {root}", self.address),
            None => self.address.clone(),
        }
    }

    /// Reads [`Self::id`], or a bare address.
    pub fn parse(id: &str) -> Option<Self> {
        let (address, root) = match id.split_once(' ') {
            Some((address, root)) => (address, Some(root.to_owned())),
            None => (id, None),
        };
        is_mail_address(address).then(|| MailThread { address: address.to_owned(), root })
    }
}

/// The subject of an answer.
pub(super) fn reply_subject(subject: &str) -> String {
    let is_reply = subject.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("re:"));
    match subject.trim() {
        "" => "Re: your message".to_owned(),
        _ if is_reply => subject.to_owned(),
        subject => format!("Re: {subject}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: Option<&str>, in_reply_to: Option<&str>, references: &[&str]) -> MailMessage {
        MailMessage {
            message_id: id.map(str::to_owned),
            in_reply_to: in_reply_to.map(str::to_owned),
            references: references.iter().map(|id| (*id).to_owned()).collect(),
            ..MailMessage::default()
        }
    }

    #[test]
    fn all_messages_of_a_thread_are_one_conversation() {
        for message in [
            message(Some("a@x"), None, &[]),
            message(Some("b@x"), Some("a@x"), &[]),
            message(Some("c@x"), Some("b@x"), &["a@x", "b@x"]),
        ] {
            assert_eq!(MailThread::of(&message, "ann@example.org").id(), "ann@example.org a@x");
        }
    }

    #[test]
    fn a_thread_of_someone_else_is_another_conversation() {
        let stolen = message(Some("e@x"), Some("a@x"), &["a@x"]);
        assert_ne!(MailThread::of(&stolen, "eve@example.org").id(), "ann@example.org a@x");
    }

    #[test]
    fn a_conversation_is_found_again_by_its_name() {
        for root in [None, Some("a@x".to_owned())] {
            let thread = MailThread { address: "ann@example.org".into(), root };
            assert_eq!(MailThread::parse(&thread.id()), Some(thread));
        }
        assert_eq!(MailThread::parse("ann"), None);
        assert_eq!(MailThread::parse(""), None);
    }

    #[test]
    fn an_answer_has_the_subject_of_the_question() {
        for (subject, expected) in [
            ("Dinner", "Re: Dinner"),
            ("RE: Dinner", "RE: Dinner"),
            ("", "Re: your message"),
            ("Ré", "Re: Ré"),
        ] {
            assert_eq!(reply_subject(subject), expected);
        }
    }

    #[test]
    fn a_target_names_the_channel_and_may_name_the_person() {
        assert!(is_ours("email") && is_ours("email:ann@example.org"));
        assert!(
            !is_ours("email:ann")
                && !is_ours("emails")
                && !is_ours("ann@example.org")
                && !is_ours("telegram")
        );
    }
}
