//! A morning briefing with every source, from scripted servers to a channel.

use std::sync::{Arc, Mutex};

use hob_testkit::{FakeServer, Gateway, GatewayScript, Recorded, Reply};
use serde_json::Value;

use crate::fakes::{self, END, piece};
use crate::home::{Home, Ran, engines_config};

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

/// What a run of the briefing left behind.
struct Briefing {
    ran: Ran,
    /// What the channel got.
    sent: Value,
    /// What the model was asked.
    asked: Vec<String>,
}

/// Sets up a briefing with a calendar, a feed and a weather service that is down, and runs it once.
async fn run_briefing(chat: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Briefing {
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
        chat(request)
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
    let sent = gateway.requests().into_iter().find(|request| request.path == "/send").expect("a message");
    let sent: Value = serde_json::from_slice(&sent.body).expect("JSON");
    let asked = asked.lock().expect("unlocked").clone();
    Briefing { ran, sent, asked }
}

/// The lists of a briefing stand in this order, with their links and with what is missing.
fn assert_listed(text: &str) {
    let mut rest = text;
    for part in [
        "## Appointments\n- ",
        ", all day: Dentist at the harbour\n\n## Weather\nNot available: ",
        "\n\n## News\n- Heron seen at the pond\n  https://example.org/heron\n\n## Notes\nNone.",
    ] {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part} is missing: {text}"));
        rest = after;
    }
}

#[tokio::test]
async fn a_briefing_lists_what_it_read_and_names_what_failed() {
    let Briefing { ran, sent, asked } =
        run_briefing(|_| Reply::ndjson(piece("See the ") + &piece("dentist.") + END)).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("calls before the prompt failed: weather: "), "{}", ran.stderr);
    assert!(!ran.stderr.contains("no summary"), "{}", ran.stderr);
    assert_eq!(sent["channel"], "slack");
    let content = sent["content"].as_str().expect("text");
    assert_listed(content);
    assert!(content.ends_with("\n\n## Summary\nSee the dentist."), "{content}");
    assert_eq!(ran.stdout, format!("{content}\n"), "printed as it is delivered");
    let prompt = asked.last().expect("a question");
    for part in ["Dentist at the harbour", "Heron seen at the pond", "Summarise the results"] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
    for part in ["https://example.org/heron", "This call failed: "] {
        assert!(!prompt.contains(part), "{part}: {prompt}");
    }
}

#[tokio::test]
async fn a_briefing_is_delivered_without_a_model_that_answers() {
    let Briefing { ran, sent, .. } = run_briefing(|_| Reply::json(400, r#"{"error":"out of order"}"#)).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let content = sent["content"].as_str().expect("text");
    assert_listed(content);
    assert!(!content.contains("## Summary"), "{content}");
    assert!(ran.stderr.contains("the model added no summary: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("out of order"), "{}", ran.stderr);
}
