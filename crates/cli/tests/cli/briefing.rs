//! A morning briefing with every source, from scripted servers to a channel.

use std::sync::{Arc, Mutex};

use hob_testkit::{FakeServer, Gateway, GatewayScript, Reply};
use serde_json::Value;

use crate::fakes;
use crate::home::{Home, engines_config};

const FEED: &str = r#"<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>
<item><title>Heron seen at the pond</title><link>https://example.org/heron</link></item></channel></rss>"#;

/// A calendar with one event of three days around today, whatever the time zone is.
pub fn calendar() -> String {
    let today = jiff::Zoned::now().date();
    let yesterday = today.yesterday().expect("a day");
    let end = today.tomorrow().and_then(jiff::civil::Date::tomorrow).expect("a day");
    let day = |date: jiff::civil::Date| date.strftime("%Y%m%d").to_string();
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//test//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTAMP:20260101T000000Z\r\n\
         DTSTART;VALUE=DATE:{}\r\nDTEND;VALUE=DATE:{}\r\nSUMMARY:Dentist at the harbour\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        day(yesterday),
        day(end)
    )
}

#[tokio::test]
async fn a_briefing_reads_calendar_and_feeds_and_names_what_failed() {
    let sources = FakeServer::start(|request| match request.path.as_str() {
        "/me.ics" => Reply::new(200, "text/calendar", calendar()),
        "/feed.xml" => Reply::new(200, "application/rss+xml", FEED),
        // The weather is down.
        _ => Reply::json(503, "{}"),
    })
    .await;
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&asked);
    let ollama = fakes::ollama_chatting(move |request| {
        heard.lock().expect("unlocked").push(request.text());
        Reply::transcript("ollama/chat_stream")
    })
    .await;
    let gateway = Gateway::start(GatewayScript::default()).await;
    let config = format!(
        "{}[channel]\nenabled = true\ngateway_url = \"{}\"\n[sources.weather]\nurl = \"{}/forecast\"\n",
        engines_config(&[("ollama", &ollama.url())]),
        gateway.url(),
        sources.url()
    );
    let home = Home::with_config(&config);
    let calendar = format!("calendar={}/me.ics", sources.url());
    let feeds = format!("feeds={}/feed.xml", sources.url());
    let added = home
        .run(&[
            "recipes",
            "add",
            "briefing",
            "--yes",
            "--channel",
            "slack",
            "--set",
            &calendar,
            "--set",
            &feeds,
            "--set",
            "place=52.52,13.41,Berlin",
        ])
        .await;
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let ran = home.run(&["scheduler", "run", "briefing"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("calls before the prompt failed: weather: "), "{}", ran.stderr);
    let prompt = asked.lock().expect("unlocked").last().expect("a question").clone();
    for part in
        ["Dentist at the harbour", "Heron seen at the pond", "This call failed: ", "Write my briefing"]
    {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    let sent = gateway.requests().into_iter().find(|request| request.path == "/send").expect("a message");
    let sent: Value = serde_json::from_slice(&sent.body).expect("JSON");
    assert_eq!(sent["channel"], "slack");
}
