//! The size of an agent's prompt without a question.

use std::sync::Arc;

use hob_agents::builtin::LlmOptions;
use hob_channels::{ChannelOptions, ChannelService};
use hob_config::Config;
use hob_core::{
    AnswerDefaults, Caller, Engine, EventBus, GenerateRequest, Message, RequestSource, Role, ToolDefinition,
};
use hob_memory::tokens;
use hob_tasks::TaskOptions;
use hob_telemetry::NoInferenceLog;
use hob_testkit::ScriptedEngine;
use serde_json::json;

use crate::startup::memory::{MemoryWiring, open_memory};
use crate::startup::tasks::open_tasks;
use crate::{AskService, AskServiceParts, ToolRegistry, ToolRegistryParts};

/// The largest prompt of the agent for complete answers, with every built-in tool.
const MOST_TOKENS: usize = 800;

/// Every built-in tool, and the prompt that an agent makes of them.
async fn prompt(agent: &str) -> GenerateRequest {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.sandbox.enabled = true;
    let engine = Arc::new(ScriptedEngine::saying(&["yes"]));
    let llm = LlmOptions {
        engine: Arc::clone(&engine) as Arc<dyn Engine>,
        model: Arc::new(|| None),
        defaults: AnswerDefaults::default(),
    };
    let memory = open_memory(&config, home.path(), MemoryWiring::default()).unwrap();
    let parts = ToolRegistryParts {
        home: Some(home.path().to_owned()),
        llm: Some(llm),
        memory: Some(memory),
        channels: Some(Arc::new(ChannelService::new(ChannelOptions::default()).unwrap())),
        tasks: Some(open_tasks(home.path(), TaskOptions::default())),
    };
    let workshop = ToolRegistry::open(&config, parts);
    let tools = workshop.tools().unwrap();
    assert_eq!((tools.specs().count(), tools.absent().count()), (19, 0), "all of them are there");
    let system = AskService::new(AskServiceParts {
        engine: Arc::clone(&engine) as Arc<dyn Engine>,
        default_model: None,
        agent: hob_agents::agent(agent),
        tools,
        max_turns: 3,
        bus: EventBus::new(),
        log: Arc::new(NoInferenceLog),
    });
    let request = GenerateRequest {
        model: "m".into(),
        messages: vec![Message::new(Role::User, "")],
        ..GenerateRequest::default()
    };
    system.complete(request, &Caller::trusted(RequestSource::Server, "run")).await.unwrap();
    engine.requests().remove(0)
}

/// What a model gets: the text of the messages, and the tools as JSON without the envelope of the API.
fn prompt_text(request: &GenerateRequest) -> String {
    let tool = |tool: &ToolDefinition| {
        json!({ "name": tool.name, "description": tool.description, "parameters": tool.parameters })
            .to_string()
    };
    let messages = request.messages.iter().map(|message| message.content.text().into_owned());
    messages.chain(request.tools.iter().map(tool)).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn an_agents_prompt_with_every_tool_stays_small() {
    for agent in ["orchestrator", "react"] {
        let request = prompt(agent).await;
        let text = prompt_text(&request);
        let count = tokens::count(&text);
        assert!(count <= MOST_TOKENS, "{agent}: {count} tokens\n{text}");
    }
}

#[tokio::test]
async fn the_prompt_describes_each_tool_once() {
    let request = prompt("orchestrator").await;
    let names: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"memory_search") && !names.contains(&"retrieval"), "{names:?}");
    for tool in &request.tools {
        let parameters = tool.parameters.as_ref().unwrap();
        assert_eq!(parameters["type"], "object", "{}", tool.name);
        assert!(tool.description.as_ref().is_some_and(|words| words.ends_with('.')), "{}", tool.name);
    }
}
