//! `hob update`, with a server of releases.

use hob_testkit::{FakeServer, Reply};
use serde_json::{Value, json};

use crate::home::{Home, NOWHERE, finish};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn home(url: &str) -> Home {
    Home::with_config(&format!("[update]\nurl = \"{url}\"\n"))
}

async fn server(version: &str, notes: &str) -> FakeServer {
    let latest = json!({ "version": version, "date": "2026-11-20", "notes": notes, "files": ["install.sh"] });
    FakeServer::replying(Reply::json(200, latest.to_string())).await
}

#[tokio::test]
async fn a_newer_version_is_shown_with_what_is_new() {
    let server = server("99.1.0", "### Added\n- Flying \u{1b}[31mcars.").await;
    let home = home(&server.url());
    let ran = home.run(&["update"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[0], format!("Version    {VERSION}"));
    assert!(lines[1].starts_with("Installed  "), "{ran:?}");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_hob")).canonicalize().expect("the program");
    assert_eq!(lines[2], format!("Program    {}", program.display()));
    assert_eq!(
        lines[3..5],
        [format!("Release    {}", server.url()), "Newest     99.1.0 of 2026-11-20".to_owned()]
    );
    assert!(ran.stdout.contains("\nTo update"), "{ran:?}");
    assert!(ran.stdout.ends_with("New in 99.1.0\n### Added\n- Flying [31mcars.\n"), "{ran:?}");

    let told = home.run(&["update", "--json"]).await.stdout;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(
        (&told["version"], &told["is_newer"], &told["latest"]["version"], &told["error"]),
        (&json!(VERSION), &json!(true), &json!("99.1.0"), &Value::Null)
    );
}

#[tokio::test]
async fn long_notes_are_shown_in_part() {
    let notes: String = (1..=100).map(|number| format!("- line {number}\n")).collect();
    let server = server("99.1.0", &notes).await;
    let ran = home(&server.url()).run(&["update"]).await;
    assert!(ran.stdout.ends_with("\n- line 40\n"), "{ran:?}");
    assert_eq!(ran.stderr, "60 more lines. 'hob update --json' has all of them.\n");
}

#[tokio::test]
async fn the_newest_version_needs_no_update() {
    for version in [VERSION, "0.0.1"] {
        let server = server(version, "- Old.").await;
        let ran = home(&server.url()).run(&["update"]).await;
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.ends_with("\nThis is the newest version.\n"), "{ran:?}");
    }
}

#[tokio::test]
async fn without_an_address_the_way_to_update_is_shown() {
    let ran = Home::empty().run(&["update"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let expected = "Newest     unknown: no release address is configured. Set [update] url.";
    assert!(ran.stdout.lines().any(|line| line == expected), "{ran:?}");
    assert!(ran.stdout.contains("\nTo update"), "{ran:?}");
}

/// The program is copied to a directory of its own, where no file says how it was installed.
#[tokio::test]
async fn a_copy_of_unknown_origin_is_told_about_the_install_script() {
    let server = server("99.1.0", "").await;
    let home = home(&server.url());
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().canonicalize().expect("a path").join("hob");
    // Another process writes the copy: a program that this one has open for writing cannot be started.
    let script = r#"cp "$0" "$1" && exec "$1" update"#;
    let words = ["-c", script, env!("CARGO_BIN_EXE_hob"), copy.to_str().expect("UTF-8")];
    let ran = finish(home.program("sh", &words)).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "Installed  in a way that is not known: no file beside the program says it".to_owned(),
        format!("Program    {}", copy.display()),
        format!("  curl -fsSL {0}/install.sh | HOB_INSTALL_URL={0} sh", server.url()),
    ] {
        assert!(ran.stdout.lines().any(|found| found == line), "{line}: {ran:?}");
    }
    assert!(!ran.stdout.contains(", in "), "{ran:?}");
}

#[tokio::test]
async fn a_server_that_fails_is_an_error_after_what_is_known() {
    let home = home(NOWHERE);
    let ran = home.run(&["update"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.starts_with(&format!("Version    {VERSION}\n")), "{ran:?}");
    assert!(ran.stderr.starts_with(&format!("error: cannot read {NOWHERE}/latest.json: ")), "{ran:?}");
    let json_form = home.run(&["update", "--json"]).await;
    let told: Value = serde_json::from_str(&json_form.stdout).expect("JSON");
    assert_eq!((json_form.code, &told["latest"], &told["is_newer"]), (Some(1), &Value::Null, &Value::Null));
    assert!(told["error"].as_str().is_some_and(|error| error.starts_with("cannot read")), "{told}");

    let page = FakeServer::replying(Reply::new(200, "text/html", "<html>")).await;
    let ran = self::home(&page.url()).run(&["update"]).await;
    assert!(ran.code == Some(1) && ran.stderr.contains("is no list of a release"), "{ran:?}");
}
