//! `hob chat`: in a terminal, and piped.

mod piped;
mod saved;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hob_testkit::{FakeServer, Hold, Reply};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::fakes::{self, END, piece};
use crate::home::{Home, engines_config};
use crate::terminal::{ALT_ENTER, CTRL_C, CTRL_D, Terminal};

fn home(ollama: &FakeServer) -> Home {
    Home::with_engines(&[("ollama", &ollama.url())])
}

/// An Ollama that gives these answers in order, and then repeats the last one.
async fn answering(replies: impl IntoIterator<Item = Reply>) -> FakeServer {
    let replies: Vec<Reply> = replies.into_iter().collect();
    let count = AtomicUsize::new(0);
    fakes::ollama_chatting(move |_| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        replies[number.min(replies.len() - 1)].clone()
    })
    .await
}

/// An answer in one piece, as JSON.
fn saying(text: &str) -> Reply {
    Reply::ndjson(piece(text) + END)
}

/// The messages of every chat so far.
fn asked(engine: &FakeServer) -> Vec<Value> {
    let requests = engine.requests();
    let chats = requests.iter().filter(|request| request.path == "/api/chat");
    let body = |body: &[u8]| serde_json::from_slice::<Value>(body).expect("JSON");
    chats.map(|chat| body(&chat.body)["messages"].clone()).collect()
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

fn assistant(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

#[tokio::test]
async fn an_answer_streams_and_the_next_question_has_it_as_context() {
    let hold = Hold::new();
    let first = Reply::ndjson(piece("It is **Paris** of ")).then_held(&hold, piece("course.") + END);
    let ollama = answering([first, saying("Madrid.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.sees("smollm2:latest on ollama").await;
    terminal.line("Capital of France?").await;
    terminal.sees("It is Paris of").await;
    hold.release();
    terminal.sees("course.").await;
    assert!(terminal.raw().contains("\u{1b}[1mParis\u{1b}[0m"), "bold is shown: {}", terminal.raw());
    terminal.line("And of Spain?").await;
    terminal.sees("Madrid.").await;
    terminal.sees("> ").await;
    terminal.keys(CTRL_D).await;
    assert_eq!(terminal.end().await, Some(0));
    let history =
        [user("Capital of France?"), assistant("It is **Paris** of course."), user("And of Spain?")];
    assert_eq!(asked(&ollama)[1], json!(history));
}

#[tokio::test]
async fn ctrl_c_stops_the_answer_and_not_the_program() {
    let ollama = answering([Reply::ndjson(piece("Half of ")).then_silence(), saying("The rest.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("Tell me.").await;
    terminal.sees("Half of").await;
    assert!(!terminal.has_echo(), "what is typed does not disturb the answer");
    terminal.keys(CTRL_C).await;
    terminal.sees("Stopped. The partial answer is saved").await;
    ollama.hung_up(1).await;
    terminal.sees("> ").await;
    terminal.keys(CTRL_C).await;
    terminal.sees("Press Ctrl-D or type /quit to quit").await;
    terminal.line("Go on.").await;
    terminal.sees("The rest.").await;
    assert_eq!(asked(&ollama)[1], json!([user("Tell me."), assistant("Half of "), user("Go on.")]));
    let file = home.directory().join("said.md");
    terminal.line(&format!("/save {}", file.display())).await;
    terminal.sees("Saved to").await;
    terminal.line("/quit").await;
    assert_eq!(terminal.end().await, Some(0));
    let saved = std::fs::read_to_string(&file).expect("a file");
    assert!(
        saved.starts_with("## You\n\nTell me.\n\n## smollm2:latest\n\nHalf of\n\n*(stopped)*\n"),
        "{saved}"
    );
}

#[tokio::test]
async fn an_engine_failure_in_the_middle_returns_to_the_prompt_and_keeps_the_question() {
    let ollama = answering([Reply::ndjson(piece("Par ")).then_cut(), saying("Paris.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("Capital?").await;
    terminal.sees("Par\n").await;
    terminal.sees("error: ollama broke off its answer").await;
    terminal.sees("/retry asks again.").await;
    terminal.line("/retry").await;
    terminal.sees("Paris.").await;
    assert_eq!(asked(&ollama), [json!([user("Capital?")]), json!([user("Capital?")])]);
}

#[tokio::test]
async fn a_conversation_that_is_too_long_says_so_and_offers_a_new_one() {
    let overflow = Reply::json(
        400,
        r#"{"error":"the request exceeds the available context size, try increasing the context length"}"#,
    );
    let ollama = answering([saying("One."), overflow, saying("Two.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("First?").await;
    terminal.sees("One.").await;
    terminal.line("Second?").await;
    terminal.sees("exceeds the available context size").await;
    terminal.sees("With 1 turn before it, the question exceeds the model's context.").await;
    terminal.line("/new").await;
    terminal.sees("Started a new conversation.").await;
    terminal.line("/retry").await;
    terminal.sees("Two.").await;
    assert_eq!(asked(&ollama)[2], json!([user("Second?")]));
}

#[tokio::test]
async fn commands_show_and_change_the_settings() {
    let ollama = answering([saying("Yes.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    for (line, shown) in [
        ("/help", "/retry"),
        ("/model", "* smollm2:latest"),
        ("/model nobody", "ollama has no model 'nobody'; it has smollm2"),
        ("/model smollm2-tools", "Now using smollm2-tools."),
        ("/agent", "answers directly, without tools"),
        ("/tools", "calculator"),
        ("/memory off", "Memory is off."),
        ("/memory", "Memory is off."),
        ("/modle", "Did you mean /model?"),
        ("/retry", "No question was asked yet."),
        ("/save x.md", "nothing to save"),
        ("/list", "There are no saved conversations yet."),
        ("/resume 99", "conversation 99 does not exist"),
        ("Hello?", "Yes."),
        ("/list", "Hello?"),
        ("/forget 1", "Deleted conversation 1."),
        ("/list", "There are no saved conversations yet."),
    ] {
        terminal.line(line).await;
        terminal.sees(shown).await;
    }
    let last = ollama.requests().into_iter().rfind(|request| request.path == "/api/chat").expect("a chat");
    assert!(last.text().contains("\"model\":\"smollm2-tools"), "{}", last.text());
}

#[tokio::test]
async fn answers_use_the_memory_until_it_is_disabled() {
    let ollama = answering([saying("It is 4711.")]).await;
    let home = home(&ollama);
    let notes = home.documents().join("notes");
    std::fs::create_dir(&notes).expect("a directory");
    std::fs::write(notes.join("gate.md"), "The code of the gate is 4711.\n").expect("a file");
    let indexed = home.run(&["memory", "index", &notes.display().to_string()]).await;
    assert_eq!(indexed.code, Some(0), "{}", indexed.stderr);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("What is the code of the gate?").await;
    terminal.sees("It is 4711.").await;
    terminal.sees("Sources: gate.md:1").await;
    terminal.line("/memory off").await;
    terminal.sees("Memory is off.").await;
    terminal.line("The code of the gate?").await;
    terminal.sees("It is 4711.").await;
    let roles = |messages: &Value| -> Vec<String> {
        let messages = messages.as_array().expect("messages");
        messages.iter().map(|message| message["role"].as_str().expect("a role").to_owned()).collect()
    };
    let asked = asked(&ollama);
    assert_eq!(roles(&asked[0]), ["user"]);
    assert!(asked[0][0]["content"].as_str().is_some_and(|content| content.contains("4711")), "{}", asked[0]);
    assert!(!asked[1].to_string().contains("<documents>"), "{}", asked[1]);
    assert_eq!(roles(&asked[1]), ["user", "assistant", "user"], "what was recalled is not part of the talk");
}

#[tokio::test]
async fn a_message_may_have_several_lines() {
    let ollama = answering([saying("Yes.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.sees("Ctrl-D to quit").await;
    for (keys, expected) in [
        ("one\\\rtwo\r".to_owned(), "one\ntwo"),
        (format!("one{ALT_ENTER}two\r"), "one\ntwo"),
        ("```\rcode\r```\r".to_owned(), "```\ncode\n```"),
        ("\u{1b}[200~/pasted\nline\u{1b}[201~\r".to_owned(), "/pasted\nline"),
    ] {
        terminal.keys("/new\r").await;
        terminal.sees("Started a new conversation.").await;
        // After the prompt, Ctrl-C and others are keys again.
        terminal.sees("> ").await;
        terminal.keys(&keys).await;
        terminal.sees("Yes.").await;
        assert_eq!(asked(&ollama).last(), Some(&json!([user(expected)])));
    }
}

#[tokio::test]
async fn without_colours_markdown_marks_are_printed() {
    let ollama = answering([saying("It is **Paris**.\\n\\n- one\\n- `two`")]).await;
    let home = home(&ollama);
    let mut command = home.hob(&["chat"]);
    command.env("NO_COLOR", "1");
    let mut terminal = Terminal::of(command);
    terminal.line("q").await;
    terminal.sees("It is **Paris**.").await;
    terminal.sees("• one\n• `two`").await;
    assert!(!terminal.raw().contains("\u{1b}[1m"), "{}", terminal.raw());
}

#[tokio::test]
async fn a_signal_at_the_prompt_leaves_the_terminal_as_it_was() {
    let ollama = answering([saying("Yes.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.sees("> ").await;
    terminal.keys("half a li").await;
    terminal.sees("half a li").await;
    assert!(!terminal.has_echo());
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end().await, Some(143));
    assert!(terminal.has_echo());
}

/// An Ollama that lists its models only for the first request, which checks whether it is running. For every
/// later request, the test gets a message.
async fn falling_silent() -> (FakeServer, UnboundedReceiver<()>) {
    let (asked, in_vain) = unbounded_channel();
    let is_first = AtomicBool::new(true);
    let ollama = FakeServer::start(move |_| {
        if is_first.swap(false, Ordering::SeqCst) {
            return Reply::transcript("ollama/tags");
        }
        asked.send(()).expect("the test goes on");
        Reply::silence()
    });
    (ollama.await, in_vain)
}

#[tokio::test]
async fn a_signal_ends_the_wait_for_the_first_model() {
    let (ollama, mut in_vain) = falling_silent().await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    in_vain.recv().await.expect("a request");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end().await, Some(143));
}

#[tokio::test]
async fn ctrl_c_stops_a_waiting_command_and_a_signal_stops_the_program() {
    let (ollama, mut in_vain) = falling_silent().await;
    let home = home(&ollama);
    // With -m, no list of models is requested before the prompt.
    let mut terminal = Terminal::start(&home, &["chat", "-m", "smollm2"]);
    for line in ["/model", "/model another"] {
        terminal.line(line).await;
        in_vain.recv().await.expect("a request");
        terminal.keys(CTRL_C).await;
        terminal.sees("Stopped.").await;
        terminal.sees("> ").await;
    }
    terminal.line("/model").await;
    in_vain.recv().await.expect("a request");
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.end().await, Some(143));
}

/// Between two lines, the system must not read Ctrl-D itself: the line editor would never see it.
#[tokio::test]
async fn ctrl_d_during_a_command_ends_the_chat_after_it() {
    let hold = Hold::new();
    let (asked, mut in_vain) = unbounded_channel();
    let (held, is_first) = (hold.clone(), AtomicBool::new(true));
    let ollama = FakeServer::start(move |_| {
        if is_first.swap(false, Ordering::SeqCst) {
            return Reply::transcript("ollama/tags");
        }
        asked.send(()).expect("the test goes on");
        Reply::json(200, "").then_held(&held, r#"{"models": []}"#)
    })
    .await;
    let home = home(&ollama);
    // With -m, no list of models is requested before the prompt.
    let mut terminal = Terminal::start(&home, &["chat", "-m", "smollm2"]);
    terminal.line("/model").await;
    in_vain.recv().await.expect("a request");
    assert!(!terminal.has_echo(), "what is typed does not disturb the output");
    terminal.keys(CTRL_D).await;
    hold.release();
    assert_eq!(terminal.end().await, Some(0));
    assert!(terminal.has_echo());
}

#[tokio::test]
async fn character_references_cannot_control_the_terminal() {
    let ollama = answering([saying("&#27;]0;owned&#7; [x](&#27;c) &#155;2J done")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("Well?").await;
    terminal.sees("]0;owned x (c) 2J done").await;
    assert!(!terminal.raw().contains(['\u{7}', '\u{9b}']), "{:?}", terminal.raw());
    assert!(
        !terminal.raw().contains("\u{1b}]0") && !terminal.raw().contains("\u{1b}c"),
        "{:?}",
        terminal.raw()
    );
}

#[tokio::test]
async fn the_answering_model_is_marked_on_any_engine() {
    let (ollama, vllm) = (fakes::ollama().await, fakes::vllm().await);
    let config = engines_config(&[("vllm", &vllm.url()), ("ollama", &ollama.url())]);
    let config = config.replace("[engine]\n", "[engine]\npool = [\"vllm\", \"ollama\"]\n");
    let home = Home::with_config(&config);
    let mut terminal = Terminal::start(&home, &["chat"]);
    for (line, shown) in [
        // Ollama has a model by that name too.
        ("/model", "* smollm2 vllm\n  smollm2:latest ollama\n  smollm2-tools:latest ollama\n"),
        ("/model smollm2-tools", "Now using smollm2-tools."),
        ("/model", "  smollm2 vllm\n  smollm2:latest ollama\n* smollm2-tools:latest ollama\n"),
    ] {
        terminal.line(line).await;
        terminal.sees(shown).await;
    }
}
