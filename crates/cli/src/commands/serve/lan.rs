//! How other machines get to the server: the addresses in the summary and, for `hob serve --lan`, a new key and a QR code that opens the
//! chat page with the key.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use hob_config::ServerConfig;
use hob_keys::{AuditActor, CreatedKey, KeyError, KeyName, KeyPatch, KeyRole, KeyService, KeyStatus, NewKey};
use jiff::Timestamp;

use crate::output;
use crate::output::qr;
use crate::server_urls::{ServerUrl, UrlKind};

/// The name of the key. If it cannot be used, names with a number follow: a name is not used twice.
const KEY_NAME: &str = "lan";

/// Names that are tried.
const MOST_NAMES: u32 = 100;

/// The lines of the summary that say where the server can be reached.
pub fn url_facts(urls: &[ServerUrl]) -> Vec<(&'static str, String)> {
    if let [only] = urls {
        return vec![("URL", only.url.clone())];
    }
    let width = urls.iter().map(|found| found.url.len()).max().unwrap_or(0);
    let line = |(index, found): (usize, &ServerUrl)| {
        let words = match found.kind {
            UrlKind::ThisMachine => "on this machine",
            UrlKind::MachineName => "on your network, by the name of this machine",
            UrlKind::Address => "on your network",
            UrlKind::ConfiguredName => "where your network knows this name",
        };
        (if index == 0 { "URL" } else { "" }, format!("{:width$}  {words}", found.url))
    };
    urls.iter().enumerate().map(line).collect()
}

/// The line of the summary for people with a phone: the key, or how to get one. `None` if only this machine reaches the server.
pub fn key_fact(urls: &[ServerUrl], key: Option<&CreatedKey>) -> Option<(&'static str, String)> {
    match key {
        Some(created) => Some(("Key", created.secret.expose().to_owned())),
        None if urls.iter().all(|found| found.kind == UrlKind::ThisMachine) => None,
        None => Some(("Phone", "'hob serve --lan' prints a key, and a QR code to scan".to_owned())),
    }
}

/// Prints the QR code, and what to know about the key.
pub fn print_access(created: &CreatedKey, server: &ServerConfig, urls: &[ServerUrl]) {
    let url = url_for_phone(server, urls);
    if let Some(url) = url
        && io::stdout().is_terminal()
        // A closed stdout does not stop the server.
        && let Err(error) = print_code(&chat_link(url, created.secret.expose()))
    {
        tracing::info!(%error, "cannot print the QR code");
    }
    output::note(format_args!(
        "The key '{}' is valid until the next 'hob serve --lan', or until 'hob key revoke {0}'. It has the rights of a member.",
        created.key.name
    ));
    if url.is_none() {
        output::warning("this machine has no address that others can reach. Is it connected to a network?");
    }
    if !server.tls.is_on() {
        output::warning(
            "connections are not encrypted: anyone who records your network can read them. Set [server.tls] for HTTPS.",
        );
    }
}

/// The URL that works on most phones. With HTTPS it is a name, because the certificate is for a name. Without it, it is an address: a name
/// works only where the network knows it, and not every phone knows names that end with `.local`.
fn url_for_phone<'a>(server: &ServerConfig, urls: &'a [ServerUrl]) -> Option<&'a str> {
    let order = match server.tls.is_on() {
        true => [UrlKind::ConfiguredName, UrlKind::Address, UrlKind::MachineName],
        false => [UrlKind::Address, UrlKind::ConfiguredName, UrlKind::MachineName],
    };
    let first = |kind| urls.iter().find(|found| found.kind == kind);
    order.into_iter().find_map(first).map(|found| found.url.as_str())
}

/// The chat page with the key. Browsers do not send the part after `#`, so no log of a server or proxy has it.
fn chat_link(url: &str, secret: &str) -> String {
    format!("{url}/#key={secret}")
}

fn print_code(link: &str) -> io::Result<()> {
    match qr::render(link) {
        Ok(code) => output::line(format_args!("\nScan this with a phone to chat:\n\n{code}")),
        Err(error) => {
            output::warning(format_args!("cannot draw the QR code: {error}"));
            Ok(())
        }
    }
}

/// The key with a new secret, so that earlier ones are no longer valid.
pub async fn fresh_key(keys: &Arc<KeyService>) -> Result<CreatedKey> {
    for number in 1..=MOST_NAMES {
        let text = if number == 1 { KEY_NAME.to_owned() } else { format!("{KEY_NAME}-{number}") };
        let name = KeyName::parse(&text)?;
        match keys.show(&name).await {
            // A code that anyone in the room can scan must not give the rights of an owner.
            Ok((key, _)) if key.role == KeyRole::Owner || key.is_expired(Timestamp::now()) => {}
            Ok((key, _)) => match key.status {
                KeyStatus::Active => {
                    return Ok(keys.rotate(&name, Duration::ZERO, AuditActor::terminal()).await?);
                }
                KeyStatus::Disabled => {
                    bail!("the key '{name}' is disabled. Run 'hob key enable {name}' first.")
                }
                KeyStatus::Revoked => {}
            },
            Err(KeyError::NoSuchKey { .. }) => {
                let new = NewKey { name, role: KeyRole::Member, rules: KeyPatch::default() };
                return Ok(keys.create(new, AuditActor::terminal()).await?);
            }
            Err(error) => return Err(error.into()),
        }
    }
    bail!(
        "the names '{KEY_NAME}' to '{KEY_NAME}-{MOST_NAMES}' are taken. Create a key with 'hob key create NAME'."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls() -> Vec<ServerUrl> {
        [
            ("http://localhost:8000", UrlKind::ThisMachine),
            ("http://ada.local:8000", UrlKind::MachineName),
            ("http://192.168.1.7:8000", UrlKind::Address),
            ("http://hob.lan:8000", UrlKind::ConfiguredName),
        ]
        .map(|(url, kind)| ServerUrl { url: url.into(), kind })
        .to_vec()
    }

    #[test]
    fn the_summary_says_where_each_address_works() {
        let lines: Vec<String> =
            url_facts(&urls()).iter().map(|(name, value)| format!("{name:6}  {value}")).collect();
        let expected = [
            "URL     http://localhost:8000    on this machine",
            "        http://ada.local:8000    on your network, by the name of this machine",
            "        http://192.168.1.7:8000  on your network",
            "        http://hob.lan:8000      where your network knows this name",
        ];
        assert_eq!(lines, expected);
        assert_eq!(url_facts(&urls()[..1]), [("URL", "http://localhost:8000".to_owned())]);
    }

    #[test]
    fn a_phone_is_mentioned_only_where_it_can_reach_the_server() {
        assert_eq!(key_fact(&urls()[..1], None), None);
        assert_eq!(key_fact(&urls(), None).map(|(name, _)| name), Some("Phone"));
    }

    #[test]
    fn a_phone_gets_an_address_or_with_https_a_name_and_the_key_is_behind_the_hash() {
        let mut server = ServerConfig::default();
        assert_eq!(url_for_phone(&server, &urls()), Some("http://192.168.1.7:8000"));
        assert_eq!(url_for_phone(&server, &urls()[..2]), Some("http://ada.local:8000"));
        assert_eq!(url_for_phone(&server, &urls()[..1]), None);
        server.tls.cert = Some("/etc/hob/cert.pem".into());
        assert_eq!(url_for_phone(&server, &urls()), Some("http://hob.lan:8000"));
        assert_eq!(chat_link("https://hob.lan:8443", "hob_a_b"), "https://hob.lan:8443/#key=hob_a_b");
    }
}
