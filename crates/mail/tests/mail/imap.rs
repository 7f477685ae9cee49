//! Reading a mailbox: what a good server says, and what a bad one cannot do.

#![expect(clippy::expect_used, reason = "a test that cannot set itself up should fail loudly")]

use std::time::Duration;

use hob_mail::{IdleEnd, ImapSession, MailAccount, MailError, MailQuery, MailSecurity, mail_tool};
#[cfg(unix)]
use hob_testkit::Dovecot;
use hob_testkit::{ImapFault, ImapScript, ImapServer, MAIL_PASSWORD, MAIL_USER};
use serde_json::json;

fn account(port: u16) -> MailAccount {
    MailAccount {
        host: "127.0.0.1".into(),
        port,
        security: MailSecurity::None,
        user: MAIL_USER.into(),
        password: MAIL_PASSWORD.into(),
        authorities: None,
        timeout: Duration::from_secs(60),
    }
}

async fn opened(server: &ImapServer) -> ImapSession {
    let mut session = ImapSession::open(&account(server.port())).await.expect("a login");
    session.examine("INBOX").await.expect("a folder");
    session
}

fn mail(from: &str, subject: &str, text: &str) -> String {
    format!(
        "From: {from}\nTo: {MAIL_USER}\nSubject: {subject}\nMessage-ID: <{subject}@example.org>\n\n{text}\n"
    )
}

#[tokio::test]
async fn messages_are_found_listed_and_read() {
    let server = ImapServer::start(ImapScript::default()).await;
    let first = server.deliver(&mail("Ann <ann@example.org>", "Dinner", "At eight?"));
    let second = server.deliver(&mail("bob@example.org", "Grüße", "Hello."));
    let mut session = opened(&server).await;
    assert_eq!(session.search(&MailQuery::default()).await.unwrap(), [first, second]);
    let of_ann = MailQuery { from: Some("ann@".into()), ..MailQuery::default() };
    assert_eq!(session.search(&of_ann).await.unwrap(), [first]);
    let greetings = MailQuery { subject: Some("Grüße".into()), ..MailQuery::default() };
    assert_eq!(session.search(&greetings).await.unwrap(), [second]);
    assert_eq!(
        (session.after(first).await.unwrap(), session.last().await.unwrap()),
        (vec![second], Some(second))
    );
    assert_eq!(session.after(second).await.unwrap(), [] as [u32; 0], "the last one is not new");
    let summaries = session.summaries(&[second, 99, first]).await.unwrap();
    let listed: Vec<_> = summaries.iter().map(|summary| (summary.uid, summary.subject.as_str())).collect();
    assert_eq!(listed, [(second, "Grüße"), (first, "Dinner")]);
    let bytes = session.message(first, 1 << 20).await.unwrap().expect("a message");
    assert!(String::from_utf8_lossy(&bytes).contains("At eight?"));
    assert!(session.message(99, 1 << 20).await.unwrap().is_none());
    session.close().await;
    // Nothing that changes the mailbox was asked for.
    for command in server.commands() {
        let allowed = ["CAPABILITY", "AUTHENTICATE", "EXAMINE", "UID SEARCH", "UID FETCH", "LOGOUT"];
        assert!(allowed.iter().any(|start| command.starts_with(start)), "{command}");
        assert!(!command.contains("BODY["), "without PEEK, reading marks a message: {command}");
    }
}

#[tokio::test]
async fn a_wait_ends_with_the_next_message() {
    let server = ImapServer::start(ImapScript::default()).await;
    let mut session = opened(&server).await;
    assert!(session.has_idle());
    let waiting = tokio::spawn(async move { session.idle(Duration::from_secs(60)).await });
    server.asked("IDLE", 1).await;
    server.deliver(&mail("ann@example.org", "a", "Hi"));
    assert_eq!(waiting.await.unwrap().unwrap(), IdleEnd::Changed);
}

#[tokio::test]
async fn a_wait_without_messages_ends_by_itself_and_the_session_goes_on() {
    let server = ImapServer::start(ImapScript::default()).await;
    let mut session = opened(&server).await;
    assert_eq!(session.idle(Duration::from_millis(50)).await.unwrap(), IdleEnd::TimedOut);
    session.noop().await.unwrap();
    assert_eq!(session.last().await.unwrap(), None);
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_folder_are_reported() {
    let server = ImapServer::start(ImapScript::default()).await;
    let wrong = MailAccount { password: "wrong".into(), ..account(server.port()) };
    let refused = ImapSession::open(&wrong).await.unwrap_err();
    assert!(
        matches!(refused, MailError::Login { .. }) && refused.to_string().contains("app password"),
        "{refused}"
    );
    let mut session = opened(&server).await;
    let missing = session.examine("Nowhere").await.unwrap_err();
    assert!(missing.to_string().contains("there is no such folder"), "{missing}");
}

#[tokio::test]
async fn a_hostile_server_is_an_error_and_never_more() {
    for fault in [
        ImapFault::Closes,
        ImapFault::EndlessLine,
        ImapFault::HugeLiteral,
        ImapFault::HalfLiteral,
        ImapFault::Brackets,
        ImapFault::Nonsense,
        ImapFault::Chatter,
        ImapFault::ManyNumbers,
        ImapFault::ManyLiterals,
    ] {
        let server = ImapServer::start(ImapScript { fault, ..ImapScript::default() }).await;
        let uid = server.deliver(&mail("ann@example.org", "a", "Hi"));
        let read = async {
            let mut session = ImapSession::open(&account(server.port())).await?;
            session.examine("INBOX").await?;
            session.search(&MailQuery::default()).await?;
            session.message(uid, 1 << 20).await
        };
        assert!(read.await.is_err(), "{fault:?}");
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let server = ImapServer::start(ImapScript { fault: ImapFault::Silent, ..ImapScript::default() }).await;
    let hasty = MailAccount { timeout: Duration::from_millis(200), ..account(server.port()) };
    assert!(matches!(ImapSession::open(&hasty).await, Err(MailError::Timeout { .. })));
}

#[tokio::test]
async fn a_server_that_offers_no_starttls_gets_no_password() {
    let server = ImapServer::start(ImapScript::default()).await;
    let strict = MailAccount { security: MailSecurity::StartTls, ..account(server.port()) };
    assert!(matches!(ImapSession::open(&strict).await, Err(MailError::NoStartTls { .. })));
    assert!(server.commands().iter().all(|command| !command.starts_with("AUTHENTICATE")));
}

#[tokio::test]
async fn the_tool_lists_and_reads_without_changing_anything() {
    let server = ImapServer::start(ImapScript::default()).await;
    let uid = server.deliver(&mail("Ann <ann@example.org>", "Dinner", "At eight?"));
    let tool = mail_tool(account(server.port()), "INBOX".into());
    assert!(tool.spec().untrusted_output);
    let listed = tool.call(json!({})).await.unwrap();
    assert_eq!(listed, format!("id {uid}: 2026-12-01 10:00 UTC Ann <ann@example.org>: Dinner (unread)"));
    let read = tool.call(json!({ "id": uid })).await.unwrap();
    assert!(read.starts_with("From: Ann <ann@example.org>\n") && read.ends_with("At eight?"), "{read}");
    assert_eq!(tool.call(json!({ "id": 99 })).await.unwrap(), "There is no e-mail with the id 99.");
    assert_eq!(tool.call(json!({ "from": "bob" })).await.unwrap(), "There are no such e-mails.");
}

#[cfg(unix)]
#[tokio::test]
async fn a_real_server_is_read_over_tls_and_reports_new_messages() {
    let server = Dovecot::start();
    let account = MailAccount {
        host: "localhost".into(),
        security: MailSecurity::Tls,
        authorities: Some(server.authority()),
        ..account(server.port())
    };
    let mut session =
        ImapSession::open(&account).await.unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
    session.examine("INBOX").await.unwrap();
    assert_eq!(session.last().await.unwrap(), None);
    let waiting = tokio::spawn(async move {
        let ended = session.idle(Duration::from_secs(60)).await;
        (session, ended)
    });
    server.deliver(&mail("ann@example.org", "Dinner", "At eight?"));
    let (mut session, ended) = waiting.await.unwrap();
    assert_eq!(ended.unwrap(), IdleEnd::Changed);
    let new = session.after(0).await.unwrap();
    assert_eq!(session.summaries(&new).await.unwrap()[0].subject, "Dinner");
    assert!(session.message(new[0], 1 << 20).await.unwrap().is_some());
    session.close().await;
    assert!(!server.has_read_messages(), "reading leaves no mark");
    let unknown = MailAccount { authorities: None, ..account };
    assert!(matches!(ImapSession::open(&unknown).await, Err(MailError::Tls { .. })));
}
