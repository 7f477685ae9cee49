//! `hob chat` with piped input.

use std::process::Stdio;

use hob_testkit::{Hold, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{answering, asked, assistant, home, saying, user};
use crate::fakes::{END, piece};
use crate::home::{Home, Ran};

#[tokio::test]
async fn a_chat_works_without_a_database() {
    let ollama = answering([saying("Yes.")]).await;
    let home = home(&ollama);
    std::fs::write(home.directory().join("hob.db"), "no database").expect("a file");
    let ran = home.run_with_stdin(&["chat"], b"q").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Yes.\n"));
    assert!(ran.stderr.contains("warning: this conversation is not saved"), "{}", ran.stderr);
    let ran = home.run_with_stdin(&["chat", "--continue"], b"q").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
}

#[tokio::test]
async fn piped_input_is_one_message_and_only_the_answer_is_printed() {
    let ollama = answering([saying("**Paris**, \\u001b[31mof course.")]).await;
    let home = home(&ollama);
    let ran = home.run_with_stdin(&["chat"], b"Capital?\nOf France.\n").await;
    let stdout = "**Paris**, \u{1b}[31mof course.\n".to_owned();
    assert_eq!(ran, Ran { code: Some(0), stdout, stderr: String::new() });
    assert_eq!(asked(&ollama), [json!([user("Capital?\nOf France.")])]);
}

#[tokio::test]
async fn with_piped_input_a_signal_stops_the_answer_and_saves_the_part() {
    let ollama = answering([Reply::ndjson(piece("Half")).then_silence(), saying("The rest.")]).await;
    let home = home(&ollama);
    let mut child = home.hob(&["chat"]).stdin(Stdio::piped()).spawn().expect("hob starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"Tell me.").await.expect("hob reads");
    drop(stdin);
    let mut answered = [0; 4];
    child.stdout.as_mut().expect("a pipe").read_exact(&mut answered).await.expect("a piece");
    assert_eq!(&answered, b"Half");
    let pid = child.id().and_then(|id| Pid::from_raw(id.try_into().ok()?)).expect("hob runs");
    kill_process(pid, Signal::INT).expect("hob runs");
    assert_eq!(child.wait().await.expect("hob ends").code(), Some(130));
    ollama.hung_up(1).await;
    let ran = home.run_with_stdin(&["chat", "--continue"], b"Go on.").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The rest.\n"));
    assert_eq!(asked(&ollama)[1], json!([user("Tell me."), assistant("Half"), user("Go on.")]));
}

#[tokio::test]
async fn an_answer_is_saved_if_its_reader_closes_the_pipe() {
    let hold = Hold::new();
    let first = Reply::ndjson(piece("One.\\n")).then_held(&hold, piece("Two.\\n") + END);
    let ollama = answering([first, saying("Three.")]).await;
    let home = home(&ollama);
    let mut child = home.hob(&["chat"]).stdin(Stdio::piped()).spawn().expect("hob starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(b"Count.").await.expect("hob reads");
    drop(stdin);
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0; 5]).await.expect("a line");
    // As `head -1` does.
    drop(stdout);
    hold.release();
    let ran = Ran::from(child.wait_with_output().await.expect("hob ends"));
    assert_eq!(ran, Ran { code: Some(0), stdout: String::new(), stderr: String::new() });

    let ran = home.run_with_stdin(&["chat", "--continue"], b"Go on.").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Three.\n"));
    assert_eq!(asked(&ollama)[1], json!([user("Count."), assistant("One.\nTwo.\n"), user("Go on.")]));
}

#[tokio::test]
async fn a_missing_conversation_fails_before_stdin_is_read() {
    let home = Home::with_engines(&[]);
    let ran = home.run(&["chat", "--resume", "77"]).await;
    let stderr = "error: conversation 77 does not exist. 'hob chat --list', or /list in the chat, lists the saved conversations.\n";
    assert_eq!(ran, Ran { code: Some(1), stdout: String::new(), stderr: stderr.into() });
}

#[tokio::test]
async fn with_piped_input_the_exit_code_reports_failure() {
    let ollama = answering([Reply::ndjson(piece("Par")).then_cut()]).await;
    let home = home(&ollama);
    let ran = home.run_with_stdin(&["chat"], b"q").await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "Par\n"));
    assert!(ran.stderr.starts_with("error: ollama broke off its answer"), "{}", ran.stderr);
    for (arguments, stdin, expected) in [
        (&["chat"][..], &b" \n"[..], "error: the question is empty.\n"),
        (&["chat", "--resume", "7"], b"q", "error: conversation 7 does not exist."),
    ] {
        let ran = home.run_with_stdin(arguments, stdin).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{arguments:?}");
        assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    }
    assert_eq!(home.run(&["chat", "--resume", "x"]).await.code, Some(2));
}
