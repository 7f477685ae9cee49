//! Sends messages over SMTP (RFC 5321), with TLS and a login.

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret;

use crate::account::{MailAccount, MailSecurity};
use crate::compose::OutgoingMail;
use crate::connection::{MailConnection, within};
use crate::error::{MailError, MailSendError, shown_reply};

/// RFC 5321 allows 512 bytes; servers send more.
const MAX_LINE: usize = 8 << 10;

/// The most lines of one reply.
const MAX_REPLY_LINES: usize = 100;

/// How Hob introduces itself. A server does not need the real name of this machine.
const OWN_NAME: &str = "localhost";

/// A reply of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SmtpReply {
    code: u16,
    lines: Vec<String>,
}

impl SmtpReply {
    fn is_positive(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// Whether another attempt may succeed.
    fn is_temporary(&self) -> bool {
        (400..500).contains(&self.code)
    }

    fn shown(&self) -> String {
        format!("{} {}", self.code, self.lines.last().map(String::as_str).unwrap_or_default())
    }

    /// The words after a keyword of EHLO, such as those after `AUTH`.
    fn offers(&self, keyword: &str) -> Option<Vec<String>> {
        self.lines.iter().skip(1).find_map(|line| {
            let mut words = line.split([' ', '=']).map(str::to_ascii_uppercase);
            (words.next()? == keyword).then(|| words.collect())
        })
    }
}

/// Sends a message. Success means that the server has it.
pub async fn send_mail(account: &MailAccount, mail: &OutgoingMail) -> Result<(), MailSendError> {
    let message = match mail.compose(SystemTime::now()) {
        Ok(message) => message,
        Err(error) => return Err(MailSendError::Refused(error)),
    };
    let mut session = SmtpSession::open(account).await.map_err(MailSendError::NotSent)?;
    let sent = session.send(account, mail, &message).await;
    session.quit().await;
    sent
}

/// Connects and logs in, without sending anything.
pub async fn check_smtp(account: &MailAccount) -> Result<(), MailError> {
    SmtpSession::open(account).await?.quit().await;
    Ok(())
}

struct SmtpSession {
    connection: MailConnection,
    limit: Duration,
}

impl SmtpSession {
    async fn open(account: &MailAccount) -> Result<Self, MailError> {
        let connection = MailConnection::open(account).await?;
        let mut session = SmtpSession { connection, limit: account.timeout };
        let greeting = within(session.limit, session.reply()).await?;
        accepted("connection", greeting)?;
        let mut offer = session.run("EHLO", &format!("EHLO {OWN_NAME}")).await?;
        if account.security == MailSecurity::StartTls {
            if offer.offers("STARTTLS").is_none() {
                return Err(MailError::NoStartTls { host: account.host.clone() });
            }
            session.run("STARTTLS", "STARTTLS").await?;
            session.connection = session.connection.start_tls(account).await?;
            // What was offered before TLS may have been changed on the way.
            offer = session.run("EHLO", &format!("EHLO {OWN_NAME}")).await?;
        }
        if !account.user.is_empty() {
            session.log_in(account, &offer).await?;
        }
        Ok(session)
    }

    async fn log_in(&mut self, account: &MailAccount, offer: &SmtpReply) -> Result<(), MailError> {
        let (user, password) = (account.user.as_str(), account.password.expose_secret());
        if user.contains('\0') || password.contains('\0') {
            return Err(MailError::Credentials);
        }
        let ways = offer.offers("AUTH").unwrap_or_default();
        let offers = |way: &str| ways.iter().any(|offered| offered == way);
        let done = if offers("PLAIN") {
            let token = STANDARD.encode(format!("\0{user}\0{password}"));
            self.command(&format!("AUTH PLAIN {token}")).await?
        } else if offers("LOGIN") {
            let mut reply = self.command("AUTH LOGIN").await?;
            for secret in [user, password] {
                if reply.code == 334 {
                    reply = self.command(&STANDARD.encode(secret)).await?;
                }
            }
            reply
        } else {
            return Err(MailError::NoLogin);
        };
        if done.is_positive() { Ok(()) } else { Err(MailError::Login { reply: done.shown() }) }
    }

    async fn send(
        &mut self,
        account: &MailAccount,
        mail: &OutgoingMail,
        message: &[u8],
    ) -> Result<(), MailSendError> {
        let envelope = [
            ("MAIL FROM", format!("MAIL FROM:<{}>", mail.from)),
            ("RCPT TO", format!("RCPT TO:<{}>", mail.to)),
        ];
        for (name, line) in envelope {
            let reply = self.command(&line).await.map_err(MailSendError::NotSent)?;
            judged(name, reply, (200, 299))?;
        }
        let reply = self.command("DATA").await.map_err(MailSendError::NotSent)?;
        judged("DATA", reply, (354, 354))?;
        let data = dot_stuffed(message);
        let sending = async {
            self.connection.write(&data).await?;
            self.reply().await
        };
        // From here on, the server may have the message even if its answer does not arrive.
        let reply = within(account.timeout, sending).await.map_err(MailSendError::Unknown)?;
        judged("the message", reply, (200, 299))
    }

    async fn quit(mut self) {
        // The server is not asked twice, and its answer makes no difference.
        let _ = within(Duration::from_secs(2), self.connection.write(b"QUIT\r\n")).await;
    }

    /// Sends a command that must succeed.
    async fn run(&mut self, name: &'static str, line: &str) -> Result<SmtpReply, MailError> {
        accepted(name, self.command(line).await?)
    }

    async fn command(&mut self, line: &str) -> Result<SmtpReply, MailError> {
        let limit = self.limit;
        within(limit, async {
            self.connection.write(format!("{line}\r\n").as_bytes()).await?;
            self.reply().await
        })
        .await
    }

    async fn reply(&mut self) -> Result<SmtpReply, MailError> {
        let mut lines = Vec::new();
        for _ in 0..MAX_REPLY_LINES {
            let line = self.connection.read_line(MAX_LINE).await?;
            let code = line.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit));
            let code = code.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
            let Some(code) = code else { return Err(malformed("a reply without a code")) };
            lines.push(shown_reply(line.get(4..).unwrap_or_default()));
            match line.get(3) {
                Some(b'-') => {}
                Some(b' ') | None => return Ok(SmtpReply { code, lines }),
                Some(_) => return Err(malformed("a reply with a wrong separator")),
            }
        }
        Err(malformed("a reply with too many lines"))
    }
}

fn malformed(reason: &'static str) -> MailError {
    MailError::Malformed { protocol: "SMTP", reason }
}

fn accepted(command: &'static str, reply: SmtpReply) -> Result<SmtpReply, MailError> {
    match reply.is_positive() {
        true => Ok(reply),
        false => Err(MailError::Refused { command, reply: reply.shown() }),
    }
}

/// Whether a reply has one of the codes that are expected.
fn judged(command: &'static str, reply: SmtpReply, (least, most): (u16, u16)) -> Result<(), MailSendError> {
    if (least..=most).contains(&reply.code) {
        return Ok(());
    }
    let error = MailError::Refused { command, reply: reply.shown() };
    Err(if reply.is_temporary() { MailSendError::NotSent(error) } else { MailSendError::Refused(error) })
}

/// The message with line ends of the protocol, a dot doubled at the beginning of a line, and the end of the data.
fn dot_stuffed(message: &[u8]) -> Vec<u8> {
    let mut data = Vec::with_capacity(message.len() + 64);
    let message = message.strip_suffix(b"\n").unwrap_or(message);
    for line in message.split(|byte| *byte == b'\n') {
        // A lone carriage return is a line end to some servers and not to others, so none is sent.
        let mut letters = line.iter().copied().filter(|byte| *byte != b'\r').peekable();
        if letters.peek() == Some(&b'.') {
            data.push(b'.');
        }
        data.extend(letters);
        data.extend_from_slice(b"\r\n");
    }
    data.extend_from_slice(b".\r\n");
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_message_ends_it() {
        let cases: [(&[u8], &[u8]); 5] = [
            (b"a\r\n.\r\nb\r\n", b"a\r\n..\r\nb\r\n.\r\n"),
            (b"a\n.\nb", b"a\r\n..\r\nb\r\n.\r\n"),
            (b".a", b"..a\r\n.\r\n"),
            (b"a\r.\rb\n", b"a.b\r\n.\r\n"),
            (b"a\n\r.\r\nb", b"a\r\n..\r\nb\r\n.\r\n"),
        ];
        for (message, expected) in cases {
            let data = dot_stuffed(message);
            let shown = String::from_utf8_lossy(&data).into_owned();
            assert_eq!(data, expected, "{shown:?}");
        }
    }

    #[test]
    fn what_a_server_offers_is_read() {
        let lines = ["mail.example.org", "STARTTLS", "AUTH=PLAIN LOGIN", "SIZE 1000"];
        let reply = SmtpReply { code: 250, lines: lines.map(str::to_owned).to_vec() };
        assert_eq!(reply.offers("STARTTLS"), Some(Vec::new()));
        assert_eq!(reply.offers("AUTH"), Some(vec!["PLAIN".to_owned(), "LOGIN".to_owned()]));
        assert_eq!(reply.offers("8BITMIME"), None);
    }
}
