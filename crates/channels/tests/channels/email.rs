//! The channel e-mail against scripted servers: what is answered, what is not, and what a restart changes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_channels::{
    Channel, ChannelMessage, ChannelOptions, ChannelService, ChannelStatus, ChannelStore, EmailOptions,
    HandlerResult, LiveReply, MIGRATIONS, MessageHandler, SqliteChannelStore,
};
use hob_core::Backoff;
use hob_db::Database;
use hob_mail::{MailAccount, MailSecurity};
use hob_testkit::{
    ImapFault, ImapScript, ImapServer, MAIL_PASSWORD, MAIL_USER, SentMail, SmtpFault, SmtpServer,
};
use tokio::time::timeout;

use crate::wait::WAIT_LIMIT;

struct Echo;

#[async_trait]
impl MessageHandler for Echo {
    async fn handle(&self, message: &ChannelMessage, _live: &dyn LiveReply) -> HandlerResult {
        Ok(Some(format!("You wrote: {}", message.content)))
    }
}

struct Servers {
    imap: ImapServer,
    smtp: SmtpServer,
    store: Arc<dyn ChannelStore>,
}

impl Servers {
    async fn start(script: ImapScript) -> Self {
        let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
        Servers {
            imap: ImapServer::start(script).await,
            smtp: SmtpServer::start(SmtpFault::None).await,
            store: Arc::new(SqliteChannelStore::new(database)),
        }
    }

    fn options(&self) -> EmailOptions {
        let imap = MailAccount {
            host: "127.0.0.1".to_owned(),
            port: self.imap.port(),
            security: MailSecurity::None,
            user: MAIL_USER.to_owned(),
            password: MAIL_PASSWORD.into(),
            authorities: None,
            timeout: WAIT_LIMIT,
        };
        let smtp = MailAccount { port: self.smtp.port(), ..imap.clone() };
        let quick = Duration::from_millis(20);
        EmailOptions {
            backoff: Backoff { first: quick, longest: quick },
            poll_interval: quick,
            store: Some(Arc::clone(&self.store)),
            ..EmailOptions::new(imap, smtp, MAIL_USER)
        }
    }

    /// A channel that echoes.
    async fn echoing(&self) -> Channel {
        let channel = Channel::email(self.options());
        channel.on_message(Arc::new(Echo));
        assert_eq!(channel.connect().await, ChannelStatus::Connected, "{:?}", channel.report());
        channel
    }

    async fn received(&self, count: usize) -> Vec<SentMail> {
        timeout(WAIT_LIMIT, self.smtp.received(count)).await.expect("an answer")
    }
}

/// A message of Ann.
fn mail(id: &str, more: &str, text: &str) -> String {
    format!(
        "From: Ann <ann@example.org>\nTo: {MAIL_USER}\nSubject: Dinner\nMessage-ID: <{id}@example.org>\n{more}\n{text}\n"
    )
}

#[tokio::test]
async fn a_message_is_answered_in_its_thread_and_old_ones_are_not() {
    let servers = Servers::start(ImapScript::default()).await;
    servers.imap.deliver(&mail("old", "", "From last year."));
    let channel = servers.echoing().await;
    servers.imap.deliver(&mail("a", "", "At eight?"));
    let sent = servers.received(1).await;
    assert_eq!(sent[0].to, "ann@example.org");
    for part in [
        "Subject: Re: Dinner\r\n",
        "In-Reply-To: <a@example.org>\r\n",
        "References: <a@example.org>\r\n",
        "Auto-Submitted: auto-replied\r\n",
        "You wrote: Subject: Dinner\r\n\r\nAt eight?",
    ] {
        assert!(sent[0].message.contains(part), "{part}: {}", sent[0].message);
    }
    let more = "In-Reply-To: <x@hob>\nReferences: <a@example.org> <x@hob>\n";
    servers.imap.deliver(&mail("b", more, "At nine?\n\nOn Monday, Hob wrote:\n> At eight.\n"));
    let sent = servers.received(2).await;
    assert!(sent[1].message.contains("You wrote: At nine?"), "{}", sent[1].message);
    assert!(!sent[1].message.contains("At eight."), "the quote is not part of the question");
    assert!(sent[1].message.contains("References: <a@example.org> <b@example.org>"), "{}", sent[1].message);
    channel.close().await;
}

#[tokio::test]
async fn programs_and_the_own_address_are_never_answered() {
    let servers = Servers::start(ImapScript::default()).await;
    let channel = servers.echoing().await;
    for more in [
        "Auto-Submitted: auto-replied\n",
        "Precedence: bulk\n",
        "List-Id: <l.example.org>\n",
        "Return-Path: <>\n",
    ] {
        servers.imap.deliver(&mail("auto", more, "I am away."));
    }
    servers.imap.deliver(&format!("From: {MAIL_USER}\nSubject: x\nMessage-ID: <own@x>\n\nHi\n"));
    servers.imap.deliver("not a message at all");
    servers.imap.deliver(&mail("last", "", "Hello?"));
    let sent = servers.received(1).await;
    assert!(sent[0].message.contains("Hello?"), "{}", sent[0].message);
    assert_eq!(servers.smtp.sent().len(), 1);
    channel.close().await;
}

#[tokio::test]
async fn a_program_that_answers_every_message_gets_answers_up_to_the_limit() {
    let servers = Servers::start(ImapScript::default()).await;
    let channel = Channel::email(EmailOptions { answers_per_hour: Some(2), ..servers.options() });
    channel.on_message(Arc::new(Echo));
    assert_eq!(channel.connect().await, ChannelStatus::Connected, "{:?}", channel.report());
    for id in ["a", "b", "c", "d"] {
        servers.imap.deliver(&mail(id, "", "Thank you for your message!"));
    }
    servers.imap.deliver("From: bob@example.org\nSubject: Lunch\nMessage-ID: <e@example.org>\n\nAt one?\n");
    let sent = servers.received(3).await;
    let mut answered: Vec<&str> = sent.iter().map(|mail| mail.to.as_str()).collect();
    answered.sort_unstable();
    assert_eq!(answered, ["ann@example.org", "ann@example.org", "bob@example.org"]);
    channel.close().await;
    assert_eq!(servers.smtp.sent().len(), 3, "not even a note goes to the program");
}

#[tokio::test]
async fn a_restart_answers_what_came_meanwhile_and_nothing_twice() {
    let servers = Servers::start(ImapScript::default()).await;
    let channel = servers.echoing().await;
    servers.imap.deliver(&mail("a", "", "One"));
    servers.received(1).await;
    channel.close().await;
    servers.imap.deliver(&mail("b", "", "Two"));
    let channel = servers.echoing().await;
    let sent = servers.received(2).await;
    assert!(sent[1].message.contains("Two"), "{}", sent[1].message);
    // A lost connection is no reason to answer again.
    servers.imap.hang_up();
    servers.imap.asked("EXAMINE", 3).await;
    servers.imap.deliver(&mail("c", "", "Three"));
    let sent = servers.received(3).await;
    assert!(sent[2].message.contains("Three"), "{}", sent[2].message);
    channel.close().await;
}

#[tokio::test]
async fn a_renumbered_folder_is_read_from_its_end() {
    let servers = Servers::start(ImapScript::default()).await;
    let channel = servers.echoing().await;
    servers.imap.deliver(&mail("a", "", "One"));
    servers.received(1).await;
    channel.close().await;
    servers.imap.deliver(&mail("b", "", "Two"));
    servers.imap.renumber();
    let channel = servers.echoing().await;
    servers.imap.deliver(&mail("c", "", "Three"));
    let sent = servers.received(2).await;
    assert!(sent[1].message.contains("Three"), "{}", sent[1].message);
    channel.close().await;
}

#[tokio::test]
async fn a_server_without_idle_is_asked_from_time_to_time() {
    let servers = Servers::start(ImapScript { has_idle: false, ..ImapScript::default() }).await;
    let channel = servers.echoing().await;
    servers.imap.asked("NOOP", 2).await;
    servers.imap.deliver(&mail("a", "", "One"));
    assert!(servers.received(1).await[0].message.contains("One"));
    channel.close().await;
}

#[tokio::test]
async fn a_broken_server_is_reported_with_its_problem() {
    for fault in [ImapFault::Closes, ImapFault::Nonsense, ImapFault::EndlessLine] {
        let servers = Servers::start(ImapScript { fault, ..ImapScript::default() }).await;
        let channel = Channel::email(servers.options());
        assert_eq!(channel.connect().await, ChannelStatus::Error, "{fault:?}");
        let problem = channel.report().problem.expect("a problem");
        assert!(problem.contains("mail server"), "{problem}");
        assert!(!problem.contains(MAIL_PASSWORD), "{problem}");
        channel.close().await;
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_does_not_stop_the_others() {
    let script = ImapScript { fault: ImapFault::HalfLiteral, ..ImapScript::default() };
    let servers = Servers::start(script).await;
    let channel = servers.echoing().await;
    servers.imap.deliver(&mail("a", "", "One"));
    let next = servers.imap.deliver(&mail("b", "", "Two"));
    let asked = format!("UID FETCH {next} ");
    timeout(WAIT_LIMIT, servers.imap.asked(&asked, 1)).await.expect("the next message is asked for");
    channel.close().await;
}

#[tokio::test]
async fn a_message_that_is_not_delivered_at_first_is_answered_later() {
    let script = ImapScript { fault: ImapFault::Withholds, ..ImapScript::default() };
    let servers = Servers::start(script).await;
    let channel = servers.echoing().await;
    servers.imap.deliver(&mail("a", "", "One"));
    servers.imap.deliver(&mail("b", "", "Two"));
    let sent = servers.received(2).await;
    for text in ["One", "Two"] {
        assert!(sent.iter().any(|mail| mail.message.contains(text)), "{text}");
    }
    channel.close().await;
}

#[tokio::test]
async fn without_a_database_a_lost_connection_skips_nothing() {
    let servers = Servers::start(ImapScript::default()).await;
    let channel = Channel::email(EmailOptions { store: None, ..servers.options() });
    channel.on_message(Arc::new(Echo));
    assert_eq!(channel.connect().await, ChannelStatus::Connected, "{:?}", channel.report());
    servers.imap.deliver(&mail("a", "", "One"));
    servers.received(1).await;
    servers.imap.hang_up();
    servers.imap.deliver(&mail("b", "", "Two"));
    let sent = servers.received(2).await;
    assert!(sent[1].message.contains("Two"), "{}", sent[1].message);
    channel.close().await;
}

#[tokio::test]
async fn the_service_lists_it_and_sends_to_an_address() {
    let servers = Servers::start(ImapScript::default()).await;
    let options = ChannelOptions { email: Some(servers.options()), ..ChannelOptions::default() };
    let service = ChannelService::new(options).expect("created");
    assert_eq!(service.list().await.expect("listed"), ["email"]);
    service.send("email:ann@example.org", "Dinner is ready.", None).await.expect("sent");
    let sent = servers.received(1).await;
    assert_eq!(sent[0].to, "ann@example.org");
    assert!(sent[0].message.contains("Subject: Message from Hob\r\n"), "{}", sent[0].message);
    assert!(service.send("email", "Dinner is ready.", None).await.is_err(), "no recipient is named");
    assert!(service.send("telegram:1", "Dinner is ready.", None).await.is_err(), "there is no such channel");
}
