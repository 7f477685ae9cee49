//! Tests the documentation: runs the commands of each page in order, as a reader would, and compares their output
//! with the page. `page.rs` and CONTRIBUTING.md describe how code blocks are marked.

mod engine;
mod output_match;
mod page;
mod session;

use std::collections::BTreeSet;
use std::path::Path;

use hob_testkit::repository::{pages, root};

use self::page::{Action, parts};
use self::session::{Session, Setup};

/// Only an Ollama is running.
const OLLAMA: Setup = Setup { ollama: &["qwen3:8b"], hub: false, gateway: false };

/// Nothing is running; models can be downloaded.
const ALONE: Setup = Setup { ollama: &[], hub: true, gateway: false };

/// A test for each page with commands.
macro_rules! pages {
    ($($name:ident: $file:literal, $setup:expr;)*) => {
        const PAGES: &[&str] = &[$($file),*];
        $(
            #[tokio::test]
            async fn $name() {
                follow($file, $setup).await;
            }
        )*
    };
}

pages! {
    readme: "README.md", OLLAMA;
    agents_page: "docs/agents.md", OLLAMA;
    terminal_chat_page: "docs/chat.md", OLLAMA;
    briefing_page: "docs/briefing.md", OLLAMA;
    browser_chat_page: "docs/chat-page.md", OLLAMA;
    saved_chats_page: "docs/chats.md", OLLAMA;
    channels_page: "docs/channels.md", Setup { gateway: true, ..OLLAMA };
    engines_page: "docs/engines.md", OLLAMA;
    install_page: "docs/install.md", OLLAMA;
    memory_page: "docs/memory.md", Setup { hub: true, ..OLLAMA };
    operations_page: "docs/operations.md", OLLAMA;
    routing_page: "docs/routing.md", Setup { ollama: &["qwen3:0.6b", "qwen3:8b", "qwen2.5-coder:7b"], ..OLLAMA };
    security_page: "docs/security.md", OLLAMA;
    serving_page: "docs/serving.md", OLLAMA;
    scheduler_page: "docs/scheduler.md", OLLAMA;
    telemetry_page: "docs/telemetry.md", OLLAMA;
    troubleshooting_page: "docs/troubleshooting.md", OLLAMA;
    // With the real model, in the embedded engine.
    with_a_real_model_first_ten_minutes_page: "docs/first-ten-minutes.md", ALONE;
    with_a_real_model_embedded_page: "docs/embedded.md", ALONE;
}

async fn follow(file: &str, setup: Setup) {
    let text = std::fs::read_to_string(root().join(file)).expect("the page is there");
    let mut session = Session::start(setup).await;
    for part in parts(&text) {
        if let Err(complaint) = session.follow(&part).await {
            panic!("{file}:{}: {complaint}", part.line);
        }
    }
}

#[test]
fn every_page_with_commands_is_tested() {
    let mut files = vec![root().join("README.md")];
    files.extend(pages());
    let with_commands: BTreeSet<String> = files
        .iter()
        .filter(|file| {
            let text = std::fs::read_to_string(file).expect("text");
            parts(&text).iter().any(|part| !matches!(part.action, Action::Configure(_)))
        })
        .map(|file| file.strip_prefix(root()).expect("below the root").display().to_string())
        .collect();
    let followed: BTreeSet<String> = PAGES.iter().map(|page| (*page).to_owned()).collect();
    assert_eq!(
        with_commands, followed,
        "each page with commands has a line in 'pages!' above; commands that cannot be run are marked \
         '<!-- not run: WHY -->' on the line before their fence"
    );
}

/// The lines of the code blocks marked `text`.
fn quoted(page: &str) -> Vec<&str> {
    let mut quoted = Vec::new();
    let mut lines = page.lines();
    while lines.by_ref().any(|line| line == "```text") {
        quoted.extend(lines.by_ref().take_while(|line| *line != "```").filter(|line| !line.is_empty()));
    }
    quoted
}

fn sources_below(directory: &Path, found: &mut String) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources_below(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push_str(&std::fs::read_to_string(&path).expect("text"));
        }
    }
}

/// Joins strings that continue on the next line.
fn on_one_line(code: &str) -> String {
    let mut pieces = code.split("\\\n");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |whole, piece| whole + piece.trim_start())
}

#[test]
fn the_troubleshooting_page_quotes_real_messages() {
    let page = std::fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the page is there");
    let mut code = String::new();
    for entry in std::fs::read_dir(root().join("crates")).expect("the crates") {
        sources_below(&entry.expect("an entry").path().join("src"), &mut code);
    }
    let code = on_one_line(&code);
    let quoted = quoted(&page);
    assert!(!quoted.is_empty());
    for line in quoted {
        // Varying parts are placeholders in the code, and very short pieces would match anything.
        for piece in line.split('…').map(str::trim).filter(|piece| piece.len() > 6) {
            assert!(code.contains(piece), "no error of the program says '{piece}'");
        }
    }
}
