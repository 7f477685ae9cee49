//! Servers that several tests need: in front of a scripted engine, with an agent and two tools, reached from the network.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use hob_agents::ToolSet;
use hob_agents::agent;
use hob_agents::builtin::{Calculator, FileRead};
use hob_app::{AskService, AskServiceParts};
use hob_config::ServerConfig;
use hob_core::{
    AllowedRoots, Delta, Engine, FinishReason, GenerateRequest, Role, Tool, ToolCallDelta, Usage,
};
use hob_server::ServerParts;
use hob_testkit::{Outside, ScriptedEngine};

use crate::support::{TestServer, plain_parts};

/// A server in front of an engine that says "hi".
pub async fn scripted(config: ServerConfig) -> TestServer {
    TestServer::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await
}

pub const ARGUMENTS: &str = r#"{"expression":"17 * 23"}"#;

pub fn usage(prompt_tokens: u64, completion_tokens: u64) -> Delta {
    Delta::Done {
        usage: Some(Usage {
            prompt_tokens,
            completion_tokens,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        }),
    }
}

fn has_result(request: &GenerateRequest) -> bool {
    request.messages.iter().any(|message| message.role == Role::Tool)
}

/// An engine that calls `tool` if it has tools, and then answers with the result.
pub fn calling(tool: &'static str, arguments: &'static str) -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::new(move |request| {
        let deltas = if request.tools.is_empty() || has_result(request) {
            vec![
                Delta::text("It is "),
                Delta::text("391."),
                Delta::Finish { choice: 0, reason: FinishReason::Stop },
                usage(20, 5),
            ]
        } else {
            let call = ToolCallDelta {
                choice: 0,
                index: 0,
                id: Some("c1".into()),
                name: Some(tool.into()),
                arguments: arguments.into(),
            };
            vec![
                Delta::ToolCall(call),
                Delta::Finish { choice: 0, reason: FinishReason::ToolCalls },
                usage(10, 3),
            ]
        };
        deltas.into_iter().map(Ok).collect()
    }))
}

pub fn calculating() -> Arc<ScriptedEngine> {
    calling("calculator", ARGUMENTS)
}

/// A service whose agent is `orchestrator`, with a pure tool and a tool that reads.
pub fn parts(engine: Arc<dyn Engine>) -> AskServiceParts {
    let tools: [Arc<dyn Tool>; 2] = [Arc::new(Calculator), Arc::new(FileRead::new(AllowedRoots::default()))];
    AskServiceParts {
        agent: agent("orchestrator"),
        tools: ToolSet::new(tools).unwrap(),
        ..plain_parts(engine)
    }
}

/// For this machine only.
pub fn loopback_config() -> ServerConfig {
    ServerConfig { host: "127.0.0.1".into(), port: 0, ..ServerConfig::default() }
}

pub fn offered(request: &GenerateRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

/// A server that listens on all addresses, with a client that is not on loopback.
pub struct NetworkServer {
    server: TestServer,
    _network: Outside,
}

impl Deref for NetworkServer {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.server
    }
}

impl DerefMut for NetworkServer {
    fn deref_mut(&mut self) -> &mut TestServer {
        &mut self.server
    }
}

/// A server that listens on all addresses, with a client whose address is not loopback.
pub async fn reached_from_network(engine: &Arc<ScriptedEngine>, config: ServerConfig) -> NetworkServer {
    parts_reached_from_network(
        Arc::new(AskService::new(parts(Arc::clone(engine) as Arc<dyn Engine>))),
        config,
    )
    .await
}

/// The same with all services of a server.
pub async fn parts_reached_from_network(
    parts: impl Into<ServerParts>,
    config: ServerConfig,
) -> NetworkServer {
    let network = Outside::find();
    let config = ServerConfig { host: "0.0.0.0".into(), port: 0, ..config };
    let mut server = TestServer::start_parts(parts, config).await;
    server.address.set_ip(network.address());
    NetworkServer { server, _network: network }
}

impl AsRef<TestServer> for TestServer {
    fn as_ref(&self) -> &TestServer {
        self
    }
}
