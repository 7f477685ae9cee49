//! Sends answers and other messages by e-mail.

use async_trait::async_trait;
use hob_mail::{MailAccount, MailSendError, OutgoingMail, send_mail};

use super::thread::{CHANNEL, MailThread, address_in, reply_subject};
use crate::outgoing::{MessageSender, NO_RECIPIENT, Outgoing, SendFailure};

/// The subject of a message that answers none.
const NEW_SUBJECT: &str = "Message from Hob";

pub(super) struct EmailSender {
    pub account: MailAccount,
    pub from: String,
    pub from_name: String,
}

impl EmailSender {
    fn mail(&self, message: &Outgoing) -> Result<OutgoingMail, SendFailure> {
        let MailThread { address, root } = thread_of(&message.channel, message.conversation_id.as_deref())?;
        // A message without an id has a number instead, which is no id.
        let answered = message.reply_to.clone().filter(|id| id.contains('@'));
        let mut references: Vec<String> = root.into_iter().collect();
        references.extend(answered.clone().filter(|id| !references.contains(id)));
        Ok(OutgoingMail {
            from: self.from.clone(),
            from_name: self.from_name.clone(),
            to: address,
            subject: match &message.subject {
                Some(subject) => reply_subject(subject),
                None => NEW_SUBJECT.to_owned(),
            },
            text: message.content.clone(),
            in_reply_to: answered,
            references,
        })
    }
}

/// The recipient of a message: after the name of the channel, else its conversation.
fn thread_of(channel: &str, conversation_id: Option<&str>) -> Result<MailThread, SendFailure> {
    let thread = match address_in(channel) {
        Some(address) => Some(MailThread { address: address.to_owned(), root: None }),
        None if channel == CHANNEL => conversation_id.and_then(MailThread::parse),
        None => None,
    };
    thread.ok_or_else(|| {
        let named = channel.strip_prefix(CHANNEL).and_then(|rest| rest.strip_prefix(':'));
        let problem = match named.or(conversation_id).unwrap_or_default() {
            "" => NO_RECIPIENT.to_owned(),
            other => format!("'{other}' is not an e-mail address"),
        };
        SendFailure::Invalid(format!(
            "{problem}. Write email:ADDRESS such as email:ann@example.org; 'hob channel senders' shows the addresses of \
             people"
        ))
    })
}

#[async_trait]
impl MessageSender for EmailSender {
    async fn deliver(&self, message: &Outgoing) -> Result<(), SendFailure> {
        let mail = self.mail(message)?;
        send_mail(&self.account, &mail).await.map_err(|error| match error {
            MailSendError::NotSent(error) => SendFailure::NotSent(error.to_string()),
            MailSendError::Unknown(error) => SendFailure::Unknown(error.to_string()),
            MailSendError::Refused(error) => SendFailure::Refused(error.to_string()),
        })
    }

    async fn channels(&self) -> Result<Vec<String>, String> {
        Ok(vec![CHANNEL.to_owned()])
    }

    fn check_recipient(&self, channel: &str, conversation_id: Option<&str>) -> Result<(), SendFailure> {
        thread_of(channel, conversation_id).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_mail::MailSecurity;

    use super::*;

    fn sender() -> EmailSender {
        let account = MailAccount {
            host: "localhost".into(),
            port: 1,
            security: MailSecurity::None,
            user: String::new(),
            password: "".into(),
            authorities: None,
            timeout: Duration::from_secs(1),
        };
        EmailSender { account, from: "hob@example.org".into(), from_name: "Hob".into() }
    }

    #[test]
    fn an_answer_belongs_to_the_thread_of_its_question() {
        let answer = Outgoing::new(CHANNEL, "At eight.", Some("ann@example.org a@x")).unwrap();
        let answer = Outgoing { reply_to: Some("b@x".into()), subject: Some("Dinner".into()), ..answer };
        let mail = sender().mail(&answer).unwrap();
        assert_eq!((mail.to.as_str(), mail.subject.as_str()), ("ann@example.org", "Re: Dinner"));
        assert_eq!(mail.in_reply_to.as_deref(), Some("b@x"));
        assert_eq!(mail.references, ["a@x", "b@x"]);
    }

    #[test]
    fn a_new_message_names_its_recipient() {
        for (channel, conversation) in [("email:ann@example.org", None), ("email", Some("ann@example.org"))] {
            let message = Outgoing::new(channel, "Dinner is ready.", conversation).unwrap();
            let mail = sender().mail(&message).unwrap();
            assert_eq!((mail.to.as_str(), mail.subject.as_str()), ("ann@example.org", NEW_SUBJECT));
            assert_eq!((mail.in_reply_to, mail.references.len()), (None, 0));
        }
        for (channel, conversation) in [("email", None), ("email:ann", Some("ann@example.org"))] {
            let nobody = Outgoing::new(channel, "Dinner is ready.", conversation).unwrap();
            assert!(matches!(sender().mail(&nobody), Err(SendFailure::Invalid(_))), "{channel}");
        }
    }
}
