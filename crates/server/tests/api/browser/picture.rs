//! The picture in the README: `cargo test -p hob-server --test api -- --ignored picture`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_config::Config;
use hob_core::{Ending, FinishReason, Inference, Source, Usage};
use hob_engine::Style;
use hob_system::Record;
use hob_testkit::FakeServer;

use super::chromium::{Browser, Reader};
use crate::agents::at_home;
use crate::client::models;
use crate::savings::recorded_in;
use crate::support::{Running, engine_at};

/// A month of a household with three models, the same every time.
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
                    source: Source::ALL[usize::from(chance % 3 == 0)],
                    engine: engine.to_owned(),
                    model: model.to_owned(),
                    agent: chance.is_multiple_of(4).then(|| "orchestrator".to_owned()),
                    streamed: true,
                    usage: Usage {
                        prompt_tokens: 2_000 + chance * 190,
                        completion_tokens: 300 + chance * 14,
                        cached_tokens: None,
                    },
                    estimated: false,
                    latency,
                    first_token: Some(latency / 7),
                    ending: Ending::Complete(FinishReason::Stop),
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
    let record = Record::open(&Config::default(), home.path());
    record.telemetry().unwrap().record_batch(&month(SystemTime::now())).unwrap();
    let fake = FakeServer::start(|_| models()).await;
    let engine = engine_at(&fake, Style::LLAMACPP);
    let server = Running::start_parts(recorded_in(&record, engine), at_home()).await;

    let browser = Browser::open(Reader::DESK).await;
    browser.go(&server.url("/dashboard")).await;
    browser.shows("pulse", "answers").await;
    browser.run("document.getElementById('tab-month').click()").await;
    let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images");
    std::fs::create_dir_all(&images).unwrap();
    let views = [("dashboard.png", Reader::DESK), ("dashboard-dark.png", Reader::NIGHT)];
    for (name, reader) in views {
        browser.become_reader(Reader { height: 1060, ..reader }).await;
        std::fs::write(images.join(name), browser.picture().await).unwrap();
    }
}
