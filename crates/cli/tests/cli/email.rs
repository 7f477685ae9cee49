//! E-mail as users run it: `hob channel add email`, and `hob serve` with a real Dovecot.

use std::time::Duration;

use hob_testkit::{Dovecot, ImapScript, ImapServer, MAIL_PASSWORD, MAIL_USER, SmtpFault, SmtpServer};
use tokio::time::timeout;

use crate::fakes;
use crate::home::{Home, engines_config};
use crate::running::Running;
use crate::terminal::Terminal;

const WAIT_LIMIT: Duration = Duration::from_secs(240);

fn mail(id: &str, text: &str) -> String {
    format!(
        "From: Ann <ann@example.org>\nTo: {MAIL_USER}\nSubject: France\nMessage-ID: <{id}@example.org>\n\n{text}\n"
    )
}

#[tokio::test]
async fn a_new_sender_is_approved_and_then_answered_over_real_imap() {
    let (imap, smtp, ollama) =
        (Dovecot::start(), SmtpServer::start(SmtpFault::None).await, fakes::ollama().await);
    let config = format!(
        "[mail]\nimap_host = \"localhost\"\nimap_port = {}\nauthorities = \"{}\"\nsmtp_host = \"127.0.0.1\"\nsmtp_port = {}\n\
         smtp_security = \"none\"\nuser = \"{MAIL_USER}\"\npassword = '{MAIL_PASSWORD}'\n[channel.email]\nenabled = true\n",
        imap.port(),
        imap.authority().display(),
        smtp.port(),
    );
    let home = Home::with_config(&(engines_config(&[("ollama", &ollama.url())]) + &config));
    let mut command = home.hob(&["serve", "--port", "0"]);
    command.env("HOB_LOG", "hob_channels=info");
    let mut server = Running::of(command).await;
    server.says("reading e-mails").await;
    imap.deliver(&mail("a", "What is the capital?"));
    let sent = timeout(WAIT_LIMIT, smtp.received(1)).await.expect("a code");
    assert_eq!(sent[0].to, "ann@example.org");
    let code = sent[0].message.split("Your code is ").nth(1).expect("a code").get(..9).expect("a code");
    let approved = home.run(&["channel", "approve", code]).await;
    assert_eq!(approved.code, Some(0), "{}", approved.stderr);
    imap.deliver(&mail("b", "What is the capital?"));
    let sent = timeout(WAIT_LIMIT, smtp.received(2)).await.expect("an answer");
    assert!(sent[1].message.contains("Subject: Re: France\r\n"), "{}", sent[1].message);
    assert!(sent[1].message.contains("The capital of France is Paris"), "{}", sent[1].message);
    assert!(!imap.has_read_messages(), "flags belong to the owner of the mailbox");
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[tokio::test]
async fn adding_the_channel_checks_both_servers_and_writes_the_account() {
    let (imap, smtp) =
        (ImapServer::start(ImapScript::default()).await, SmtpServer::start(SmtpFault::None).await);
    let ports = format!(
        "[mail]\nimap_port = {}\nimap_security = \"none\"\nsmtp_port = {}\nsmtp_security = \"none\"\n",
        imap.port(),
        smtp.port()
    );
    let home = Home::with_config(&ports);
    let arguments = [
        "channel",
        "add",
        "email",
        "--address",
        MAIL_USER,
        "--imap-host",
        "127.0.0.1",
        "--smtp-host",
        "127.0.0.1",
        "--yes",
    ];
    let unconfirmed = home.run_with_stdin(&arguments[..9], format!("{MAIL_PASSWORD}\n").as_bytes()).await;
    assert_eq!(unconfirmed.code, Some(1));
    for words in ["gets an automatic reply with a pairing code", "Use --yes", "--read-only"] {
        assert!(unconfirmed.stderr.contains(words), "{words}: {}", unconfirmed.stderr);
    }
    let wrong = home.run_with_stdin(&arguments, b"wrong\n").await;
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("refuses the login"), "{}", wrong.stderr);
    assert_eq!(std::fs::read_to_string(home.config_file()).expect("a file"), ports, "nothing is written");

    let added = home.run_with_stdin(&arguments, format!("{MAIL_PASSWORD}\n").as_bytes()).await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(added.stdout.starts_with("Both servers accept the account."), "{}", added.stdout);
    assert!(added.stderr.contains("gets an automatic reply with a pairing code"), "{}", added.stderr);
    assert!(!added.stdout.contains("s3cret") && !added.stderr.contains("s3cret"));
    let written = std::fs::read_to_string(home.config_file()).expect("a file");
    for part in ["[channel.email]", "enabled = true", MAIL_USER, "s3cret"] {
        assert!(written.contains(part), "{part}: {written}");
    }
    assert_eq!(home.run(&["channel", "list"]).await.stdout, "email\n");
    let status = home.run(&["channel", "status"]).await;
    assert_eq!(
        (status.code, status.stdout.as_str()),
        (
            Some(0),
            "Status    connected\nTelegram  off (run 'hob channel add telegram')\nE-mail    on; 'hob serve' receives its messages\n\
             WhatsApp  off ([channel.whatsapp] enabled)\n"
        ),
        "{}",
        status.stderr
    );
    let listed = home.run(&["tools", "run", "mail", "{}"]).await;
    assert_eq!(
        (listed.code, listed.stdout.as_str()),
        (Some(0), "There are no such e-mails.\n"),
        "{}",
        listed.stderr
    );
    drop(smtp);
    let status = home.run(&["channel", "status", "--json"]).await;
    assert_eq!(status.code, Some(1));
    assert!(status.stdout.contains(r#""channels":["email"]"#), "{}", status.stdout);
    assert!(status.stdout.contains(r#""connected":false"#), "{}", status.stdout);
}

#[tokio::test]
async fn a_mailbox_is_added_for_reading_without_the_channel() {
    let imap = ImapServer::start(ImapScript::default()).await;
    // Another account, whose user the new one does not get.
    let port = format!(
        "[mail]\nuser = \"old@example.org\"\nimap_port = {}\nimap_security = \"none\"\n",
        imap.port()
    );
    let home = Home::with_config(&port);
    let arguments =
        ["channel", "add", "email", "--read-only", "--address", MAIL_USER, "--imap-host", "127.0.0.1"];
    let added = home.run_with_stdin(&arguments, format!("{MAIL_PASSWORD}\n").as_bytes()).await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(added.stdout.starts_with("The server accepts the account."), "{}", added.stdout);
    let written = std::fs::read_to_string(home.config_file()).expect("a file");
    assert!(written.contains(MAIL_USER) && written.contains("s3cret"), "{written}");
    for absent in ["channel", "smtp"] {
        assert!(!written.contains(absent), "{absent}: {written}");
    }
    let listed = home.run(&["tools", "run", "mail", "{}"]).await;
    assert_eq!(listed.stdout, "There are no such e-mails.\n", "{}", listed.stderr);

    let telegram = home.run_with_stdin(&["channel", "add", "telegram", "--read-only"], b"1:x\n").await;
    assert!(telegram.code == Some(1) && telegram.stderr.contains("is for e-mail"), "{}", telegram.stderr);
}

#[tokio::test]
async fn the_mailbox_of_the_channel_is_not_replaced_without_a_question() {
    let config = "[mail]\naddress = \"old@example.org\"\n[channel.email]\nenabled = true\n";
    let home = Home::with_config(config);
    for (argument, problem) in
        [("--read-only", "the channel email is on"), ("--imap-host=127.0.0.1", "Use --yes to confirm")]
    {
        let arguments = ["channel", "add", "email", "--address", MAIL_USER, argument];
        let refused = home.run_with_stdin(&arguments, b"secret\n").await;
        assert!(refused.code == Some(1) && refused.stderr.contains(problem), "{}", refused.stderr);
    }
    assert_eq!(std::fs::read_to_string(home.config_file()).expect("a file"), config, "nothing is written");
}

#[tokio::test]
async fn the_channel_is_turned_on_only_after_a_clear_yes() {
    let home = Home::with_config("[mail]\n");
    let mut terminal = Terminal::start(&home, &["channel", "add", "email", "--address", MAIL_USER]);
    terminal.sees("pairing").await;
    terminal.sees("--read-only").await;
    terminal.sees("Turn the channel on? [y/N] ").await;
    terminal.line("").await;
    terminal.sees("Nothing was changed.").await;
    assert_eq!(terminal.end().await, Some(0), "{}", terminal.text());
    assert_eq!(std::fs::read_to_string(home.config_file()).expect("a file"), "[mail]\n");
}
