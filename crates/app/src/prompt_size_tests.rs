//! The size of an agent's prompt without a question.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::ready;
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

use crate::databases::Databases;
use crate::startup::memory::{MemoryWiring, open_memory};
use crate::startup::tasks::task_service;
use crate::{AskService, AskServiceParts, ChannelSlot, ToolRegistry, ToolRegistryParts};

/// The largest prompt of the agent for complete answers, with every built-in tool that needs no source.
const MOST_TOKENS: usize = 800;

/// Every built-in tool that needs no source, and the prompt that an agent makes of them.
async fn prompt(agent: &str) -> GenerateRequest {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::default();
    config.sandbox.enabled = true;
    let engine = Arc::new(ScriptedEngine::saying(&["yes"]));
    let llm = LlmOptions {
        engine: hob_agents::builtin::same_engine(Arc::clone(&engine) as Arc<dyn Engine>),
        model: Arc::new(|| ready(None).boxed()),
        defaults: AnswerDefaults::default(),
    };
    let databases = Databases::in_files(home.path());
    let memory = open_memory(&config, home.path(), databases.memory, MemoryWiring::default()).unwrap();
    let parts = ToolRegistryParts {
        home: Some(home.path().to_owned()),
        llm: Some(llm),
        memory: Some(memory),
        channels: ChannelSlot::holding(Some(Arc::new(
            ChannelService::new(ChannelOptions::default()).unwrap(),
        ))),
        tasks: Some(task_service(databases.hob, TaskOptions::default())),
        sources: None,
        audit: None,
    };
    let registry = ToolRegistry::open(&config, parts);
    let tools = registry.tools().unwrap();
    let absent: Vec<&str> = tools.absent().map(|(name, _)| name).collect();
    assert_eq!(tools.specs().count(), 19, "all of them are there");
    assert_eq!(absent, ["calendar", "feeds", "weather", "page_changes", "mail"], "they are not configured");
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

/// A chat template that prints tools as JSON, with the same instructions around them as those of Qwen and Hermes.
#[cfg(feature = "embedded")]
const JSON_TEMPLATE: &str = "<|im_start|>system\nYou are a helpful assistant.\n\n# Tools\n\nYou may call one or more functions to \
    assist with the user query.\n\nThe functions are within <tools></tools> XML tags:\n<tools>\n{% if tools %}\
    {% for tool in tools %}{{ tool | tojson }}\n{% endfor %}{% endif %}</tools>\n\nFor each function call, return a JSON object with the name and the arguments \
    within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n\
    </tool_call><|im_end|>\n{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
    {% endfor %}<|im_start|>assistant\n";

/// What the embedded engine reads before the question, with the tokenizer of a real model.
#[cfg(feature = "embedded")]
#[tokio::test]
async fn an_agents_prompt_stays_small_with_a_template_that_prints_json() {
    use hob_core::{TokenizeInput, TokenizeRequest};
    use hob_llama::{LlamaEngine, LlamaOptions};
    use hob_testkit::gguf::{MetadataValue, copy_with_metadata};

    let dir = tempfile::tempdir().unwrap();
    let model = hob_testkit::part("HOB_TEST_MODEL");
    let template = [("tokenizer.chat_template", MetadataValue::Text(JSON_TEMPLATE))];
    copy_with_metadata(model.as_ref(), &dir.path().join("m.gguf"), &template).unwrap();
    let engine = LlamaEngine::new(LlamaOptions { threads: 1, ..LlamaOptions::new(dir.path()) });
    let split = async |request: GenerateRequest| {
        let input = TokenizeInput::Conversation(Box::new(request));
        let tokens =
            engine.tokenize(&TokenizeRequest { model: "m".into(), input, pieces: false }).await.unwrap();
        tokens.tokens.len()
    };

    let request = prompt("orchestrator").await;
    let count = split(request.clone()).await;
    println!("{count} tokens with {} tools", request.tools.len());
    assert!(count <= MOST_TOKENS, "{count} tokens");
    let without = split(GenerateRequest { tools: Vec::new(), ..request }).await;
    assert!(without + 200 < count, "the tools are in the prompt: {count} tokens, {without} without them");
}
