//! Ratings of answers.

use std::sync::Arc;

use hob_app::startup::routing::open_routing_service;
use hob_app::{AskService, hob_database};
use hob_config::ServerConfig;
use hob_core::Engine;
use hob_engines::Style;
use hob_routing::{PolicyName, Router};
use hob_telemetry::TelemetryService;
use hob_testkit::{Reply, ScriptedEngine};
use serde_json::json;

use super::{
    ask, ask_and_wait, becomes, count, engine_saying, page_at, saving_chats, script_errors, select,
    server_for, words,
};
use crate::fixtures::{loopback_config, parts, reached_from_network};
use crate::pages::browser::axe::assert_accessible;
use crate::pages::browser::chromium::Device;
use crate::support::{TestServer, engine_at};

fn pressed(rating: &str) -> String {
    format!("document.querySelector('.message:last-child .rating [aria-pressed=true]')?.value === {rating:?}")
}

#[tokio::test]
async fn a_button_rates_an_answer_and_the_router_learns_from_it() {
    let home = tempfile::tempdir().unwrap();
    let engine = ScriptedEngine::saying(&["hi"]).with_models(&["large:70b", "small:1b"]);
    let service = open_routing_service(hob_database(home.path()), TelemetryService::default());
    let system = AskService::new(parts(Arc::new(engine) as Arc<dyn Engine>));
    let system = system.with_router(Router::new(PolicyName::Heuristic, service.clone()));
    let server = TestServer::start_parts(saving_chats(Arc::new(system)), loopback_config()).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    select(&browser, "model", "auto").await;
    ask_and_wait(&browser, "Hello").await;
    assert_eq!(count(&browser, ".rating [aria-pressed=true]").await, 0);

    browser.click(".rating [value=good]").await;
    browser.until(&pressed("good")).await;
    assert_eq!(browser.run("return document.getElementById('said').textContent").await, "Rated good.");
    // A second rating replaces the first.
    browser.click(".rating [value=bad]").await;
    browser.until(&pressed("bad")).await;
    assert_eq!(count(&browser, ".rating [aria-pressed=true]").await, 1);
    assert_accessible(&browser, "rated").await;
    let ratings = service.find().unwrap().unwrap().ratings().unwrap();
    assert_eq!((ratings.good, ratings.bad), (0, 1));

    // This browser remembers the rating.
    browser.reload().await;
    browser.until(&pressed("bad")).await;
    browser.click(".rating [value=good]").await;
    browser.until(&pressed("good")).await;
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_refused_rating_is_not_shown_as_given() {
    // No call is recorded, so there is no answer to rate.
    let server = server_for(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "Hello").await;
    becomes(&browser, "complete").await;
    browser.click(".rating [value=good]").await;
    browser.shows("hint", "there is no answer").await;
    assert_eq!(count(&browser, ".rating [aria-pressed=true]").await, json!(0));
}

#[tokio::test]
async fn a_stranger_gets_no_rating_buttons() {
    let engine = Arc::new(ScriptedEngine::saying(&["hi"]));
    let server = reached_from_network(&engine, ServerConfig::default()).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "Hello").await;
    becomes(&browser, "complete").await;
    let shown =
        "return [...document.querySelectorAll('.rating')].filter((group) => group.checkVisibility()).length";
    assert_eq!(browser.run(shown).await, json!(0));
    assert_eq!(script_errors(&browser).await, Vec::<String>::new());
}

#[tokio::test]
async fn only_a_complete_answer_can_be_rated() {
    let fake = engine_saying(Reply::sse(words("It is bl")).then_cut()).await;
    let server = server_for(engine_at(&fake, Style::VLLM)).await;
    let browser = page_at(&server, Device::DESKTOP).await;
    ask(&browser, "Why is the sky blue?").await;
    becomes(&browser, "failed").await;
    assert_eq!(count(&browser, ".rating:not([hidden])").await, json!(0));
}
