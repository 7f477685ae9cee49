//! End to end: a real llama.cpp server with a real model, `hob` in front of it, and a real client.

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::home::{Home, engines_config, free_port};
use crate::http::chat;
use crate::running::Running;

/// The model's name.
const ALIAS: &str = "smollm2";

const QUESTION: &str =
    r#"{"model": "smollm2", "max_tokens": 8, "messages": [{"role": "user", "content": "Say hello."}]}"#;

/// What `./dev` installs for tests.
fn part(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        panic!("${variable} is not set. This test needs a real engine: run it with './dev test', which installs one.")
    })
}

fn arguments() -> Vec<String> {
    ["--threads", "2", "--parallel", "4", "-c", "8192", "--alias", ALIAS].map(str::to_owned).to_vec()
}

/// Starts the server and waits until it is ready. It is killed with its value.
async fn llama_server(port: u16) -> Child {
    let mut child = Command::new(part("HOB_TEST_LLAMA_SERVER"))
        .args(["--host", "127.0.0.1", "--port", &port.to_string(), "-m", &part("HOB_TEST_MODEL")])
        .args(arguments())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the script starts");
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    loop {
        let line = lines.next_line().await.expect("text");
        let line = line.unwrap_or_else(|| panic!("llama-server does not start:\n{said}"));
        if line.contains("listening on") {
            break;
        }
        said += &format!("{line}\n");
    }
    // Its log must go somewhere, or it stops when the pipe is full.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    child
}

#[tokio::test]
async fn the_official_client_is_content_with_a_real_engine() {
    let port = free_port();
    let _engine = llama_server(port).await;
    let home = Home::with_engines(&[("llamacpp", &format!("http://127.0.0.1:{port}"))]);
    // What the client compares with the stream is the engine's own answer, not an agent's.
    let server = Running::start(&home, &["-a", "none"]).await;
    assert_eq!(server.summary[1], format!("Model   {ALIAS}"));

    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/e2e/openai_client.py");
    let client = Command::new(part("HOB_TEST_PYTHON"))
        .args([script, &format!("http://{}/v1", server.address()), ALIAS])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .expect("Python starts");
    assert!(
        client.status.success(),
        "{}{}",
        String::from_utf8_lossy(&client.stdout),
        String::from_utf8_lossy(&client.stderr)
    );

    let ran = home.run(&["ask", "--json", "--max-tokens", "8", "Say hello."]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"engine\":\"llamacpp\""), "{}", ran.stdout);
    assert_eq!(server.terminate().await.code, Some(0));
}

/// Finding and killing the child takes a system that shows its processes as files.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_managed_engine_is_started_restarted_and_stopped() {
    let port = free_port();
    let quoted: Vec<String> = arguments().iter().map(|argument| format!("{argument:?}")).collect();
    let managed = format!(
        "[engine.llamacpp]\nbinary_path = {:?}\nmodel_path = {:?}\nargs = [{}]",
        part("HOB_TEST_LLAMA_SERVER"),
        part("HOB_TEST_MODEL"),
        quoted.join(", ")
    );
    let config = engines_config(&[("llamacpp", &format!("http://127.0.0.1:{port}"))]);
    let home = Home::with_config(&config.replace("[engine.llamacpp]", &managed));
    let mut command = home.hob(&["-v", "serve", "--port", "0"]);
    command.env("HOB_TEST_PYTHON", part("HOB_TEST_PYTHON"));
    let mut server = Running::of(command).await;
    assert_eq!(server.summary[0], format!("Engine  llamacpp at http://127.0.0.1:{port}"));
    answers(&server).await;

    let first = child_of(server.pid());
    kill_process(first, Signal::KILL).expect("the engine runs");
    server.says("the managed server runs again").await;
    answers(&server).await;
    assert_ne!(child_of(server.pid()), first);

    assert_eq!(server.terminate().await.code, Some(0));
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err(), "the engine outlives hob");
}

async fn answers(server: &Running) {
    let answer = chat(server.address(), QUESTION).await.all().await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"chat.completion\""), "{answer}");
}

/// The only child of a process.
fn child_of(parent: Pid) -> Pid {
    let is_child = |pid: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let parents =
            status.lines().filter_map(|line| line.strip_prefix("PPid:")?.trim().parse::<i32>().ok());
        parents.into_iter().any(|pid| pid == parent.as_raw_nonzero().get())
    };
    let processes = std::fs::read_dir("/proc").expect("Linux");
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let children: Vec<i32> = pids.filter(is_child).collect();
    let [child] = children[..] else { panic!("not one child: {children:?}") };
    Pid::from_raw(child).expect("not zero")
}
