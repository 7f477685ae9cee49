//! Sending: what arrives, and what is known when it does not.

use std::time::Duration;

use hob_mail::{MailAccount, MailSecurity, MailSendError, OutgoingMail, check_smtp, send_mail};
use hob_testkit::{MAIL_PASSWORD, MAIL_USER, SmtpFault, SmtpServer};

fn account(server: &SmtpServer) -> MailAccount {
    MailAccount {
        host: "127.0.0.1".into(),
        port: server.port(),
        security: MailSecurity::None,
        user: MAIL_USER.into(),
        password: MAIL_PASSWORD.into(),
        authorities: None,
        timeout: Duration::from_secs(60),
    }
}

fn mail() -> OutgoingMail {
    OutgoingMail {
        from: MAIL_USER.into(),
        from_name: "Hob".into(),
        to: "ann@example.org".into(),
        subject: "Re: Dinner".into(),
        text: "At eight.\n.\nSee you.\n".into(),
        in_reply_to: Some("a@example.org".into()),
        references: vec!["a@example.org".into()],
    }
}

#[tokio::test]
async fn a_message_arrives_whole() {
    let server = SmtpServer::start(SmtpFault::None).await;
    check_smtp(&account(&server)).await.unwrap();
    assert_eq!(server.sent().len(), 0, "a check sends nothing");
    send_mail(&account(&server), &mail()).await.unwrap();
    let sent = server.received(1).await;
    assert_eq!((sent[0].from.as_str(), sent[0].to.as_str()), (MAIL_USER, "ann@example.org"));
    for part in
        ["Subject: Re: Dinner\r\n", "In-Reply-To: <a@example.org>\r\n", "Auto-Submitted: auto-replied\r\n"]
    {
        assert!(sent[0].message.contains(part), "{part}{}", sent[0].message);
    }
    assert!(sent[0].message.contains("At eight.\r\n.\r\nSee you."), "{}", sent[0].message);
}

#[tokio::test]
async fn what_is_known_about_a_message_that_failed_is_reported() {
    for (fault, expected) in [
        (SmtpFault::RefusesRecipient, "refused"),
        (SmtpFault::Busy, "not sent"),
        (SmtpFault::ClosesAfterMessage, "unknown"),
        (SmtpFault::Nonsense, "not sent"),
        (SmtpFault::EndlessReply, "not sent"),
    ] {
        let server = SmtpServer::start(fault).await;
        let known = match send_mail(&account(&server), &mail()).await {
            Ok(()) => "sent",
            Err(MailSendError::NotSent(_)) => "not sent",
            Err(MailSendError::Unknown(_)) => "unknown",
            Err(MailSendError::Refused(_)) => "refused",
        };
        assert_eq!(known, expected, "{fault:?}");
    }
}

#[tokio::test]
async fn a_wrong_password_and_a_silent_server_are_reported() {
    let server = SmtpServer::start(SmtpFault::None).await;
    let wrong = MailAccount { password: "wrong".into(), ..account(&server) };
    let refused = check_smtp(&wrong).await.unwrap_err().to_string();
    assert!(refused.contains("refuses the login"), "{refused}");
    let silent = SmtpServer::start(SmtpFault::Silent).await;
    let hasty = MailAccount { timeout: Duration::from_millis(200), ..account(&silent) };
    let late = check_smtp(&hasty).await.unwrap_err().to_string();
    assert!(late.contains("did not answer"), "{late}");
}

#[tokio::test]
async fn a_server_without_starttls_gets_no_password() {
    let server = SmtpServer::start(SmtpFault::None).await;
    let strict = MailAccount { security: MailSecurity::StartTls, ..account(&server) };
    let refused = check_smtp(&strict).await.unwrap_err().to_string();
    assert!(refused.contains("does not offer STARTTLS"), "{refused}");
}
