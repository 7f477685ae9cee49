//! The pictures in the documentation: `cargo test -p hob-server --test api -- --ignored picture`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_app::hob_database;
use hob_app::startup::telemetry::telemetry_options;
use hob_config::Config;
use hob_core::{Delta, FinishReason, RequestSource, Usage};
use hob_engines::Style;
use hob_keys::KeyRole;
use hob_telemetry::{Inference, InferenceEnd, TelemetryService};
use hob_testkit::{FakeServer, ScriptedEngine};
use serde_json::json;

use super::chat::server_for;
use super::chromium::{Browser, Device};
use crate::admin::savings::recorded_in;
use crate::admin::settings::SettingsServer;
use crate::fixtures::loopback_config;
use crate::support::{TestServer, engine_at, models};

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

#[tokio::test]
#[ignore = "writes the pictures of the documentation"]
async fn picture_of_the_dashboard() {
    let home = tempfile::tempdir().unwrap();
    let record = TelemetryService::open(&telemetry_options(&Config::default()), hob_database(home.path()));
    record.store().unwrap().record_batch(&month(SystemTime::now()), record.prices()).unwrap();
    let fake = FakeServer::start(|_| models()).await;
    let engine = engine_at(&fake, Style::LLAMACPP);
    let server = TestServer::start_parts(recorded_in(&record, engine), loopback_config()).await;

    let browser = Browser::open(Device::DESKTOP).await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("connection", "answers").await;
    browser.run("document.getElementById('tab-month').click()").await;
    let views = [("dashboard.png", Device::DESKTOP), ("dashboard-dark.png", Device::DARK)];
    for (name, device) in views {
        browser.set_device(Device { height: 1060, ..device }).await;
        keep(&browser, name).await;
    }
}

/// The pages whose pictures need nothing but a server: the name of the picture, the path, and what is on the page when it is ready. One
/// line for each.
const PAGES: &[(&str, &str, (&str, &str))] =
    &[("team", "/team", ("keys", "ana")), ("settings", "/settings", ("found", "settings."))];

#[tokio::test]
#[ignore = "writes the pictures of the documentation"]
async fn pictures_of_the_other_pages() {
    let server = SettingsServer::start(&[]).await;
    server.team.create("ana", KeyRole::Member, json!({ "parallel": 4, "budgets": ["5 USD/month"] })).await;
    server.team.create("ben", KeyRole::Member, json!({ "models": ["qwen*"] })).await;
    let browser = Browser::open(Device { motion: "reduce", ..Device::DESKTOP }).await;
    for (name, path, (id, text)) in PAGES.iter().copied() {
        browser.go(&server.http.url(path)).await;
        browser.shows(id, text).await;
        for (suffix, device) in [("", Device::DESKTOP), ("-dark", Device::DARK)] {
            browser.set_device(Device { motion: "reduce", ..device }).await;
            keep(&browser, &format!("{name}{suffix}.png")).await;
        }
    }
}

async fn keep(browser: &Browser, name: &str) {
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    std::fs::create_dir_all(&images).unwrap();
    std::fs::write(images.join(name), browser.picture().await).unwrap();
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
#[ignore = "writes the pictures of the documentation"]
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
    let browser = Browser::open(Device { motion: "reduce", ..Device::DESKTOP }).await;
    browser.go(&server.url("/")).await;
    browser.shows("connection", "ready").await;
    for question in ["A birthday poem for Ada", "How long do white beans cook?", "Why is the sky blue?"] {
        browser
            .run("document.getElementById('new').click(); document.getElementById('question').focus()")
            .await;
        browser.press(&format!("{question}\u{e007}")).await;
        browser.shows("thread", if question.contains("sky") { "At sunset" } else { "Gladly." }).await;
    }
    browser.run("document.activeElement.blur()").await;
    let views =
        [("chat.png", Device::DESKTOP), ("chat-dark.png", Device::DARK), ("chat-phone.png", Device::PHONE)];
    for (name, device) in views {
        browser.set_device(Device { motion: "reduce", ..device }).await;
        browser.run("scrollTo(0, 0)").await;
        keep(&browser, name).await;
    }
}
