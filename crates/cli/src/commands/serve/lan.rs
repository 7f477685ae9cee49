//! `hob serve --lan`: prints the addresses of this machine, a new key, and a QR code that opens the chat page with the key.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use hob_config::ServerConfig;
use hob_keys::{AuditActor, CreatedKey, KeyError, KeyName, KeyPatch, KeyRole, KeyService, KeyStatus, NewKey};
use hob_net::network_addresses;
use jiff::Timestamp;

use crate::output;
use crate::output::qr;
use crate::output::table::print_facts;
use crate::running_server::UrlScheme;

/// The name of the key. If it cannot be used, names with a number follow: a name is not used twice.
const KEY_NAME: &str = "lan";

/// Names that are tried.
const MOST_NAMES: u32 = 100;

/// Makes a new secret, so that earlier ones are no longer valid, and prints how to use it.
pub async fn print_access(keys: &Arc<KeyService>, server: &ServerConfig, port: u16) -> Result<()> {
    let urls = urls(server, network_addresses().iter().map(ToString::to_string), port);
    let created = fresh_key(keys).await?;
    let secret = created.secret.expose();
    let mut facts: Vec<(&str, String)> = urls.iter().map(|url| ("Network", url.clone())).collect();
    facts.push(("Key", secret.to_owned()));
    let shown = print_facts(&facts).and_then(|()| match urls.first() {
        Some(url) if io::stdout().is_terminal() => print_code(&chat_link(url, secret)),
        _ => Ok(()),
    });
    // A closed stdout does not stop the server.
    if let Err(error) = shown {
        tracing::info!(%error, "cannot print how other machines reach the server");
    }
    output::note(format_args!(
        "The key '{}' is valid until the next 'hob serve --lan', or until 'hob key revoke {0}'. It has the rights of a member.",
        created.key.name
    ));
    if urls.is_empty() {
        output::warning("this machine has no address that others can reach. Is it connected to a network?");
    }
    if !server.tls.is_on() {
        output::warning(
            "connections are not encrypted: anyone who records your network can read them. Set [server.tls] for HTTPS.",
        );
    }
    Ok(())
}

/// The URLs for other machines. With HTTPS the names come first, because the certificate is for a name. Without it the addresses do:
/// a name works only where the network knows it.
fn urls(server: &ServerConfig, addresses: impl Iterator<Item = String>, port: u16) -> Vec<String> {
    let names = server.allowed_hosts.iter().cloned();
    let hosts: Vec<String> = match server.tls.is_on() {
        true => names.chain(addresses).collect(),
        false => addresses.chain(names).collect(),
    };
    hosts.iter().map(|host| UrlScheme::of(server).url(host, port)).collect()
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

/// The key with a new secret. The old secret is not valid any more.
async fn fresh_key(keys: &Arc<KeyService>) -> Result<CreatedKey> {
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

    #[test]
    fn names_come_first_only_with_https_and_the_key_is_behind_the_hash() {
        let mut server = ServerConfig { allowed_hosts: vec!["hob.lan".into()], ..ServerConfig::default() };
        let addresses = || ["192.168.1.7".to_owned()].into_iter();
        assert_eq!(urls(&server, addresses(), 8000), ["http://192.168.1.7:8000", "http://hob.lan:8000"]);
        server.tls.cert = Some("/etc/hob/cert.pem".into());
        let urls = urls(&server, addresses(), 8443);
        assert_eq!(urls, ["https://hob.lan:8443", "https://192.168.1.7:8443"]);
        assert_eq!(chat_link(&urls[0], "hob_a_b"), "https://hob.lan:8443/#key=hob_a_b");
    }
}
