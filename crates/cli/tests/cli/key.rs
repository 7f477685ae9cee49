//! `hob key`, `hob audit`, and a server that does not start with a misspelt setting.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::home::Home;
use crate::running::Running;
use crate::{fakes, http};

async fn json_of(home: &Home, arguments: &[&str]) -> Value {
    let ran = home.run(arguments).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    serde_json::from_str(&ran.stdout).expect("JSON")
}

#[tokio::test]
async fn a_key_is_created_listed_changed_and_revoked_and_its_secret_is_shown_once() {
    let home = Home::empty();
    let create =
        ["key", "create", "ana", "--models", "qwen*,auto", "--parallel", "4", "--budget", "5 USD/month"];
    let ran = home.run(&create).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let secret = ran.stdout.trim();
    assert!(secret.starts_with("hob_") && secret.len() == 60, "{secret}");
    assert!(ran.stderr.contains("copy it now"), "{}", ran.stderr);
    let twice = home.run(&["key", "create", "ana"]).await;
    assert_eq!((twice.code, twice.stdout.as_str()), (Some(1), ""));
    assert!(twice.stderr.starts_with("error: there is a key 'ana' already."), "{}", twice.stderr);
    assert!(twice.stderr.contains("'hob key rotate ana'"), "{}", twice.stderr);
    let list = home.run(&["key", "list"]).await;
    let columns: Vec<&str> = list.stdout.lines().nth(1).expect("a key").split("  ").map(str::trim).collect();
    let columns: Vec<&str> = columns.into_iter().filter(|cell| !cell.is_empty()).collect();
    assert_eq!(columns, ["ana", "member", "active", "qwen*, auto", "5 USD/month, 4 at once", "never"]);
    let shown = json_of(&home, &["key", "show", "ana", "--json"]).await;
    assert_eq!(
        (&shown["role"], &shown["models"], &shown["usage"][0]["used_usd"]),
        (&json!("member"), &json!(["qwen*", "auto"]), &json!(0.0))
    );
    home.run(&["key", "rotate", "ana"]).await;
    let shown = home.run(&["key", "show", "ana"]).await.stdout;
    let is_shown = |line: &str| line.starts_with("Old secret") && line.contains("valid until ");
    assert!(shown.lines().any(is_shown), "{shown}");
    let rotated = json_of(&home, &["key", "rotate", "ana", "--overlap", "0", "--json"]).await;
    assert_ne!(rotated["secret"], secret);
    assert_eq!(rotated["previous_secret_until"], Value::Null);
    assert!(!home.run(&["key", "show", "ana"]).await.stdout.contains("Old secret"));
    for (word, status) in [("disable", "disabled"), ("enable", "active"), ("revoke", "revoked")] {
        assert_eq!(json_of(&home, &["key", word, "ana", "--json"]).await["status"], status);
    }
    let again = home.run(&["key", "enable", "ana"]).await;
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("is revoked, which is final"), "{}", again.stderr);
    let audit = json_of(&home, &["audit", "list", "--json"]).await;
    let actions: Vec<&str> =
        audit.as_array().expect("a list").iter().filter_map(|entry| entry["action"].as_str()).collect();
    assert_eq!(
        actions,
        ["key.revoke", "key.enable", "key.disable", "key.rotate", "key.rotate", "key.create"]
    );
    let verified = home.run(&["audit", "verify"]).await;
    assert!(verified.stdout.starts_with("The audit log is unbroken: 6 changes"), "{}", verified.stdout);
    let exported = home.run(&["audit", "export"]).await;
    assert_eq!(exported.stdout.lines().count(), 6);
    assert!(!exported.stdout.contains(&secret[20..]), "the log has no secret");
}

#[tokio::test]
async fn a_key_names_the_collections_that_it_may_read() {
    let home = Home::empty();
    let create = ["key", "create", "ana", "--memory", "team,handbook", "--memory", "faq", "--json"];
    assert_eq!(json_of(&home, &create).await["memory"], json!(["team", "handbook", "faq"]));
    assert_eq!(json_of(&home, &["key", "create", "ben", "--json"]).await["memory"], Value::Null);
    json_of(&home, &["key", "create", "boss", "--role", "owner", "--json"]).await;
    for (name, shown) in [("ana", "team, handbook, faq"), ("ben", "none"), ("boss", "all")] {
        let ran = home.run(&["key", "show", name]).await;
        let line = ran.stdout.lines().find(|line| line.starts_with("Memory")).expect("a line");
        assert_eq!(line.trim_start_matches("Memory").trim(), shown);
    }
}

#[tokio::test]
async fn an_upload_that_no_server_has_indexed_is_indexed_only_if_its_key_is_valid() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    json_of(&home, &["key", "create", "ana", "--memory", "team", "--json"]).await;
    let team = home.directory().join("documents/team");
    std::fs::create_dir_all(&team).expect("a directory");
    for (file, key) in [("shed.md", "ana"), ("gate.md", "ben")] {
        let payer = json!({ "key": key, "rule": null });
        std::fs::write(team.join(format!(".pending-{file}")), payer.to_string()).expect("written");
        std::fs::write(team.join(file), "The code is 4711.").expect("written");
    }
    let server = Running::start(&home, &[]).await;
    let listed = async {
        loop {
            let jobs = http::get(server.address(), "/v1/memory/jobs").await.all().await;
            if jobs.matches("\"finished_at\":\"").count() == 2 {
                return jobs;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let jobs = timeout(crate::home::WAIT_LIMIT, listed).await.expect("both jobs end");
    let refused = "the key that uploaded it is no longer valid. The owner can upload it again";
    assert_eq!(jobs.matches(refused).count(), 1, "{jobs}");
    let documents = http::get(server.address(), "/v1/memory/documents").await.all().await;
    assert!(documents.contains("shed.md") && !documents.contains("gate.md"), "{documents}");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_new_key_says_who_needs_one_and_which_collections_are_empty() {
    let home = Home::empty();
    let ran = home.run(&["key", "create", "ana", "--memory", "nope"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("From now on, requests from other machines need a valid key.\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("warning: the collection 'nope' has no documents yet."), "{}", ran.stderr);
}

#[tokio::test]
async fn a_change_changes_what_is_given_and_removes_a_limit() {
    let home = Home::empty();
    let create = ["key", "create", "ana", "--models", "qwen*", "--parallel", "4", "--budget", "5 USD/month"];
    let create = [&create[..], &["--engines", "ollama", "--expires", "90d", "--memory", "team"]].concat();
    assert_eq!(home.run(&create).await.code, Some(0));
    let mut expected = json_of(&home, &["key", "show", "ana", "--json"]).await;
    expected.as_object_mut().expect("an object").remove("usage");

    let change =
        ["key", "change", "ana", "--models", "llama*,auto", "--requests-per-minute", "60", "--cloud"];
    expected["models"] = json!(["llama*", "auto"]);
    expected["requests_per_minute"] = json!(60);
    expected["cloud"] = json!(true);
    assert_eq!(json_of(&home, &[&change[..], &["--json"]].concat()).await, expected);

    let limits =
        ["--models", "all", "--engines", "all", "--memory", "none", "--cloud", "no", "--budget", "none"];
    let numbers = ["--requests-per-minute", "none", "--parallel", "none", "--expires", "never", "--json"];
    for field in ["models", "engines", "memory", "requests_per_minute", "parallel", "expires_at"] {
        expected[field] = Value::Null;
    }
    expected["cloud"] = json!(false);
    expected["budgets"] = json!([]);
    let change = [&["key", "change", "ana"], &limits[..], &numbers[..]].concat();
    assert_eq!(json_of(&home, &change).await, expected);

    let ran = home.run(&["key", "change", "ana", "--expires", "12h"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "The key 'ana' is changed.\n"), "{}", ran.stderr);
    let audit = json_of(&home, &["audit", "list", "-n", "1", "--json"]).await;
    assert_eq!(audit[0]["action"], "key.change");
}

#[tokio::test]
async fn a_list_of_no_changes_is_not_called_an_empty_log() {
    let ran = Home::empty().run(&["audit", "list", "-n", "0"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.contains("expected a whole number, at least 1"), "{}", ran.stderr);
}

#[tokio::test]
async fn what_is_wrong_with_a_key_is_said_in_a_sentence() {
    let home = Home::empty();
    assert_eq!(home.run(&["key", "create", "ben"]).await.code, Some(0));
    for (arguments, words) in [
        (&["key", "create", "a b"][..], "is not a name for a key"),
        (&["key", "create", "ana", "--budget", "much"], "write '5 USD/month' or '200k tokens/day'"),
        (&["key", "create", "ana", "--expires", "soon"], "write '2027-01-31', '30d' or '12h'"),
        (&["key", "create", "ana", "--memory", "team,a/b"], "'a/b' is not a name for a collection"),
        (&["key", "show", "unknown"], "there is no key 'unknown'"),
        (&["key", "change", "unknown", "--expires", "90d"], "there is no key 'unknown'"),
        (&["key", "change", "ben"], "there is nothing to change"),
        (&["key", "change", "ben", "--parallel", "many"], "expected a whole number, or none"),
        (&["key", "change", "ben", "--memory", "all"], "--memory all is for a key with the role owner"),
    ] {
        let ran = home.run(arguments).await;
        assert!(ran.code != Some(0) && ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn a_server_does_not_start_with_a_misspelt_setting() {
    let home = Home::with_config("[server]\napi_kye = \"s3cret\"\n");
    let ran = home.run(&["serve"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("unknown key 'server.api_kye' (did you mean 'server.api_key'?)"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("s3cret"));
}

#[tokio::test]
async fn a_task_names_the_key_that_pays_for_it() {
    let home = Home::empty();
    assert_eq!(home.run(&["key", "create", "ana"]).await.code, Some(0));
    let create = |key: &'static str| {
        [
            "scheduler",
            "create",
            "Capital?",
            "--type",
            "interval",
            "--value",
            "31536000",
            "--json",
            "--key",
            key,
        ]
    };
    let task = json_of(&home, &create("ana")).await;
    assert_eq!(task["key"], "ana");
    let shown = home.run(&["scheduler", "show", task["id"].as_str().expect("an id")]).await;
    let key = shown.stdout.lines().find(|line| line.starts_with("Key")).expect("the key is shown");
    assert_eq!(key.split_whitespace().collect::<Vec<_>>(), ["Key", "ana"]);
    assert!(shown.stdout.contains("made up for with a single run"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("Tools"), "the agent simple uses none: {}", shown.stdout);
    let list = home.run(&["scheduler", "list"]).await.stdout;
    let last: Vec<_> = list.lines().map(|line| line.split_whitespace().next_back()).collect();
    assert_eq!(last, [Some("KEY"), Some("ana")], "{list}");
    assert_eq!(home.run(&["key", "revoke", "ana"]).await.code, Some(0));
    for name in ["ana", "ben"] {
        let refused = home.run(&create(name)).await;
        let reason = format!("error: there is no valid key '{name}'. 'hob key list' shows the keys.\n");
        assert_eq!((refused.code, refused.stderr), (Some(1), reason));
    }
}
