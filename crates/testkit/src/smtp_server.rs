//! An SMTP server that keeps what it gets, as RFC 5321 describes it, as good or as bad as a test wants it.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::free_port::server_port;
use crate::imap_server::{MAIL_PASSWORD, MAIL_USER};

/// How a server misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SmtpFault {
    #[default]
    None,
    /// It takes connections and says nothing.
    Silent,
    /// It refuses every recipient for good.
    RefusesRecipient,
    /// It cannot take a message now.
    Busy,
    /// It closes the connection after it has the message, without an answer.
    ClosesAfterMessage,
    /// It answers with something that is not SMTP.
    Nonsense,
    /// Its greeting has no end.
    EndlessReply,
}

/// A message that came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentMail {
    pub from: String,
    pub to: String,
    /// The headers and the text.
    pub message: String,
}

/// The server. It is gone with its value.
pub struct SmtpServer {
    address: SocketAddr,
    sent: watch::Sender<Vec<SentMail>>,
    accepting: JoinHandle<()>,
}

impl SmtpServer {
    pub async fn start(fault: SmtpFault) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", server_port())).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let sent = watch::Sender::new(Vec::new());
        let accepting = tokio::spawn(accept(listener, fault, sent.clone()));
        SmtpServer { address, sent, accepting }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The messages so far.
    pub fn sent(&self) -> Vec<SentMail> {
        self.sent.borrow().clone()
    }

    /// Waits until so many messages have come in.
    pub async fn received(&self, count: usize) -> Vec<SentMail> {
        let mut sent = self.sent.subscribe();
        sent.wait_for(|sent| sent.len() >= count).await.expect("the server runs").clone()
    }
}

impl Drop for SmtpServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, fault: SmtpFault, sent: watch::Sender<Vec<SentMail>>) {
    let sent = Arc::new(sent);
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let sent = Arc::clone(&sent);
        connections.spawn(async move { serve(BufReader::new(socket), fault, &sent).await });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(
    mut socket: BufReader<TcpStream>,
    fault: SmtpFault,
    sent: &watch::Sender<Vec<SentMail>>,
) -> Option<()> {
    match fault {
        SmtpFault::Silent => std::future::pending().await,
        SmtpFault::Nonsense => say(&mut socket, "hello there").await?,
        SmtpFault::EndlessReply => loop {
            say(&mut socket, "220-more").await?;
        },
        _ => say(&mut socket, "220 test server").await?,
    }
    let (mut from, mut to, mut is_known) = (String::new(), String::new(), false);
    loop {
        let line = line(&mut socket).await?;
        let reply = if line.starts_with("EHLO ") {
            "250-test server\r\n250-SIZE 10000000\r\n250 AUTH PLAIN LOGIN"
        } else if let Some(token) = line.strip_prefix("AUTH PLAIN ") {
            is_known = token == BASE64_STANDARD.encode(format!("\0{MAIL_USER}\0{MAIL_PASSWORD}"));
            if is_known { "235 welcome" } else { "535 5.7.8 wrong password" }
        } else if !is_known && line != "QUIT" {
            "530 log in first"
        } else if let Some(address) = line.strip_prefix("MAIL FROM:") {
            from = bare(address);
            if fault == SmtpFault::Busy { "451 try again later" } else { "250 ok" }
        } else if let Some(address) = line.strip_prefix("RCPT TO:") {
            to = bare(address);
            if fault == SmtpFault::RefusesRecipient { "550 no such user" } else { "250 ok" }
        } else if line == "DATA" {
            say(&mut socket, "354 go ahead").await?;
            let message = data(&mut socket).await?;
            sent.send_modify(|sent| sent.push(SentMail { from: from.clone(), to: to.clone(), message }));
            if fault == SmtpFault::ClosesAfterMessage {
                return None;
            }
            "250 taken"
        } else if line == "QUIT" {
            let _ = say(&mut socket, "221 goodbye").await;
            return None;
        } else {
            "500 not understood"
        };
        say(&mut socket, reply).await?;
    }
}

async fn say(socket: &mut BufReader<TcpStream>, reply: &str) -> Option<()> {
    socket.write_all(format!("{reply}\r\n").as_bytes()).await.ok()
}

/// The next line. One that does not end as the protocol wants ends the connection.
async fn line(socket: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    socket.read_line(&mut line).await.ok()?;
    Some(line.strip_suffix("\r\n")?.to_owned())
}

/// The message up to the line with one dot.
async fn data(socket: &mut BufReader<TcpStream>) -> Option<String> {
    let mut message = String::new();
    loop {
        match line(socket).await?.as_str() {
            "." => return Some(message),
            text => message.push_str(&format!("{}\r\n", text.strip_prefix('.').unwrap_or(text))),
        }
    }
}

fn bare(address: &str) -> String {
    address.trim_start_matches('<').trim_end_matches('>').to_owned()
}
