//! Messages to send: headers and plain text, as RFC 5322 wants them. Pure.

use std::time::SystemTime;

use hob_core::random_id;
use jiff::Timestamp;
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
use mail_builder::headers::date::Date;
use mail_builder::headers::message_id::MessageId;
use mail_builder::headers::raw::Raw;

use crate::address::is_mail_address;
use crate::error::MailError;
use crate::plain_line::{is_message_id, one_line};

/// A message to one person.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OutgoingMail {
    pub from: String,
    /// The name before the sender's address; empty for none.
    pub from_name: String,
    pub to: String,
    pub subject: String,
    pub text: String,
    /// The message that it answers.
    pub in_reply_to: Option<String>,
    /// The thread, oldest first.
    pub references: Vec<String>,
}

impl OutgoingMail {
    /// The message as it is sent, with a new id. It is marked as automatic, so that no other program answers it.
    pub(crate) fn compose(&self, now: SystemTime) -> Result<Vec<u8>, MailError> {
        for address in [&self.from, &self.to] {
            if !is_mail_address(address) {
                return Err(MailError::Address { text: one_line(address) });
            }
        }
        let domain = self.from.rsplit('@').next().unwrap_or("localhost");
        let name = Some(one_line(&self.from_name)).filter(|name| !name.is_empty());
        let kind = if self.in_reply_to.is_some() { "auto-replied" } else { "auto-generated" };
        let mut message = MessageBuilder::new()
            .from(Address::new_address(name, self.from.as_str()))
            .to(Address::new_address(None::<&str>, self.to.as_str()))
            .subject(one_line(&self.subject))
            .date(Date::new(Timestamp::try_from(now).unwrap_or_default().as_second()))
            .message_id(format!("{}@{domain}", random_id("hob.")))
            .header("Auto-Submitted", Raw::new(kind))
            .text_body(self.text.as_str());
        // Ids can come from the name of a conversation, which anyone who sends a message chooses.
        if let Some(answered) = self.in_reply_to.as_deref().filter(|id| is_message_id(id)) {
            message = message.in_reply_to(answered);
        }
        let mut ids = self.references.iter().map(String::as_str).filter(|id| is_message_id(id)).peekable();
        if ids.peek().is_some() {
            message = message.references(MessageId::new_list(ids));
        }
        Ok(message.write_to_vec()?)
    }
}

#[cfg(test)]
mod tests {
    use mail_parser::MessageParser;

    use super::*;
    use crate::message::{MailMessage, MessageLimits};

    fn mail() -> OutgoingMail {
        OutgoingMail {
            from: "hob@example.org".into(),
            from_name: "Hob".into(),
            to: "ann@example.org".into(),
            subject: "Re: Grüße".into(),
            text: "Hallo Ann,\n.\nviele Grüße\n".into(),
            in_reply_to: Some("b@example.org".into()),
            references: vec!["a@example.org".into(), "b@example.org".into()],
        }
    }

    #[test]
    fn what_is_composed_is_read_again() {
        let bytes = mail().compose(SystemTime::UNIX_EPOCH).unwrap();
        assert!(bytes.is_ascii(), "a server may accept nothing else");
        let limits = MessageLimits { text_chars: 1_000, attachment_bytes: 0 };
        let read = MailMessage::read(&bytes, limits).unwrap();
        assert_eq!((read.subject.as_str(), read.text.as_str()), ("Re: Grüße", "Hallo Ann,\n.\nviele Grüße"));
        assert_eq!(read.from[0].shown(), "Hob <hob@example.org>");
        assert_eq!(read.to[0].address, "ann@example.org");
        assert_eq!(read.in_reply_to.as_deref(), Some("b@example.org"));
        assert_eq!(read.references, ["a@example.org", "b@example.org"]);
        assert!(read.message_id.is_some_and(|id| id.starts_with("hob.") && id.ends_with("@example.org")));
        assert!(read.automatic.is_some(), "no program answers it");
    }

    #[test]
    fn a_subject_with_a_line_end_adds_no_field() {
        let hostile = OutgoingMail { subject: "x\r\nBcc: eve@example.org".into(), ..mail() };
        let bytes = hostile.compose(SystemTime::UNIX_EPOCH).unwrap();
        let message = MessageParser::default().parse(&bytes).unwrap();
        assert!(message.bcc().is_none());
    }

    #[test]
    fn an_id_with_a_line_end_adds_no_field() {
        let id = "x>\r\nBcc: eve@example.org\r\nX-Y: <y";
        let hostile = OutgoingMail {
            in_reply_to: Some(id.into()),
            references: vec![id.into(), "a@x".into()],
            ..mail()
        };
        let bytes = hostile.compose(SystemTime::UNIX_EPOCH).unwrap();
        let message = MessageParser::default().parse(&bytes).unwrap();
        assert!(message.bcc().is_none());
        assert_eq!(message.references().as_text(), Some("a@x"));
    }

    #[test]
    fn addresses_are_checked() {
        for to in ["", "ann", "ann@example.org>\r\nRCPT TO:<eve@example.org"] {
            let refused = OutgoingMail { to: to.into(), ..mail() }.compose(SystemTime::UNIX_EPOCH);
            assert!(matches!(refused, Err(MailError::Address { .. })), "{to}");
        }
    }
}
