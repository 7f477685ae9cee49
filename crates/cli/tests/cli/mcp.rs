//! `hob mcp`, with a client that sends line by line.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::home::Home;

struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

impl Client {
    /// Starts `hob mcp` and does the handshake.
    async fn start(home: &Home) -> Self {
        let mut child = home.hob(&["mcp"]).stdin(Stdio::piped()).spawn().expect("hob starts");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut client = Client { child, stdin, stdout };
        let greeting = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = client.ask(1, "initialize", greeting).await;
        assert_eq!(answer["result"]["serverInfo"]["name"], "hob", "{answer}");
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.stdin.write_all(format!("{message}\n").as_bytes()).await.expect("hob reads");
    }

    /// Every line on stdout must be an answer.
    async fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        let line = self.stdout.next_line().await.expect("text").expect("an answer");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

#[tokio::test]
async fn a_client_lists_and_calls_tools_and_disconnects() {
    let home = Home::empty();
    let mut client = Client::start(&home).await;
    let listed = client.ask(2, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let calculator = tools.iter().find(|tool| tool["name"] == "calculator").expect("the calculator");
    assert_eq!(calculator["inputSchema"]["required"], json!(["expression"]));

    let worked = json!({ "name": "calculator", "arguments": { "expression": "17 * 23" } });
    let result = client.ask(3, "tools/call", worked).await["result"].clone();
    assert_eq!((&result["content"][0]["text"], &result["isError"]), (&json!("391"), &json!(false)));
    let failing = json!({ "name": "calculator", "arguments": { "expression": "17 *" } });
    assert_eq!(client.ask(4, "tools/call", failing).await["result"]["isError"], true);
    let unknown = json!({ "name": "fly", "arguments": {} });
    let refusal = client.ask(5, "tools/call", unknown).await;
    assert_eq!(refusal["error"]["message"], "there is no tool 'fly'");

    let Client { child, stdin, mut stdout } = client;
    drop(stdin);
    assert_eq!(stdout.next_line().await.expect("text"), None, "nothing more on stdout");
    let output = child.wait_with_output().await.expect("hob ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[tokio::test]
async fn tools_of_every_reach_are_served_but_not_those_of_other_servers() {
    let hob = env!("CARGO_BIN_EXE_hob");
    // A server that lists itself must not start itself endlessly.
    let home = Home::with_config(&format!("[mcp.servers.self]\ncommand = \"{hob}\"\nargs = [\"mcp\"]\n"));
    let mut client = Client::start(&home).await;
    let listed = client.ask(2, "tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    for own in ["calculator", "file_read", "web_fetch", "memory_search", "memory_index"] {
        assert!(names.contains(&own), "{own}: {names:?}");
    }
    assert!(names.iter().all(|name| !name.contains("__")), "{names:?}");
}
