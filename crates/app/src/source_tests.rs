//! Sources and the mailbox that are replaced in a running app.

use std::sync::Arc;

use hob_config::{CalendarConfig, Config};
use hob_core::EventBus;
use hob_testkit::ScriptedEngine;

use crate::ask::{AskService, AskServiceParts};
use crate::databases::hob_database;
use crate::tool_registry::{ToolRegistry, ToolRegistryParts};

/// The tools of sources and of the mailbox that runs have now.
fn offered(system: &AskService) -> Vec<String> {
    let tools = system.tools();
    let names = tools.specs().map(|spec| spec.name.clone());
    names
        .filter(|name| ["calendar", "feeds", "weather", "page_changes", "mail"].contains(&name.as_str()))
        .collect()
}

#[tokio::test]
async fn sources_and_the_mailbox_come_and_go_without_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.mail.imap_host = Some("imap.example.org".to_owned());
    config.mail.user = Some("ann@example.org".to_owned());
    let registry = ToolRegistry::open(&config, ToolRegistryParts::default());
    let system = Arc::new(AskService::new(AskServiceParts {
        engine: Arc::new(ScriptedEngine::saying(&["hi"])),
        default_model: None,
        agent: None,
        tools: registry.tools().unwrap(),
        max_turns: 1,
        bus: EventBus::new(),
        log: Arc::new(hob_telemetry::TelemetryService::default()),
    }));
    registry.keep_up(&system);
    let opener = registry.source_opener(hob_database(home.path()).into(), Arc::clone(&system));
    assert_eq!(offered(&system), ["mail"]);

    let address = || "https://example.org/".to_owned().into();
    config.sources.calendar.insert("work".to_owned(), CalendarConfig::Url(address()));
    config.sources.feeds.insert("news".to_owned(), address());
    opener.replace(&config);
    assert_eq!(offered(&system), ["mail", "calendar", "feeds"], "at once");
    assert_eq!(
        registry.tools().unwrap().specs().count(),
        system.tools().specs().count(),
        "also when an MCP server changes its tools"
    );

    opener.replace(&Config::default());
    assert_eq!(offered(&system), [] as [&str; 0]);
    let absent: Vec<String> =
        system.tools().absent().map(|(name, _)| name.to_owned()).filter(|name| name == "mail").collect();
    assert_eq!(absent, ["mail"], "the model learns why");
    drop(opener);
    registry.close().await;
}
