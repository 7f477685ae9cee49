//! The program is ended at every single change that it makes to a file: a write, a rename, a sync.

use std::time::Duration;

use rustix::process::Signal;

use super::acknowledged::{Ledger, Surroundings, work};
use super::client::Client;
use super::outcome::{Promise, check, databases};
use super::traced::{Crash, Journal};
use super::{Figure, report, stride};
use crate::home::{Home, finish};
use crate::running::Running;

/// How long a process may take to end that was killed.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A server that is ended at the change of this number while clients use it. Returns whether it was, and what is wrong afterwards.
async fn serve_until(kill_at: usize, crash: Crash, promise: Promise) -> (bool, Vec<String>) {
    let surroundings = Surroundings::start().await;
    let home = Home::with_config(&surroundings.config());
    let journal = Journal::new(crash);
    let ledger = Ledger::default();
    let command = journal.hob(&home, Some(kill_at), &["serve", "--port", "0"]);
    let mut was_ended = true;
    // It may end before it serves.
    if let Ok(mut server) = Running::try_of(command).await {
        let client = Client::of(server.address());
        was_ended = tokio::select! {
            biased;
            () = server.ended() => true,
            done = work(&client, &surroundings.gateway, &ledger) => done.is_none(),
        };
        if !was_ended {
            // The work is done: a crash at this moment is the last one.
            server.signal(Signal::USR1);
        }
        let ended = tokio::time::timeout(END_LIMIT, server.ended()).await;
        assert!(ended.is_ok(), "a request fails at change {kill_at}, but the server runs");
    }
    journal.settle(&home, kill_at).await;
    let wrong = check(&home, &surroundings, &ledger.read(), promise).await;
    (was_ended, wrong.into_iter().map(|wrong| format!("change {kill_at}, {crash:?}: {wrong}")).collect())
}

/// Ends the server at one change after the other until it gets through.
pub async fn serve_until_each(name: &'static str, crash: Crash, promise: Promise) {
    let mut figure = report(name, "crashes");
    let mut wrong = Vec::new();
    let mut number = 1;
    loop {
        let (was_ended, found) = serve_until(number, crash, promise).await;
        for line in &found {
            eprintln!("{line}");
        }
        wrong.extend(found);
        figure.count += 1;
        figure.failures = wrong.len();
        if !was_ended {
            break;
        }
        number += stride();
    }
    assert!(number > 100, "the server makes more changes than {number}");
    assert!(wrong.is_empty(), "{} failures:\n{}", wrong.len(), wrong.join("\n"));
}

/// Ends a command at one change after the other. After each, the command succeeds when it is run again, and the databases are whole.
/// The figure counts the crashes.
pub async fn run_until_each(figure: &mut Figure, prepare: &[&[&str]], arguments: &[&str], crash: Crash) {
    let documents = tempfile::tempdir().expect("a directory");
    for number in 0..20 {
        let text = format!("# Note {number}\n\nThe crane{number} flies over the marsh.\n");
        std::fs::write(documents.path().join(format!("{number}.md")), text).expect("a file");
    }
    let documents = documents.path().to_str().expect("text");
    let arguments: Vec<&str> =
        arguments.iter().map(|word| if *word == "DOCUMENTS" { documents } else { *word }).collect();
    let mut number = 1;
    loop {
        let home = Home::with_engines(&[]);
        for command in prepare {
            let ran = home.run(command).await;
            assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
        }
        let journal = Journal::new(crash);
        let ran = finish(journal.hob(&home, Some(number), &arguments)).await;
        journal.settle(&home, number).await;
        let again = home.run(&arguments).await;
        let what = format!("{arguments:?} at change {number}, {crash:?}");
        // The command may have done its work before it ended. Then a second one says that there is nothing to do.
        let is_done = again.stderr.contains("already") || again.stderr.contains("which is final");
        assert!(again.code == Some(0) || is_done, "{what}: {}", again.stderr);
        assert_eq!(databases(home.directory()), [""; 0], "{what}");
        if ran.code == Some(0) {
            return;
        }
        figure.count += 1;
        assert_eq!(ran.code, Some(137), "{what}: {}", ran.stderr);
        number += stride();
    }
}

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn a_server_that_is_killed_at_any_change_loses_nothing_and_does_nothing_twice() {
    serve_until_each("kill", Crash::Kill, Promise::All).await;
}

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn a_server_that_is_killed_in_the_middle_of_any_write_loses_nothing() {
    serve_until_each("torn-write", Crash::TornWrite, Promise::All).await;
}

#[tokio::test]
#[ignore = "takes minutes: ./dev test --faults"]
async fn a_command_that_is_killed_at_any_change_can_be_repeated() {
    let mut figure = report("commands-kill", "crashes");
    let task = ["scheduler", "create", "Say hello.", "--type", "interval", "--value", "3600"];
    let with_key: [&[&str]; 1] = [&["key", "create", "ana"]];
    let cases: [(&[&[&str]], &[&str]); 6] = [
        (&[], &["init", "--force"]),
        (&[], &task),
        (&[], &["key", "create", "ana"]),
        (&[], &["memory", "index", "DOCUMENTS"]),
        (&with_key, &["key", "disable", "ana"]),
        (&with_key, &["key", "revoke", "ana"]),
    ];
    for (prepare, arguments) in cases {
        run_until_each(&mut figure, prepare, arguments, Crash::Kill).await;
        run_until_each(&mut figure, prepare, arguments, Crash::TornWrite).await;
    }
}
