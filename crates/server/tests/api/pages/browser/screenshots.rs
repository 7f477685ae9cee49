//! The pictures of all pages in the documentation, and the weight of these pages.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_app::hob_database;
use hob_app::startup::telemetry::telemetry_options;
use hob_config::Config;
use hob_core::{Delta, FinishReason, RequestSource, Usage};
use hob_engines::Style;
use hob_keys::KeyRole;
use hob_telemetry::{Inference, InferenceEnd, TelemetryService};
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::json;

use super::chat::server_for;
use super::chromium::{Browser, Device};
use super::page_weight::assert_light;
use super::pictures::{Pictures, SCREEN};
use crate::admin::channel_details::MessageServer;
use crate::admin::documents::DocumentServer;
use crate::admin::model_files::ModelServer;
use crate::admin::savings::recorded_in;
use crate::admin::settings::SettingsServer;
use crate::admin::tasks::TaskServer;
use crate::fixtures::loopback_config;
use crate::key_fixtures::post;
use crate::support::{TestServer, engine_at, models};

const ENTER: &str = "\u{e007}";

const DARK: Device = Device { scheme: "dark", ..SCREEN };

/// A month of calls to three models, the same every time.
fn month(now: SystemTime) -> Vec<Inference> {
    let models = [("ollama", "qwen3:8b", 5), ("ollama", "llama3.2:3b", 3), ("llamacpp", "gpt-oss-20b", 2)];
    let mut calls = Vec::new();
    for day in 0..30u64 {
        for (engine, model, share) in models {
            let quiet_day = (day + 2) % 7 < 2;
            for call in 0..share * if quiet_day { 1 } else { 3 + (day * 7) % 4 } {
                let chance = (day * 31 + call * 17 + share * 13) % 97;
                let latency = Duration::from_millis(600 + chance * 45);
                calls.push(Inference {
                    started: now - Duration::from_secs(day * 86_400 + chance * 280 + call * 60),
                    run: Arc::from("run"),
                    source: RequestSource::ALL[usize::from(chance % 3 == 0)],
                    engine: engine.to_owned(),
                    model: model.to_owned(),
                    agent: chance.is_multiple_of(4).then(|| "orchestrator".to_owned()),
                    key: None,
                    end_user: None,
                    details: Default::default(),
                    streamed: true,
                    usage: Usage {
                        prompt_tokens: 2_000 + chance * 190,
                        completion_tokens: 300 + chance * 14,
                        cached_tokens: None,
                        reasoning_tokens: None,
                        load_time: None,
                    },
                    estimated: false,
                    latency,
                    first_token: Some(latency / 7),
                    energy: None,
                    ending: InferenceEnd::Complete(FinishReason::Stop),
                });
            }
        }
    }
    calls.sort_by_key(|call| call.started);
    calls
}

/// Opens a page, and waits until an element shows what makes it complete.
async fn open(server: &TestServer, path: &str, (id, text): (&str, &str)) -> Browser {
    let browser = Browser::open(SCREEN).await;
    browser.go(&server.url(path)).await;
    browser.shows(id, text).await;
    assert_light(&browser, path).await;
    browser
}

/// The picture of a page that shows everything at once.
async fn check_picture(browser: &Browser, name: &'static str) {
    let mut pictures = Pictures::default();
    pictures.take(browser, name, SCREEN).await;
    pictures.check(browser).await;
}

#[tokio::test]
async fn picture_of_the_dashboard() {
    let home = tempfile::tempdir().unwrap();
    let record = TelemetryService::open(&telemetry_options(&Config::default()), hob_database(home.path()));
    record.store().unwrap().record_batch(&month(SystemTime::now()), record.prices()).unwrap();
    let fake = FakeServer::start(|_| models()).await;
    let engine = engine_at(&fake, Style::LLAMACPP);
    let server = TestServer::start_parts(recorded_in(&record, engine), loopback_config()).await;

    let browser = open(&server, "/dashboard", ("connection", "answers")).await;
    browser.run("document.getElementById('tab-month').click()").await;
    let mut pictures = Pictures::default();
    for (name, device) in [("dashboard.png", SCREEN), ("dashboard-dark.png", DARK)] {
        pictures.take(&browser, name, Device { height: 900, ..device }).await;
    }
    pictures.check(&browser).await;
}

#[tokio::test]
async fn picture_of_the_documents_page() {
    let server = DocumentServer::open().await;
    for (collection, name, text) in [
        ("house", "gate.md", "# Gate\n\nThe code of the gate is 4711. Ann has the key of the door."),
        ("house", "boiler.md", "# Boiler\n\nThe boiler is checked every October."),
        ("recipes", "bread.md", "# Bread\n\nFlour, water, salt, and a night in the fridge."),
    ] {
        server.add(collection, name, text.as_bytes()).await;
    }
    let browser = open(&server.http, "/documents", ("list", "bread.md")).await;
    browser.run("document.getElementById('query').focus()").await;
    browser.press(&format!("code of the gate{ENTER}")).await;
    browser.shows("passages", "4711").await;
    check_picture(&browser, "documents.png").await;
}

#[tokio::test]
async fn picture_of_the_tasks_page() {
    let server = TaskServer::open().await;
    for (prompt, schedule) in [
        ("Summarise the news of my feeds.", "30 7 * * *"),
        ("Which appointments do I have next week?", "0 18 * * 0"),
        ("Is there a new release of Hob?", "0 9 1 * *"),
    ] {
        let task = json!({ "prompt": prompt, "schedule_type": "cron", "schedule_value": schedule, "timezone": "UTC" });
        assert_eq!(post(&server.http, "/v1/tasks", "", task).await.0, 201);
    }
    let browser = open(&server.http, "/tasks", ("list", "a new release")).await;
    check_picture(&browser, "tasks.png").await;
}

#[tokio::test]
async fn picture_of_the_channels_page() {
    let server = MessageServer::start().await;
    let browser = open(&server.http, "/channels", ("messages", "when is dinner?")).await;
    browser.shows("count", "1 of 1 channel connected").await;
    check_picture(&browser, "channels.png").await;
}

#[tokio::test]
async fn picture_of_the_models_page() {
    let server = ModelServer::start(|| Reply::json(200, "{}")).await;
    let browser = open(&server.http, "/models", ("models", "qwen2:0.5b")).await;
    browser.shows("found", "qwen3:8b").await;
    check_picture(&browser, "models.png").await;
}

#[tokio::test]
async fn picture_of_the_team_page() {
    let server = SettingsServer::start(&[]).await;
    server.team.create("ana", KeyRole::Member, json!({ "parallel": 4, "budgets": ["5 USD/month"] })).await;
    server.team.create("ben", KeyRole::Member, json!({ "models": ["qwen*"] })).await;
    let browser = open(&server.http, "/team", ("keys", "ana")).await;
    check_picture(&browser, "team.png").await;
}

#[tokio::test]
async fn picture_of_the_settings_page() {
    let server = SettingsServer::start(&[]).await;
    let browser = open(&server.http, "/settings", ("found", "settings.")).await;
    check_picture(&browser, "settings.png").await;
}

const SKY: &str = "Sunlight looks white, but it is made of **all colours**. The air scatters short waves far more than long ones:

| Colour | Wavelength | Scattered |
|---|--:|--:|
| violet | 400 nm | 9.4 × |
| blue | 450 nm | 5.9 × |
| red | 700 nm | 1 × |

So blue light reaches you *from everywhere*. The law behind it is Rayleigh's: the strength goes with the fourth power of the frequency.

```python
def scattered(wavelength_nm, reference_nm=700):
    return (reference_nm / wavelength_nm) ** 4

print(round(scattered(450), 1))  # 5.9
```

At sunset the way through the air is long: the blue is gone before it reaches you, and red is left.
";

#[tokio::test]
async fn picture_of_the_chat_page() {
    let engine = ScriptedEngine::new(|request| {
        let asked = request.messages.last().map(|message| message.content.text().into_owned());
        let answer = if asked.is_some_and(|text| text.contains("sky")) { SKY } else { "Gladly." };
        vec![
            Ok(Delta::text(answer)),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::Stop }),
            Ok(Delta::Done { usage: None }),
        ]
    });
    let models = ["qwen3:8b", "llama3.2:3b"];
    let server = server_for(Arc::new(engine.with_models(&models))).await;
    let browser = open(&server, "/", ("connection", "ready")).await;
    for question in ["A birthday poem for Ada", "How long do white beans cook?", "Why is the sky blue?"] {
        browser
            .run("document.getElementById('new').click(); document.getElementById('question').focus()")
            .await;
        browser.press(&format!("{question}{ENTER}")).await;
        browser.shows("thread", if question.contains("sky") { "At sunset" } else { "Gladly." }).await;
    }
    browser.until("document.querySelector('.message:last-child').ariaBusy === 'false'").await;
    let mut pictures = Pictures::default();
    for (name, device) in [("chat.png", SCREEN), ("chat-dark.png", DARK), ("chat-phone.png", Device::PHONE)] {
        pictures.take(&browser, name, device).await;
    }
    pictures.check(&browser).await;
}
