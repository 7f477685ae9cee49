//! Conversations that are saved, continued and changed.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{answering, asked, assistant, home, saying, user};
use crate::home::Ran;
use crate::terminal::{CTRL_D, Terminal};

#[tokio::test]
async fn a_conversation_is_saved_and_continued() {
    let ollama = answering([saying("Paris."), saying("Madrid."), saying("Rom."), saying("Lisbon.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("Capital of France?").await;
    terminal.sees("Paris.").await;
    terminal.line("/quit").await;
    assert_eq!(terminal.end().await, Some(0));

    let ran = home.run_with_stdin(&["chat", "--continue"], b"Of Spain?\n").await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "Madrid.\n".into(), stderr: String::new() });
    let france = [user("Capital of France?"), assistant("Paris."), user("Of Spain?")];
    assert_eq!(asked(&ollama)[1], json!(france));

    let other = home.run_with_stdin(&["chat"], b"Of Italy?\n").await;
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), "Rom.\n"));
    assert_eq!(asked(&ollama)[2], json!([user("Of Italy?")]), "another conversation");

    let listed = home.run(&["chat", "--list"]).await;
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines[1].contains("Of Italy?") && lines[2].contains("Capital of France?"), "{}", listed.stdout);

    let mut terminal = Terminal::start(&home, &["chat", "--resume", "1"]);
    terminal.sees("1 turn before").await;
    terminal.sees("> Of Spain?").await;
    terminal.sees("Madrid.").await;
    terminal.line("Of Portugal?").await;
    terminal.sees("Lisbon.").await;
    assert_eq!(asked(&ollama)[3].as_array().map(Vec::len), Some(5));
}

#[tokio::test]
async fn a_retry_replaces_the_saved_answer() {
    let ollama = answering([saying("Bad."), saying("Good."), saying("Sure.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("Well?").await;
    terminal.sees("Bad.").await;
    terminal.line("/retry").await;
    terminal.sees("Good.").await;
    terminal.line("/quit").await;
    assert_eq!(terminal.end().await, Some(0));
    let ran = home.run_with_stdin(&["chat", "-c"], b"Really?").await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(asked(&ollama)[2], json!([user("Well?"), assistant("Good."), user("Really?")]));
}

#[tokio::test]
async fn the_history_is_readable_by_its_owner_only() {
    let ollama = answering([saying("Yes.")]).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("Remember this").await;
    terminal.sees("Yes.").await;
    terminal.line(" my secret").await;
    terminal.sees("Yes.").await;
    terminal.sees("> ").await;
    terminal.keys(CTRL_D).await;
    assert_eq!(terminal.end().await, Some(0));
    let file = home.directory().join("chat_history");
    let text = std::fs::read_to_string(&file).expect("a file");
    assert!(text.contains("Remember this") && !text.contains("secret"), "{text}");
    let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.sees("> ").await;
    terminal.keys("\u{1b}[A\r").await;
    terminal.sees("Yes.").await;
    assert_eq!(asked(&ollama)[2], json!([user("Remember this")]));
}

#[tokio::test]
async fn a_retry_leaves_turns_of_other_processes_unchanged() {
    let replies = ["Bad.", "There.", "Good.", "Sure."].map(saying);
    let ollama = answering(replies).await;
    let home = home(&ollama);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.line("Well?").await;
    terminal.sees("Bad.").await;
    // The turn is saved before the next prompt.
    terminal.sees("> ").await;
    let elsewhere = home.run_with_stdin(&["chat", "-c"], b"Elsewhere?").await;
    assert_eq!(elsewhere.stdout, "There.\n", "{}", elsewhere.stderr);
    terminal.line("/retry").await;
    terminal.sees("Good.").await;
    terminal.line("/quit").await;
    assert_eq!(terminal.end().await, Some(0));
    let ran = home.run_with_stdin(&["chat", "-c"], b"Really?").await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = [user("Well?"), assistant("Good."), user("Elsewhere?"), assistant("There."), user("Really?")];
    assert_eq!(asked(&ollama)[3], json!(said));
}
