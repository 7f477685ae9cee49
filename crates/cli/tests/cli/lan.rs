//! `hob serve --lan`.

use serde_json::{Value, json};

use crate::fakes;
use crate::home::{Home, engines_config};
use crate::http::chat_with;
use crate::running::Running;
use crate::terminal::Terminal;

const QUESTION: &str = r#"{"model": "default", "messages": [{"role": "user", "content": "Capital?"}]}"#;

/// A home with a name for the machine, because the test machine may have no network.
fn home(ollama: &str) -> Home {
    let named = "[server]\nallowed_hosts = [\"hob.lan\"]\n";
    Home::with_config(&engines_config(&[("ollama", ollama)]).replacen("[server]\n", named, 1))
}

/// The secret that a start prints, after the server has ended.
async fn printed_key(home: &Home) -> String {
    let server = Running::start(home, &["--lan"]).await;
    assert!(server.summary[3].starts_with("URL     http://localhost:"), "{}", server.summary[3]);
    assert!(server.summary[3].ends_with("  on this machine"), "{}", server.summary[3]);
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let network = format!("        http://hob.lan:{port}");
    let ran = server.terminate().await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let last = ran.stdout.lines().rfind(|line| line.starts_with("        http://"));
    assert!(last.is_some_and(|last| last.starts_with(&network)), "{}", ran.stdout);
    assert!(ran.stderr.contains("connections are not encrypted"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("no API key is set"), "{}", ran.stderr);
    let key = ran.stdout.lines().find_map(|line| line.strip_prefix("Key     ")).expect("a key");
    assert!(!ran.stderr.contains(key), "{}", ran.stderr);
    key.to_owned()
}

/// The status of a chat with this key.
async fn status(server: &Running, key: &str) -> u16 {
    let header = format!("authorization: Bearer {key}\r\nconnection: close");
    let answer = chat_with(server.address(), &header, QUESTION).await.all().await;
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[tokio::test]
async fn each_start_for_the_network_replaces_the_key() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url());
    let first = printed_key(&home).await;
    let second = printed_key(&home).await;
    assert_ne!(first, second);
    let server = Running::start(&home, &[]).await;
    assert_eq!((status(&server, &first).await, status(&server, &second).await), (401, 200));

    let shown = home.run(&["key", "list", "--json"]).await;
    let keys: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    assert_eq!(keys.as_array().map(Vec::len), Some(1), "{keys}");
    assert_eq!((&keys[0]["name"], &keys[0]["role"]), (&"lan".into(), &"member".into()));

    // A name is not used twice, so a revoked key gets a successor.
    assert_eq!(home.run(&["key", "revoke", "lan"]).await.code, Some(0));
    let third = printed_key(&home).await;
    assert_eq!(home.run(&["key", "show", "lan-2"]).await.code, Some(0));
    assert!(third.starts_with("hob_"), "{third}");
}

#[tokio::test]
async fn a_key_of_an_owner_is_not_the_key_for_the_network() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url());
    let owners = home.run(&["key", "create", "lan", "--role", "owner"]).await;
    assert_eq!(owners.code, Some(0), "{}", owners.stderr);
    assert_ne!(printed_key(&home).await, owners.stdout.trim());
    let shown = home.run(&["key", "list", "--json"]).await;
    let keys: Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let roles = json!([[keys[0]["name"], keys[0]["role"]], [keys[1]["name"], keys[1]["role"]]]);
    assert_eq!(roles, json!([["lan", "owner"], ["lan-2", "member"]]));
}

#[tokio::test]
async fn a_terminal_shows_a_code_to_scan() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url());
    let mut terminal = Terminal::start(&home, &["serve", "--port", "0", "--lan"]);
    terminal.sees("Scan this with a phone to chat:").await;
    terminal.sees("▄▄▄▄▄").await;
    assert_eq!(terminal.close().await, Some(0));
}

#[tokio::test]
async fn one_address_and_all_addresses_exclude_each_other() {
    let ran = Home::empty().run(&["serve", "--lan", "--host", "127.0.0.1"]).await;
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}
