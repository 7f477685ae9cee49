//! `hob channel`, and `hob serve` with a gateway.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hob_testkit::{Gateway, GatewayScript};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use crate::fakes;
use crate::home::{Home, Ran, engines_config};
use crate::http;
use crate::running::Running;
use crate::terminal::Terminal;

const WAIT_LIMIT: Duration = Duration::from_secs(240);

fn ran(stdout: &str) -> Ran {
    Ran { code: Some(0), stdout: stdout.to_owned(), stderr: String::new() }
}

#[tokio::test]
async fn channels_are_listed_from_the_configured_gateway_or_from_another() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let home = Home::with_config(&format!("[channel]\ngateway_url = \"{}\"\n", gateway.url()));
    assert_eq!(home.run(&["channel", "list"]).await, ran("telegram\nslack\n"));
    let listed = Home::empty().run(&["channel", "list", "--json", "--gateway", &gateway.url()]).await;
    assert_eq!(listed, ran("[\"telegram\",\"slack\"]\n"));
}

#[tokio::test]
async fn a_message_is_sent_and_confirmed() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let url = gateway.url();
    let home = Home::empty();
    let sent = home.run(&["channel", "send", "telegram", "Dinner is ready.", "--gateway", &url]).await;
    assert_eq!(sent, ran("sent to telegram\n"));
    let sent = home
        .run(&["channel", "send", "slack", "now", "--conversation", "t1", "--json", "--gateway", &url])
        .await;
    assert_eq!(sent, ran("{\"status\":\"sent\",\"target\":\"slack\"}\n"));
    let bodies: Vec<Value> = gateway
        .requests()
        .iter()
        .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
        .collect();
    assert_eq!(
        bodies,
        [
            json!({ "channel": "telegram", "content": "Dinner is ready.", "conversation_id": null, "metadata": {} }),
            json!({ "channel": "slack", "content": "now", "conversation_id": "t1", "metadata": {} }),
        ]
    );
}

#[tokio::test]
async fn status_reports_the_problem_and_exits_with_1() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let url = gateway.url();
    let home = Home::empty();
    let good = home.run(&["channel", "status", "--gateway", &url]).await;
    assert_eq!(
        good,
        ran(&format!(
            "Status    connected\nGateway   {url}\nChannels  telegram, slack\nTelegram  off (run 'hob channel add telegram')\n\
             E-mail    off (run 'hob channel add email')\nWhatsApp  off ([channel.whatsapp] enabled)\n"
        ))
    );
    drop(gateway);
    let bad = home.run(&["channel", "status", "--json", "--gateway", &url]).await;
    assert_eq!(bad.code, Some(1));
    let body: Value = serde_json::from_str(&bad.stdout).expect("JSON");
    assert_eq!((&body["status"], &body["connected"]), (&json!("error"), &json!(false)));
    let message = body["message"].as_str().expect("a reason");
    assert!(message.contains("refused"), "{message}");

    let unsent = home.run(&["channel", "send", "telegram", "hello", "--gateway", &url]).await;
    assert_eq!((unsent.code, unsent.stdout.as_str()), (Some(1), ""));
    assert!(unsent.stderr.contains("the message to 'telegram' was not delivered"), "{}", unsent.stderr);
    let configured = Home::with_config(&format!("[channel]\nenabled = true\ngateway_url = \"{url}\"\n"));
    let unsent = configured.run(&["channel", "send", "telegram", "hello"]).await;
    let advice = ". Check the gateway, and [channel] gateway_url and token\n";
    assert!(unsent.stderr.ends_with(advice), "{}", unsent.stderr);
    let wrong = home.run(&["channel", "list", "--gateway", "localhost:18789"]).await;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("'ws:' or 'wss:'"), "{}", wrong.stderr);
}

/// Runs in bubblewrap, where nothing listens at the default address of a gateway.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn without_a_configured_gateway_the_error_says_so() {
    let home = Home::empty();
    let alone = async |arguments: &[&str]| {
        let walls = ["--dev-bind", "/", "/", "--unshare-net", "--", env!("CARGO_BIN_EXE_hob"), "channel"];
        let mut command = Command::new("bwrap");
        command.args(walls).args(arguments).env("HOB_HOME", home.directory()).stdin(Stdio::null());
        Ran::from(command.output().await.expect("bubblewrap runs"))
    };
    let status = alone(&["status"]).await;
    assert_eq!(status.code, Some(1));
    assert!(status.stdout.starts_with("Status    not_configured\nGateway   none\n"), "{}", status.stdout);
    let message = "no channel is configured. Connect one with 'hob channel add telegram' or 'hob channel add email'. For a gateway, set \
                   'enabled = true' and gateway_url under [channel] in config.toml, or pass one with --gateway\n";
    assert_eq!(status.stderr, format!("warning: {message}"));
    for arguments in [&["list"][..], &["send", "telegram", "hello"]] {
        let refused = alone(arguments).await;
        assert_eq!(
            refused,
            Ran { code: Some(1), stdout: String::new(), stderr: format!("error: {message}") }
        );
    }
}

#[tokio::test]
async fn messages_on_a_terminal_wrap_between_words() {
    let home = Home::with_config("[channel]\ngateway_url = \"ws://127.0.0.1:9/ws\"\n");
    let mut terminal = Terminal::start(&home, &["channel", "status"]);
    assert_eq!(terminal.end().await, Some(1));
    let shown = terminal.text();
    let warning = shown.lines().skip_while(|line| !line.contains("warning: ")).collect::<Vec<_>>();
    assert!(warning.len() > 1 && warning.iter().all(|line| line.chars().count() <= 80), "{shown}");
    let whole = home.run(&["channel", "status"]).await.stderr;
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&warning.join("\n")), words(&whole));
}

fn serving(gateway_url: &str, ollama: &str) -> Home {
    let channel =
        format!("[channel]\nenabled = true\ngateway_url = \"{gateway_url}\"\nreconnect_interval = 0.1\n");
    Home::with_config(&(engines_config(&[("ollama", ollama)]) + &channel))
}

#[tokio::test]
async fn a_running_server_answers_messages_and_lists_its_channels() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let ollama = fakes::ollama().await;
    let home = serving(&gateway.url(), &ollama.url());
    let server = Running::start(&home, &[]).await;
    timeout(WAIT_LIMIT, gateway.opened(1)).await.expect("connected");
    let message = json!({ "channel": "telegram", "sender": "ann", "content": "capital?", "message_id": "1", "conversation_id": "t1" });
    gateway.push(message.to_string());
    let frames = timeout(WAIT_LIMIT, gateway.received(1)).await.expect("an answer");
    assert_eq!((&frames[0]["content"], &frames[0]["conversation_id"]), (&json!(fakes::WHOLE), &json!("t1")));
    let listed = http::get(server.address(), "/v1/channels").await.all().await;
    assert!(listed.contains(r#""channels":["telegram","slack"]"#), "{listed}");
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[tokio::test]
async fn channels_are_added_changed_and_removed_without_a_restart() {
    let gateways =
        [Gateway::start(GatewayScript::default()).await, Gateway::start(GatewayScript::default()).await];
    let ollama = fakes::ollama().await;
    let config = engines_config(&[("ollama", &ollama.url())]);
    let home = Home::with_config(&config);
    let server = Running::start(&home, &[]).await;
    let reload = async |channel: &str| {
        std::fs::write(home.config_file(), format!("{config}{channel}")).expect("a file");
        home.run(&["reload"]).await
    };
    let at = |gateway: &Gateway| format!("[channel]\nenabled = true\ngateway_url = \"{}\"\n", gateway.url());
    assert_eq!(reload(&at(&gateways[0])).await, ran("Reloaded: channel.enabled, channel.gateway_url.\n"));
    timeout(WAIT_LIMIT, gateways[0].opened(1)).await.expect("connected");
    assert_eq!(reload(&at(&gateways[1])).await, ran("Reloaded: channel.gateway_url.\n"));
    timeout(WAIT_LIMIT, gateways[1].opened(1)).await.expect("connected");
    let message = json!({ "channel": "telegram", "sender": "ann", "content": "capital?", "message_id": "1", "conversation_id": "t1" });
    gateways[1].push(message.to_string());
    let frames = timeout(WAIT_LIMIT, gateways[1].received(1)).await.expect("an answer");
    assert_eq!(frames[0]["content"], json!(fakes::WHOLE));

    // A channel that cannot be used changes nothing.
    let failed = reload(&(at(&gateways[0]) + "[channel.telegram]\nenabled = true\n")).await;
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    assert!(failed.stderr.contains("Telegram has no token"), "{}", failed.stderr);
    let listed = http::get(server.address(), "/v1/channels").await.all().await;
    assert!(listed.contains(r#""channels":["telegram","slack"]"#), "{listed}");

    assert_eq!(reload("").await, ran("Reloaded: channel.enabled, channel.gateway_url.\n"));
    let status = http::get(server.address(), "/v1/channels/status").await.all().await;
    assert!(!status.starts_with("HTTP/1.1 200"), "{status}");
    let ended = server.terminate().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[tokio::test]
async fn linking_whatsapp_installs_the_bridge_and_shows_the_code() {
    let home = Home::empty();
    let bin = home.directory().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    program(&bin.join("npm"), "#!/bin/sh\necho \"$@\" > npm-arguments\n");
    let says = "echo '{\"type\":\"qr\",\"data\":\"2@abcdef\"}'; echo '{\"type\":\"status\",\"status\":\"connected\"}'";
    program(&bin.join("node"), &format!("#!/bin/sh\n{says}\ncat > /dev/null\n"));
    let path = std::env::var("PATH").expect("a path");
    let output = home
        .hob(&["channel", "login", "whatsapp"])
        .env("PATH", format!("{}:{path}", bin.display()))
        .output()
        .await
        .expect("hob runs");
    let ran = Ran::from(output);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("Link a device") && ran.stdout.contains('▄'), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("WhatsApp is linked.\n"), "{}", ran.stdout);
    assert!(ran.stderr.contains("enabled = true"), "{}", ran.stderr);
    let installed = home.directory().join("bridges/whatsapp");
    for file in ["bridge.mjs", "message_age.mjs", "forwarded.mjs", "ending.mjs", "package-lock.json"] {
        assert!(installed.join(file).is_file(), "{file}");
    }
    let arguments = std::fs::read_to_string(installed.join("npm-arguments")).expect("npm ran there");
    assert!(arguments.starts_with("ci --omit=optional --omit=peer --ignore-scripts"), "{arguments}");
}

fn program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("its owner");
}

/// The example of `docs/channels.md`, as a reader would try it.
#[tokio::test]
async fn the_example_gateway_of_the_documentation_works() {
    let part = |name: &str| {
        std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run this test with './dev test'"))
    };
    let example = tempfile::tempdir().expect("a directory");
    let script = example.path().join("gateway.mjs");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/gateway.mjs");
    std::fs::copy(source, &script).expect("copied");
    std::os::unix::fs::symlink(part("HOB_TEST_NODE_MODULES"), example.path().join("node_modules"))
        .expect("linked");
    let mut gateway = Command::new(part("HOB_TEST_NODE"))
        .arg(&script)
        .arg("0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("node runs");
    let mut lines = BufReader::new(gateway.stdout.take().expect("a pipe")).lines();
    let mut next = async || {
        timeout(WAIT_LIMIT, lines.next_line()).await.expect("in time").expect("text").expect("a line")
    };
    let first = next().await;
    let url = first.strip_prefix("-- listening on ").expect("its address");

    let ollama = fakes::ollama().await;
    let home = serving(url, &ollama.url());
    let server = Running::start(&home, &[]).await;
    assert_eq!(next().await, "-- Hob is here");
    let mut stdin = gateway.stdin.take().expect("a pipe");
    stdin.write_all(b"What is the capital of France?\n").await.expect("written");
    assert_eq!(next().await, format!("hob> {}", fakes::WHOLE));

    let sent = home.run(&["channel", "send", "terminal", "Dinner is ready."]).await;
    assert_eq!(sent, ran("sent to terminal\n"));
    assert_eq!(next().await, "hob> Dinner is ready.");
    let listed = http::get(server.address(), "/v1/channels/messages?limit=1").await.all().await;
    assert!(listed.contains(r#""channel":"terminal""#) && listed.contains("Dinner is ready."), "{listed}");
    assert_eq!(home.run(&["channel", "list"]).await, ran("terminal\n"));
    assert_eq!(server.terminate().await.code, Some(0));
}

/// The program of `docs/write-a-channel.md`, as it stands there.
fn program_of_the_page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/write-a-channel.md");
    let text = std::fs::read_to_string(page).expect("the page is there");
    let (_, rest) = text.split_once("```python\n").expect("a program");
    rest.split_once("\n```").expect("its end").0.to_owned()
}

#[tokio::test]
async fn the_channel_of_the_documentation_works() {
    let python = std::env::var("HOB_TEST_PYTHON")
        .unwrap_or_else(|_| panic!("HOB_TEST_PYTHON is not set: run this test with './dev test'"));
    let folder = tempfile::tempdir().expect("a directory");
    let messages = folder.path().join("messages");
    std::fs::create_dir(&messages).expect("a directory");
    let script = folder.path().join("folder_channel.py");
    std::fs::write(&script, program_of_the_page()).expect("a file");
    let mut channel = Command::new(python)
        .arg(&script)
        .arg(&messages)
        .arg("0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("python runs");
    let mut lines = BufReader::new(channel.stdout.take().expect("a pipe")).lines();
    let first =
        timeout(WAIT_LIMIT, lines.next_line()).await.expect("in time").expect("text").expect("a line");
    let url = first.strip_prefix("listening on ").expect("its address");

    let ollama = fakes::ollama().await;
    let home = serving(url, &ollama.url());
    let server = Running::start(&home, &[]).await;
    std::fs::write(messages.join("france.txt"), "What is the capital of France?").expect("a file");
    let answer = messages.join("france.answer");
    let answered = async {
        while std::fs::read_to_string(&answer).unwrap_or_default() != fakes::WHOLE {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(WAIT_LIMIT, answered).await.expect("an answer");
    assert_eq!(home.run(&["channel", "list"]).await, ran("folder\n"));
    let sent = home.run(&["channel", "send", "folder", "Dinner is ready.", "--conversation", "note"]).await;
    assert_eq!(sent, ran("sent to folder\n"));
    assert_eq!(server.terminate().await.code, Some(0));
    let chats = ollama.requests().into_iter().filter(|request| request.path == "/api/chat").count();
    assert_eq!(chats, 1, "a message that is sent again is answered once");
}
