//! Commands of `hob chat` that change a question or use an answer.

use hob_testkit::Reply;
use serde_json::{Value, json};

use crate::fakes::{self, END, piece};
use crate::home::Home;
use crate::terminal::{CTRL_D, Terminal};

#[tokio::test]
async fn instructions_settings_and_files_are_part_of_the_question() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("In March.") + END)).await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let file = home.documents().join("roses.txt");
    std::fs::write(&file, "The roses are cut back in March.\n").expect("a file");
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.sees("smollm2:latest on ollama").await;
    terminal.line("/system Be brief.").await;
    terminal.sees("Instructions: Be brief.").await;
    terminal.line("/set temperature 0.25").await;
    terminal.sees("Now: temperature 0.25").await;
    terminal.line("/set max_tokens 9").await;
    terminal.sees("Now: temperature 0.25, max_tokens 9").await;
    terminal.line("/attach /nowhere/x.txt").await;
    terminal.sees("cannot read /nowhere/x.txt").await;
    terminal.line(&format!("/attach {}", file.display())).await;
    terminal.sees("The next message has the document").await;
    terminal.line("When?").await;
    terminal.sees("In March.").await;
    terminal.line("/copy").await;
    terminal.sees("Copied the last answer.").await;
    terminal.sees("> ").await;
    terminal.keys(CTRL_D).await;
    assert_eq!(terminal.end().await, Some(0));
    let base64_of_the_answer = "SW4gTWFyY2gu";
    let sequence = format!("\u{1b}]52;c;{base64_of_the_answer}\u{7}");
    assert!(terminal.raw().contains(&sequence), "{:?}", terminal.raw());

    let requests = ollama.requests();
    let chat = requests.iter().rfind(|request| request.path == "/api/chat").expect("a chat");
    let asked: Value = serde_json::from_slice(&chat.body).expect("JSON");
    let expected = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "File roses.txt:\n\nThe roses are cut back in March.\n\nEnd of file roses.txt.\nWhen?" },
    ]);
    assert_eq!(asked["messages"], expected);
    let options = &asked["options"];
    assert_eq!((&options["temperature"], &options["num_predict"]), (&json!(0.25), &json!(9)));
}

/// Everything that is typed or pasted at once is one read of the terminal.
#[tokio::test]
async fn lines_that_are_typed_ahead_are_kept() {
    let ollama = fakes::ollama_chatting(|_| Reply::ndjson(piece("In March.") + END)).await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let mut terminal = Terminal::start(&home, &["chat"]);
    terminal.sees("> ").await;
    terminal.keys("/system Be brief.\r/set temperature 0.25\rWhen?\r").await;
    terminal.sees("Instructions: Be brief.").await;
    terminal.sees("Now: temperature 0.25").await;
    terminal.sees("In March.").await;
    terminal.sees("> ").await;
    terminal.keys(CTRL_D).await;
    assert_eq!(terminal.end().await, Some(0));
}
