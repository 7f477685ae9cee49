//! One session on an IMAP server. Folders are opened with EXAMINE and messages read with PEEK, so nothing changes there.

use std::fmt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret;
use tokio::time::timeout;

use super::command::Command;
use super::fetched::{FetchedParts, size, summary, uid_of};
use super::folder_name::modified_utf7;
use super::query::MailQuery;
use super::response::{
    Fragment, ImapResponse, ImapStatus, ResponseValue, is_free_text, literal_length, malformed, number,
    read_response,
};
use crate::account::{MailAccount, MailSecurity};
use crate::connection::{MailConnection, within};
use crate::error::MailError;
use crate::message::MailSummary;

/// A search in a folder with a hundred thousand messages answers with less.
const MAX_LINE: usize = 2 << 20;

/// The most bytes of a message that are read.
const MAX_MESSAGE: usize = 24 << 20;

/// The most bytes of the header of a message in a list.
const MAX_HEADER: usize = 64 << 10;

/// The most bytes of one response: a message and the words around it.
const MAX_RESPONSE: usize = MAX_MESSAGE + MAX_LINE;

/// The most responses to one command.
const MAX_RESPONSES: usize = 20_000;

/// The most messages that a search finds.
const MAX_FOUND: usize = 1_000_000;

/// The most literals of one response. Hob asks for one of each message.
const MAX_LITERALS: usize = 100;

/// The most messages whose headers are asked for at once.
const BATCH: usize = 50;

/// How long a server may take to say goodbye.
const LOGOUT: Duration = Duration::from_secs(2);

/// A folder as it was when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FolderState {
    /// The numbers of messages are valid as long as this is the same.
    pub uid_validity: u32,
    /// The number of messages.
    pub exists: u32,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleEnd {
    /// The folder has changed.
    Changed,
    /// Nothing happened for as long as was asked.
    TimedOut,
}

/// A session. Dropping it closes the connection.
pub struct ImapSession {
    connection: MailConnection,
    capabilities: Vec<String>,
    commands: u32,
    timeout: Duration,
    /// Whether the server has reported a number of messages since the last look.
    has_news: bool,
}

impl fmt::Debug for ImapSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ImapSession")
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

/// What came before the end of a command.
#[derive(Default)]
struct Answer {
    exists: Option<u32>,
    uid_validity: Option<u32>,
    found: Vec<u32>,
    messages: Vec<FetchedParts>,
}

/// Connects, logs in and opens a folder for reading.
pub async fn check_imap(account: &MailAccount, folder: &str) -> Result<(), MailError> {
    let mut session = ImapSession::open(account).await?;
    session.examine(folder).await?;
    session.close().await;
    Ok(())
}

impl ImapSession {
    /// Connects and logs in.
    pub async fn open(account: &MailAccount) -> Result<Self, MailError> {
        let connection = MailConnection::open(account).await?;
        let mut session = ImapSession {
            connection,
            capabilities: Vec::new(),
            commands: 0,
            timeout: account.timeout,
            has_news: false,
        };
        within(account.timeout, session.greeting()).await?;
        if account.security == MailSecurity::StartTls {
            session = session.start_tls(account).await?;
        }
        if session.capabilities.is_empty() {
            session.run("CAPABILITY", Command::new("CAPABILITY")).await?;
        }
        session.log_in(account).await?;
        // The server may offer more after the login.
        session.capabilities.clear();
        session.run("CAPABILITY", Command::new("CAPABILITY")).await?;
        Ok(session)
    }

    async fn greeting(&mut self) -> Result<(), MailError> {
        match self.response().await? {
            ImapResponse::Status { status: ImapStatus::Ok, code, .. } => {
                self.note_capabilities(code.as_deref());
                Ok(())
            }
            ImapResponse::Status { status: ImapStatus::Bye, text, .. } => {
                Err(MailError::Refused { command: "connection", reply: text })
            }
            // PREAUTH too: Hob does not know whose mailbox that is.
            _ => Err(malformed("a greeting that is not one")),
        }
    }

    async fn start_tls(mut self, account: &MailAccount) -> Result<Self, MailError> {
        if self.capabilities.is_empty() {
            self.run("CAPABILITY", Command::new("CAPABILITY")).await?;
        }
        if !self.has("STARTTLS") {
            return Err(MailError::NoStartTls { host: account.host.clone() });
        }
        self.run("STARTTLS", Command::new("STARTTLS")).await?;
        let connection = self.connection.start_tls(account).await?;
        // What was offered before TLS may have been changed on the way.
        Ok(ImapSession { connection, capabilities: Vec::new(), ..self })
    }

    async fn log_in(&mut self, account: &MailAccount) -> Result<(), MailError> {
        let (user, password) = (account.user.as_str(), account.password.expose_secret());
        if user.contains('\0') || password.contains('\0') {
            return Err(MailError::Credentials);
        }
        let login = match (self.has("AUTH=PLAIN"), self.has("SASL-IR")) {
            (true, true) => Command::new("AUTHENTICATE PLAIN").words(&plain_token(user, password)),
            _ if self.has("LOGINDISABLED") => return Err(MailError::NoLogin),
            _ => Command::new("LOGIN").text(user).text(password),
        };
        match self.run("LOGIN", login).await {
            Err(MailError::Refused { reply, .. }) => Err(MailError::Login { reply }),
            other => other.map(|_| ()),
        }
    }

    /// Opens a folder for reading.
    pub async fn examine(&mut self, folder: &str) -> Result<FolderState, MailError> {
        let answer = self.run("EXAMINE", Command::new("EXAMINE").text(&modified_utf7(folder))).await?;
        self.has_news = false;
        match (answer.uid_validity, answer.exists) {
            (Some(uid_validity), Some(exists)) => Ok(FolderState { uid_validity, exists }),
            _ => Err(malformed("a folder without UIDVALIDITY or without a number of messages")),
        }
    }

    /// The messages of the open folder that match, oldest first.
    pub async fn search(&mut self, query: &MailQuery) -> Result<Vec<u32>, MailError> {
        let mut found = self.run("UID SEARCH", query.command()).await?.found;
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The messages of the open folder with greater numbers than `uid`, oldest first.
    pub async fn after(&mut self, uid: u32) -> Result<Vec<u32>, MailError> {
        // What is reported from now on may not be found.
        self.has_news = false;
        let Some(first) = uid.checked_add(1) else { return Ok(Vec::new()) };
        let command = Command::new("UID SEARCH").words(&format!("UID {first}:*"));
        let mut found = self.run("UID SEARCH", command).await?.found;
        // `*` is the last message, so the last one is found even if its number is lower.
        found.retain(|found| *found >= first);
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }

    /// The last message of the open folder; `None` if it is empty.
    pub async fn last(&mut self) -> Result<Option<u32>, MailError> {
        let answer = self.run("UID SEARCH", Command::new("UID SEARCH").words("UID *")).await?;
        Ok(answer.found.into_iter().max())
    }

    /// What a list shows of these messages, in the order of `uids`. Messages that are gone are skipped.
    pub async fn summaries(&mut self, uids: &[u32]) -> Result<Vec<MailSummary>, MailError> {
        let mut summaries = Vec::new();
        for batch in uids.chunks(BATCH) {
            let set = batch.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let items = format!("(UID FLAGS INTERNALDATE BODY.PEEK[HEADER]<0.{MAX_HEADER}>)");
            let answer = self.run("UID FETCH", Command::new("UID FETCH").words(&set).words(&items)).await?;
            let mut found: Vec<MailSummary> =
                answer.messages.iter().filter_map(|parts| summary(parts)).collect();
            for uid in batch {
                if let Some(place) = found.iter().position(|summary| summary.uid == *uid) {
                    summaries.push(found.swap_remove(place));
                }
            }
        }
        Ok(summaries)
    }

    /// The bytes of a message, at most so many; `None` if it is gone.
    pub async fn message(&mut self, uid: u32, most: usize) -> Result<Option<Vec<u8>>, MailError> {
        let items = format!("(UID BODY.PEEK[]<0.{}>)", most.min(MAX_MESSAGE));
        let command = Command::new("UID FETCH").words(&uid.to_string()).words(&items);
        let answer = self.run("UID FETCH", command).await?;
        let of_it = answer.messages.into_iter().find(|parts| uid_of(parts) == Some(uid));
        let bytes = of_it.into_iter().flatten().find_map(|(name, value)| match value {
            ResponseValue::Text(bytes) if name.starts_with("BODY[]") => Some(bytes),
            _ => None,
        });
        Ok(bytes)
    }

    /// Whether the server reports changes by itself.
    pub fn has_idle(&self) -> bool {
        self.has("IDLE")
    }

    /// Waits until the open folder changes, or for `longest`. Ends at once if it has changed since [`Self::after`].
    pub async fn idle(&mut self, longest: Duration) -> Result<IdleEnd, MailError> {
        if self.has_news {
            return Ok(IdleEnd::Changed);
        }
        let tag = self.next_tag();
        self.connection.write(format!("{tag} IDLE\r\n").as_bytes()).await?;
        let limit = self.timeout;
        let mut end = within(limit, self.idling(&tag)).await?;
        if end.is_none() {
            end = match timeout(longest, self.change()).await {
                Ok(changed) => Some(changed.map(|()| IdleEnd::Changed)?),
                Err(_) => Some(IdleEnd::TimedOut),
            };
        }
        self.connection.write(b"DONE\r\n").await?;
        within(limit, self.answer("IDLE", &tag)).await?;
        Ok(end.unwrap_or(IdleEnd::TimedOut))
    }

    /// Waits for the server to begin the wait. Returns whether the folder changed before.
    async fn idling(&mut self, tag: &str) -> Result<Option<IdleEnd>, MailError> {
        let mut changed = None;
        loop {
            match self.response().await? {
                ImapResponse::Continue => return Ok(changed),
                ImapResponse::Exists(_) => changed = Some(IdleEnd::Changed),
                ImapResponse::Done { tag: done, text, .. } if done == tag => {
                    return Err(MailError::Refused { command: "IDLE", reply: text });
                }
                response => self.note(response)?,
            }
        }
    }

    /// Reads until the number of messages changes.
    async fn change(&mut self) -> Result<(), MailError> {
        loop {
            match self.response().await? {
                ImapResponse::Exists(_) => return Ok(()),
                response => self.note(response)?,
            }
        }
    }

    /// Asks the server whether anything is new, where it does not report that by itself.
    pub async fn noop(&mut self) -> Result<(), MailError> {
        self.run("NOOP", Command::new("NOOP")).await.map(|_| ())
    }

    /// Says goodbye. A server that does not answer is left alone.
    pub async fn close(mut self) {
        let goodbye = self.run("LOGOUT", Command::new("LOGOUT"));
        let _ = timeout(LOGOUT, goodbye).await;
    }

    fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|offered| offered == capability)
    }

    fn next_tag(&mut self) -> String {
        self.commands = self.commands.wrapping_add(1);
        format!("H{}", self.commands)
    }

    /// Sends a command, and reads to its end.
    async fn run(&mut self, name: &'static str, command: Command) -> Result<Answer, MailError> {
        let limit = self.timeout;
        let tag = self.next_tag();
        within(limit, async {
            let mut pieces = command.pieces(&tag).into_iter().peekable();
            while let Some(piece) = pieces.next() {
                self.connection.write(&piece).await?;
                if pieces.peek().is_some() {
                    self.wait_for_continue(name, &tag).await?;
                }
            }
            self.answer(name, &tag).await
        })
        .await
    }

    async fn wait_for_continue(&mut self, name: &'static str, tag: &str) -> Result<(), MailError> {
        for _ in 0..MAX_RESPONSES {
            match self.response().await? {
                ImapResponse::Continue => return Ok(()),
                ImapResponse::Done { tag: done, text, .. } if done == tag => {
                    return Err(MailError::Refused { command: name, reply: text });
                }
                response => self.note(response)?,
            }
        }
        Err(malformed("too many responses"))
    }

    /// Reads until the command ends.
    async fn answer(&mut self, name: &'static str, tag: &str) -> Result<Answer, MailError> {
        let mut answer = Answer::default();
        let mut bytes = 0;
        for _ in 0..MAX_RESPONSES {
            match self.response().await? {
                ImapResponse::Done { tag: done, status, text } if done == tag => {
                    return match status {
                        ImapStatus::Ok => Ok(answer),
                        _ => Err(MailError::Refused { command: name, reply: text }),
                    };
                }
                ImapResponse::Exists(count) => answer.exists = Some(count),
                ImapResponse::Search(found) => {
                    answer.found.extend(found);
                    if answer.found.len() > MAX_FOUND {
                        return Err(malformed("more messages than a folder has"));
                    }
                }
                ImapResponse::Fetch(parts) => {
                    bytes += parts.iter().map(|(name, value)| name.len() + size(value)).sum::<usize>();
                    if bytes > MAX_RESPONSE {
                        return Err(MailError::TooLong { what: "an answer", most: MAX_RESPONSE });
                    }
                    answer.messages.push(parts);
                }
                ImapResponse::Status { status: ImapStatus::Ok, code: Some(code), .. } => {
                    self.note_capabilities(Some(&code));
                    if let Some(value) = code.strip_prefix("UIDVALIDITY ") {
                        answer.uid_validity = number(value.as_bytes());
                    }
                }
                // A goodbye to LOGOUT is followed by the end of the command.
                ImapResponse::Status { status: ImapStatus::Bye, .. } if name == "LOGOUT" => {}
                response => self.note(response)?,
            }
        }
        Err(malformed("too many responses"))
    }

    /// A response that belongs to no command.
    fn note(&mut self, response: ImapResponse) -> Result<(), MailError> {
        match response {
            ImapResponse::Capabilities(words) => self.capabilities = words,
            ImapResponse::Status { status: ImapStatus::Bye, .. } => return Err(MailError::Closed),
            _ => {}
        }
        Ok(())
    }

    fn note_capabilities(&mut self, code: Option<&str>) {
        if let Some(words) = code.and_then(|code| code.strip_prefix("CAPABILITY ")) {
            self.capabilities = words.split(' ').map(str::to_ascii_uppercase).collect();
        }
    }

    async fn response(&mut self) -> Result<ImapResponse, MailError> {
        let mut fragments = Vec::new();
        let mut bytes = 0;
        loop {
            // Each literal is a fragment, and the line after it another one.
            if fragments.len() > 2 * MAX_LITERALS {
                return Err(malformed("too many literals"));
            }
            let line = self.connection.read_line(MAX_LINE).await?;
            bytes += line.len();
            let literal = match fragments.is_empty() && is_free_text(&line) {
                true => None,
                false => literal_length(&line),
            };
            fragments.push(Fragment::Line(line));
            let Some(length) = literal else { break };
            bytes = bytes.saturating_add(length);
            if bytes > MAX_RESPONSE {
                return Err(MailError::TooLong { what: "a response", most: MAX_RESPONSE });
            }
            fragments.push(Fragment::Literal(self.connection.read_bytes(length).await?));
        }
        let response = read_response(&fragments)?;
        self.has_news |= matches!(response, ImapResponse::Exists(_));
        Ok(response)
    }
}

/// The token of PLAIN (RFC 4616).
fn plain_token(user: &str, password: &str) -> String {
    STANDARD.encode(format!("\0{user}\0{password}"))
}
