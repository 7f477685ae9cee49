//! `hob sources`, and an agent that reads sources.

use hob_testkit::{FakeServer, Reply};
use serde_json::{Value, json};

use crate::home::{Home, Ran};

const FEED: &str = "<rss><channel><item><title>Rain stops play</title><link>https://example.org/1</link></item></channel></rss>";

/// A server with a feed and a page; other paths are missing.
async fn server() -> FakeServer {
    FakeServer::start(|request| match request.path.as_str() {
        "/feed?key=s3cret" => Reply::new(200, "application/rss+xml", FEED),
        "/page" => Reply::new(200, "text/html", "<p>one</p><p>two</p>"),
        _ => Reply::new(404, "text/plain", "missing"),
    })
    .await
}

fn home(server: &FakeServer) -> Home {
    let url = server.url();
    Home::with_config(&format!(
        "[sources]\ncalendar = {{ work = {{ url = \"{url}/me.ics?key=s3cret\" }} }}\n\
         feeds = {{ news = \"{url}/feed?key=s3cret\" }}\npages = {{ times = \"{url}/page\" }}\n"
    ))
}

/// A table without the spaces at the ends of its lines.
fn without_padding(table: &str) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[tokio::test]
async fn sources_are_listed_without_their_addresses() {
    let server = server().await;
    let ran = home(&server).run(&["sources", "list"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    insta::assert_snapshot!(without_padding(&ran.stdout), @r"
    KIND      NAME   PLACE
    calendar  work   127.0.0.1
    feed      news   127.0.0.1
    page      times  127.0.0.1
    ");
    assert!(server.requests().is_empty(), "a list reads nothing");
}

#[tokio::test]
async fn a_check_reads_each_source_and_fails_if_one_cannot_be_read() {
    let server = server().await;
    let home = home(&server);
    let ran = home.run(&["sources", "check"]).await;
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    insta::assert_snapshot!(without_padding(&ran.stdout), @r"
    KIND      NAME   STATE   RESULT
    calendar  work   failed  the server answered 404 Not Found
    feed      news   ok      1 entry
    page      times  ok      2 lines of text
    ");
    let one = home.run(&["sources", "check", "news", "--json"]).await;
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    let checked: Value = serde_json::from_str(&one.stdout).expect("JSON");
    assert_eq!(
        checked,
        json!([{ "kind": "feed", "name": "news", "place": "127.0.0.1", "ok": true, "message": "1 entry" }])
    );
    let unknown = home.run(&["sources", "check", "wether"]).await;
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("there is no source 'wether'; there are work, news, times"),
        "{}",
        unknown.stderr
    );
}

#[tokio::test]
async fn without_sources_the_command_says_how_to_add_one() {
    let home = Home::empty();
    let ran = home.run(&["sources", "list", "--json"]).await;
    assert_eq!(ran, Ran { code: Some(0), stdout: "[]\n".into(), stderr: String::new() });
    let ran = home.run(&["sources", "check"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("No sources are configured. Add calendars"), "{}", ran.stderr);
}

#[tokio::test]
async fn the_tools_of_sources_run_and_a_missing_one_says_what_it_needs() {
    let server = server().await;
    let home = home(&server);
    let ran = home.run(&["tools", "run", "feeds"]).await;
    let stdout = "[news]\n- Rain stops play\n  https://example.org/1\n".to_owned();
    assert_eq!(ran, Ran { code: Some(0), stdout, stderr: String::new() });
    let first = home.run(&["tools", "run", "page_changes"]).await;
    assert!(first.stdout.contains("Now watched"), "{}", first.stdout);
    let second = home.run(&["tools", "run", "page_changes"]).await;
    assert!(second.stdout.contains("No change since"), "the text is remembered: {}", second.stdout);
    let weather = home.run(&["tools", "run", "weather"]).await;
    assert_eq!(weather.code, Some(1));
    assert!(
        weather.stderr.contains("no place is configured. Set latitude and longitude"),
        "{}",
        weather.stderr
    );
    let doctor = home.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("3 sources configured"), "{}", doctor.stdout);
    assert!(!format!("{}{}", doctor.stdout, doctor.stderr).contains("s3cret"));
}
