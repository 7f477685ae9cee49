//! An IMAP server with one mailbox in memory, as RFC 3501 and RFC 2177 describe it, as good or as bad as a test wants it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::free_port::server_port;

/// The name and the password of the mailbox.
pub const MAIL_USER: &str = "hob@example.org";
pub const MAIL_PASSWORD: &str = "s3cret \"words\"";

/// How a server misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImapFault {
    #[default]
    None,
    /// It takes connections and says nothing.
    Silent,
    /// It greets, and closes the connection after the first command.
    Closes,
    /// Its greeting has no end.
    EndlessLine,
    /// It announces a message of four gigabytes.
    HugeLiteral,
    /// It closes the connection in the middle of a message.
    HalfLiteral,
    /// It answers a fetch with brackets that have no end.
    Brackets,
    /// It answers with something that is not IMAP.
    Nonsense,
    /// It announces more and more messages in answer to a search, and never ends it.
    Chatter,
    /// It finds more messages than a folder can have.
    ManyNumbers,
    /// It answers a fetch with many empty literals.
    ManyLiterals,
    /// It answers the first three fetches of a message without the message.
    Withholds,
}

/// What the server does without a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImapScript {
    pub has_idle: bool,
    pub fault: ImapFault,
}

impl Default for ImapScript {
    fn default() -> Self {
        ImapScript { has_idle: true, fault: ImapFault::None }
    }
}

/// The server. It is gone with its value.
pub struct ImapServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    script: ImapScript,
    mailbox: Mutex<Mailbox>,
    /// Changes with every message.
    delivered: watch::Sender<usize>,
    commands: watch::Sender<Vec<String>>,
    /// Changes when all connections are cut.
    hung_up: watch::Sender<usize>,
}

struct Mailbox {
    uid_validity: u32,
    next_uid: u32,
    messages: Vec<(u32, String)>,
}

impl ImapServer {
    pub async fn start(script: ImapScript) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", server_port())).await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let mailbox = Mailbox { uid_validity: 7, next_uid: 1, messages: Vec::new() };
        let shared = Arc::new(Shared {
            script,
            mailbox: Mutex::new(mailbox),
            delivered: watch::Sender::new(0),
            commands: watch::Sender::new(Vec::new()),
            hung_up: watch::Sender::new(0),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        ImapServer { address, shared, accepting }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Puts a message into the mailbox. Its lines may end with `\n`. Returns its number.
    pub fn deliver(&self, message: &str) -> u32 {
        let mut mailbox = self.mailbox();
        let uid = mailbox.next_uid;
        mailbox.next_uid += 1;
        mailbox.messages.push((uid, message.replace("\r\n", "\n").replace('\n', "\r\n")));
        drop(mailbox);
        self.shared.delivered.send_modify(|count| *count += 1);
        uid
    }

    /// Renumbers the mailbox, as a server does after a restore.
    pub fn renumber(&self) {
        let mut mailbox = self.mailbox();
        mailbox.uid_validity += 1;
        let messages = std::mem::take(&mut mailbox.messages);
        mailbox.messages = (1..).zip(messages).map(|(uid, (_, message))| (uid, message)).collect();
        mailbox.next_uid = u32::try_from(mailbox.messages.len()).expect("few") + 1;
    }

    /// Cuts every connection.
    pub fn hang_up(&self) {
        self.shared.hung_up.send_modify(|count| *count += 1);
    }

    /// The commands so far, without their tags.
    pub fn commands(&self) -> Vec<String> {
        self.shared.commands.borrow().clone()
    }

    /// Waits until a command that begins with `start` has come in so many times.
    pub async fn asked(&self, start: &str, times: usize) {
        let mut commands = self.shared.commands.subscribe();
        let has_it = |seen: &Vec<String>| seen.iter().filter(|line| line.starts_with(start)).count() >= times;
        commands.wait_for(has_it).await.expect("the server runs");
    }

    fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        lock(&self.shared.mailbox)
    }
}

impl Drop for ImapServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock(mailbox: &Mutex<Mailbox>) -> MutexGuard<'_, Mailbox> {
    mailbox.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // The connections end with the server.
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            let mut hung_up = shared.hung_up.subscribe();
            hung_up.mark_unchanged();
            tokio::select! {
                _ = hung_up.changed() => {}
                _ = Session::new(socket, &shared).serve() => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

struct Session<'a> {
    socket: BufReader<TcpStream>,
    shared: &'a Shared,
    /// The number of messages that the client knows of.
    known: usize,
}

/// `None` ends the connection.
type Served = Option<()>;

impl<'a> Session<'a> {
    fn new(socket: TcpStream, shared: &'a Shared) -> Self {
        Session { socket: BufReader::new(socket), shared, known: 0 }
    }

    async fn say(&mut self, text: &str) -> Served {
        self.socket.write_all(text.as_bytes()).await.ok()
    }

    /// The next line, with its literals as quoted texts.
    async fn line(&mut self) -> Option<String> {
        let mut whole = String::new();
        loop {
            let mut line = String::new();
            if self.socket.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let line = line.trim_end_matches(['\r', '\n']);
            let literal = line.strip_suffix('}').and_then(|line| line.rsplit_once('{'));
            let Some((before, length)) =
                literal.and_then(|(before, digits)| Some((before, digits.parse().ok()?)))
            else {
                whole.push_str(line);
                return Some(whole);
            };
            whole.push_str(before);
            self.say("+ send it\r\n").await?;
            let mut bytes: Vec<u8> = vec![0; length];
            self.socket.read_exact(&mut bytes).await.ok()?;
            whole.push_str(&format!("\"{}\"", String::from_utf8_lossy(&bytes)));
        }
    }

    async fn serve(mut self) -> Served {
        match self.shared.script.fault {
            ImapFault::Silent => std::future::pending().await,
            ImapFault::EndlessLine => loop {
                self.say(&"x".repeat(64 << 10)).await?;
            },
            _ => self.say("* OK ready\r\n").await?,
        }
        loop {
            let line = self.line().await?;
            let (tag, command) = line.split_once(' ').unwrap_or((&line, ""));
            self.shared.commands.send_modify(|commands| commands.push(command.to_owned()));
            if self.shared.script.fault == ImapFault::Closes {
                return None;
            }
            self.answer(tag, command).await?;
        }
    }

    async fn answer(&mut self, tag: &str, command: &str) -> Served {
        let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
        match name.to_ascii_uppercase().as_str() {
            "CAPABILITY" => {
                let idle = if self.shared.script.has_idle { " IDLE" } else { "" };
                self.say(&format!("* CAPABILITY IMAP4rev1 SASL-IR AUTH=PLAIN{idle}\r\n")).await?;
                self.done(tag, "OK done").await
            }
            "AUTHENTICATE" => {
                let expected = BASE64_STANDARD.encode(format!("\0{MAIL_USER}\0{MAIL_PASSWORD}"));
                let is_right = rest.strip_prefix("PLAIN ") == Some(expected.as_str());
                self.done(
                    tag,
                    if is_right { "OK welcome" } else { "NO [AUTHENTICATIONFAILED] wrong password" },
                )
                .await
            }
            "EXAMINE" if rest == "\"INBOX\"" => {
                let (uid_validity, count) = {
                    let mailbox = lock(&self.shared.mailbox);
                    (mailbox.uid_validity, mailbox.messages.len())
                };
                self.known = count;
                self.say(&format!("* FLAGS (\\Seen)\r\n* {count} EXISTS\r\n* 0 RECENT\r\n")).await?;
                self.say(&format!("* OK [UIDVALIDITY {uid_validity}] valid\r\n")).await?;
                self.done(tag, "OK [READ-ONLY] open").await
            }
            "EXAMINE" => self.done(tag, "NO there is no such folder").await,
            "UID" if rest.starts_with("SEARCH ") => self.search(tag, &rest["SEARCH ".len()..]).await,
            "UID" if rest.starts_with("FETCH ") => self.fetch(tag, &rest["FETCH ".len()..]).await,
            "IDLE" if self.shared.script.has_idle => self.idle(tag).await,
            "NOOP" => self.done(tag, "OK done").await,
            "LOGOUT" => {
                self.say("* BYE goodbye\r\n").await?;
                self.done(tag, "OK done").await?;
                None
            }
            _ => self.done(tag, "BAD not understood").await,
        }
    }

    async fn done(&mut self, tag: &str, text: &str) -> Served {
        self.say(&format!("{tag} {text}\r\n")).await
    }

    async fn search(&mut self, tag: &str, criteria: &str) -> Served {
        match self.shared.script.fault {
            ImapFault::Nonsense => return self.say("HTTP/1.1 400 Bad Request\r\n\r\n").await,
            ImapFault::Chatter => loop {
                self.say("* 1 EXISTS\r\n").await?;
            },
            ImapFault::ManyNumbers => {
                let line = format!("* SEARCH{}\r\n", " 7".repeat(500_000));
                for _ in 0..3 {
                    self.say(&line).await?;
                }
            }
            _ => {}
        }
        let found: Vec<String> = {
            let mailbox = lock(&self.shared.mailbox);
            let last = mailbox.messages.last().map_or(0, |(uid, _)| *uid);
            let is_found = |uid: u32, message: &str| matches(criteria, uid, last, message);
            let found = mailbox.messages.iter().filter(|(uid, message)| is_found(*uid, message));
            found.map(|(uid, _)| uid.to_string()).collect()
        };
        self.say(&format!("* SEARCH {}\r\n", found.join(" "))).await?;
        self.done(tag, "OK done").await
    }

    async fn fetch(&mut self, tag: &str, arguments: &str) -> Served {
        let (set, items) = arguments.split_once(' ')?;
        let wanted: Vec<u32> = set.split(',').filter_map(|uid| uid.parse().ok()).collect();
        let messages: Vec<(usize, u32, String)> = {
            let mailbox = lock(&self.shared.mailbox);
            let numbered = mailbox.messages.iter().zip(1..).filter(|((uid, _), _)| wanted.contains(uid));
            numbered.map(|((uid, message), number)| (number, *uid, message.clone())).collect()
        };
        let fetches =
            self.shared.commands.borrow().iter().filter(|line| line.contains("BODY.PEEK[]")).count();
        for (number, uid, message) in messages {
            let is_header = items.contains("BODY.PEEK[HEADER]");
            if self.shared.script.fault == ImapFault::Withholds && !is_header && fetches <= 3 {
                continue;
            }
            let end = message.find("\r\n\r\n").map_or(message.len(), |end| end + 4);
            let (name, text) = match is_header {
                true => ("BODY[HEADER]<0>", &message[..end]),
                false => ("BODY[]<0>", message.as_str()),
            };
            let head = format!(
                "* {number} FETCH (UID {uid} FLAGS () INTERNALDATE \"01-Dec-2026 10:00:00 +0000\" {name} "
            );
            match self.shared.script.fault {
                ImapFault::HugeLiteral => self.say(&format!("{head}{{4294967295}}\r\n{text}")).await?,
                ImapFault::HalfLiteral => {
                    self.say(&format!("{head}{{{}}}\r\n{}", text.len() + 100, text)).await?;
                    return None;
                }
                ImapFault::ManyLiterals => {
                    let literals = " X {0}\r\n".repeat(1_000);
                    self.say(&format!("* 1 FETCH (UID 1{literals})\r\n")).await?;
                }
                ImapFault::Brackets => self.say(&format!("* 1 FETCH {}\r\n", "(".repeat(500_000))).await?,
                _ => self.say(&format!("{head}{{{}}}\r\n{text})\r\n", text.len())).await?,
            }
        }
        self.done(tag, "OK done").await
    }

    /// Reports new messages.
    async fn report(&mut self) -> Served {
        let count = lock(&self.shared.mailbox).messages.len();
        if count != self.known {
            self.known = count;
            self.say(&format!("* {count} EXISTS\r\n")).await?;
        }
        Some(())
    }

    async fn idle(&mut self, tag: &str) -> Served {
        let mut delivered = self.shared.delivered.subscribe();
        delivered.mark_unchanged();
        self.say("+ idling\r\n").await?;
        self.report().await?;
        loop {
            tokio::select! {
                line = self.line() => {
                    line.filter(|line| line == "DONE")?;
                    return self.done(tag, "OK done").await;
                }
                _ = delivered.changed() => {
                    self.report().await?;
                }
            }
        }
    }
}

/// Whether a message matches: numbers, and texts that must be in it anywhere.
fn matches(criteria: &str, uid: u32, last: u32, message: &str) -> bool {
    if let Some(set) = criteria.strip_prefix("UID ") {
        return match set.strip_suffix(":*") {
            Some(first) => uid >= first.parse().expect("a number") || uid == last,
            None => set == "*" && uid == last,
        };
    }
    let texts = criteria.split('"').skip(1).step_by(2);
    texts.into_iter().all(|text| message.to_lowercase().contains(&text.to_lowercase()))
}
