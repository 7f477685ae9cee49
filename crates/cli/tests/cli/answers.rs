//! `hob ask` and `hob chat` with a running server of the same home.

use hob_testkit::{FakeServer, Hold, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixListener;
use tokio::process::Child;

use crate::fakes::{self, END, STREAMED, piece};
use crate::home::{Home, NOWHERE, Ran, engines_config};
use crate::running::Running;
use crate::terminal::{CTRL_D, Terminal};

fn home(ollama: &FakeServer) -> Home {
    Home::with_engines(&[("ollama", &ollama.url())])
}

/// The bodies of all chats so far.
fn chats(engine: &FakeServer) -> Vec<Value> {
    let requests = engine.requests();
    let chats = requests.iter().filter(|request| request.path == "/api/chat");
    chats.map(|chat| serde_json::from_slice(&chat.body).expect("JSON")).collect()
}

/// Makes the home useless for a process that answers itself. A running server keeps its engine.
fn forget_the_engine(home: &Home) {
    std::fs::write(home.config_file(), engines_config(&[("ollama", NOWHERE)])).expect("a file");
}

async fn stats(home: &Home) -> Value {
    let ran = home.run(&["telemetry", "stats", "--json"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).expect("JSON")
}

/// Asks a question whose answer begins with `Once`, and waits for that.
async fn begun(home: &Home) -> Child {
    let mut child = home.hob(&["ask", "q"]).spawn().expect("hob starts");
    let stdout = child.stdout.as_mut().expect("a pipe");
    stdout.read_exact(&mut [0; 4]).await.expect("a piece");
    child
}

#[tokio::test]
async fn a_question_goes_to_the_running_server_unless_it_must_not() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    let server = Running::start(&home, &[]).await;
    forget_the_engine(&home);
    let answered = Ran { code: Some(0), stdout: format!("{STREAMED}\n"), stderr: String::new() };
    let length = "The answer was cut off at 8 tokens. Raise the limit with --max-tokens.\n";
    let ran = home.run(&["ask", "--max-tokens", "8", "Capital?"]).await;
    assert_eq!(ran, Ran { stderr: length.into(), ..answered });
    assert_eq!(chats(&ollama).len(), 1);

    let alone = home.run(&["ask", "--standalone", "Capital?"]).await;
    assert_eq!((alone.code, alone.stdout.as_str()), (Some(1), ""));
    assert!(alone.stderr.starts_with("error: no engine answered on http://127.0.0.1:9"), "{}", alone.stderr);
    assert_eq!(chats(&ollama).len(), 1, "the server was not asked");

    assert_eq!(server.terminate().await.code, Some(0));
    assert_eq!(stats(&home).await["overview"]["figures"]["calls"], 1);
    let without = home.run(&["ask", "Capital?"]).await;
    assert_eq!(without.code, Some(1), "no server runs any more: {}", without.stderr);
}

#[tokio::test]
async fn options_work_the_same_with_and_without_the_server() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    let document = home.documents().join("roses.txt");
    std::fs::write(&document, "The roses are cut back in March.").expect("a file");
    let picture = home.documents().join("cat.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\nx").expect("a file");
    let schema = home.documents().join("schema.json");
    std::fs::write(&schema, r#"{"type": "object"}"#).expect("a file");
    let path = |path: &std::path::Path| path.to_str().expect("text").to_owned();
    let (document, picture, schema) = (path(&document), path(&picture), path(&schema));
    let _server = Running::start(&home, &[]).await;
    // Not with -v, which shows the log of the process that answers.
    let questions: [&[&str]; 15] = [
        &["ask", "Capital?"],
        &["ask", "--no-stream", "Capital?"],
        &["ask", "--json", "Capital?"],
        &["ask", "-t", "0.5", "--max-tokens", "8", "Capital?"],
        &["ask", "-m", "smollm2-tools", "Capital?"],
        &["ask", "-m", "nope", "Capital?"],
        &["ask", "-e", "ollama", "Capital?"],
        &["ask", "--system", "Be brief.", "Capital?"],
        &["ask", "-f", &document, "When?"],
        &["ask", "-i", &picture, "What?"],
        &["ask", "--schema", &schema, "Capital?"],
        &["ask", "--no-context", "Capital?"],
        &["ask", "-a", "orchestrator", "--tools", "calculator", "--json", "Capital?"],
        &["ask", "-a", "simple", "Capital?"],
        &["ask", "--tools", "hammer", "Capital?"],
    ];
    for question in questions {
        ollama.forget();
        let by_server = home.run(question).await;
        let asked_by_server = chats(&ollama);
        ollama.forget();
        let alone: Vec<&str> = question.iter().copied().chain(["--standalone"]).collect();
        assert_eq!(home.run(&alone).await, by_server, "{question:?}");
        assert_eq!(chats(&ollama), asked_by_server, "{question:?}");
    }
}

#[tokio::test]
async fn another_engine_than_the_servers_is_asked_by_this_process() {
    let ollama = fakes::ollama().await;
    let vllm = fakes::vllm().await;
    let home = Home::with_engines(&[("ollama", &ollama.url()), ("vllm", &vllm.url())]);
    let _server = Running::start(&home, &[]).await;
    let ran = home.run(&["ask", "-e", "vllm", "Capital?"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.starts_with("The running server is not used: it uses ollama, not vllm.\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(chats(&ollama), [] as [Value; 0]);
}

#[tokio::test]
async fn a_server_that_is_killed_in_the_middle_is_an_error() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Once")).then_silence()).await;
    let home = home(&ollama);
    let server = Running::start(&home, &[]).await;
    let child = begun(&home).await;
    server.signal(Signal::KILL);
    let ran = Ran::from(child.wait_with_output().await.expect("hob ends"));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "\n"));
    let expected = "error: the running server did not complete the answer: ";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
}

#[tokio::test]
async fn ctrl_c_cancels_the_request_to_the_engine_and_not_the_server() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Once")).then_silence()).await;
    let home = home(&ollama);
    let server = Running::start(&home, &[]).await;
    let mut child = begun(&home).await;
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.try_into().ok()?)).expect("hob runs");
    kill_process(pid, Signal::INT).expect("hob runs");
    ollama.hung_up(1).await;
    assert_eq!(child.wait().await.expect("hob ends").code(), Some(130));
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_server_that_stops_completes_the_answers_of_the_command_line() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece(" more.") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let home = home(&ollama);
    let mut server = Running::start(&home, &[]).await;
    let child = begun(&home).await;
    server.signal(Signal::TERM);
    server.says("for answers in progress").await;
    hold.release();
    let ran = Ran::from(child.wait_with_output().await.expect("hob ends"));
    assert_eq!(ran, Ran { code: Some(0), stdout: " more.\n".into(), stderr: String::new() });
    assert_eq!(server.end().await.code, Some(0));
}

#[tokio::test]
async fn a_server_of_another_version_is_not_used() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    for (answer, reason) in [
        (
            "{\"protocol\": 0, \"version\": \"0.0.1\"}\n",
            format!("it is Hob 0.0.1, this is {}", env!("CARGO_PKG_VERSION")),
        ),
        ("", "it is another version of Hob".to_owned()),
    ] {
        let path = home.directory().join("server.1-1.sock");
        let listener = UnixListener::bind(&path).expect("a socket");
        let answering = async {
            let (client, _) = listener.accept().await.expect("a client");
            let mut client = BufReader::new(client);
            client.read_line(&mut String::new()).await.expect("a request");
            client.write_all(answer.as_bytes()).await.expect("it reads");
        };
        let (ran, ()) = tokio::join!(home.run(&["ask", "--no-context", "Capital?"]), answering);
        assert_eq!((ran.code, ran.stdout), (Some(0), format!("{STREAMED}\n")));
        let warning = format!(
            "warning: the running server is not used: {reason}. This process answers; restart the server, or use --standalone\n"
        );
        assert!(ran.stderr.starts_with(&warning), "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("warning:").count(), 1, "{}", ran.stderr);
        drop(listener);
        std::fs::remove_file(path).expect("it is there");
    }
}

#[tokio::test]
async fn the_socket_of_a_killed_server_is_ignored() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Paris.") + END)).await;
    let home = home(&ollama);
    let server = Running::start(&home, &[]).await;
    server.signal(Signal::KILL);
    server.end().await;
    let ran = home.run(&["ask", "Capital?"]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "Paris.\n".into(), stderr: String::new() });
}

#[tokio::test]
async fn a_chat_goes_to_the_running_server_and_is_saved() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("Paris.") + END)).await;
    let home = home(&ollama);
    let _server = Running::start(&home, &[]).await;
    forget_the_engine(&home);
    let answered = Ran { code: Some(0), stdout: "Paris.\n".into(), stderr: String::new() };
    assert_eq!(home.run_with_stdin(&["chat"], b"Capital?").await, answered);
    assert_eq!(home.run(&["ask", "-c", "Sure?"]).await, answered);
    let user = |text: &str| json!({ "role": "user", "content": text });
    let assistant = json!({ "role": "assistant", "content": "Paris." });
    assert_eq!(chats(&ollama)[1]["messages"], json!([user("Capital?"), assistant, user("Sure?")]));

    let mut terminal = Terminal::start(&home, &["chat", "--continue"]);
    terminal.sees("smollm2:latest on ollama").await;
    terminal.line("/model").await;
    terminal.sees("* smollm2:latest ollama").await;
    terminal.line("/model smollm2-tools").await;
    terminal.sees("Now using smollm2-tools.").await;
    terminal.line("/tools").await;
    terminal.sees("calculator").await;
    terminal.sees("No agent is active").await;
    terminal.line("Really?").await;
    terminal.sees("Paris.").await;
    terminal.sees("> ").await;
    terminal.keys(CTRL_D).await;
    assert_eq!(terminal.end().await, Some(0));
    let last = &chats(&ollama)[2];
    assert!(last["model"].as_str().is_some_and(|model| model.starts_with("smollm2-tools")), "{last}");
    assert_eq!(last["messages"].as_array().map(Vec::len), Some(5));
}

#[tokio::test]
async fn only_the_user_of_the_server_can_open_its_socket() {
    use std::os::unix::fs::PermissionsExt;
    let ollama = fakes::ollama().await;
    let home = home(&ollama);
    let _server = Running::start(&home, &[]).await;
    let entries = std::fs::read_dir(home.directory()).expect("a directory");
    let sockets: Vec<u32> = entries
        .map(|entry| entry.expect("an entry"))
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".sock"))
        .map(|entry| entry.metadata().expect("a socket").permissions().mode() & 0o777)
        .collect();
    assert_eq!(sockets, [0o600]);
}

#[tokio::test]
async fn a_reader_that_closes_the_pipe_ends_the_work_of_the_server() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece("more\\n").repeat(3)).then_silence();
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let home = home(&ollama);
    let _server = Running::start(&home, &[]).await;
    let mut child = home.hob(&["ask", "q"]).spawn().expect("hob starts");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 4]).await.expect("a piece");
    drop(stdout);
    hold.release();
    ollama.hung_up(1).await;
    assert_eq!(child.wait().await.expect("hob ends").code(), Some(0));
}
