//! Warm-up: the embedded engine processes the beginning of the agent's prompt before the first request.

use std::sync::Arc;

use hob_config::EngineName;
use hob_core::{
    AgentContext, AskError, Caller, GenerateRequest, Message, RequestSource, Role, RunEvents, random_id,
};
use hob_engines::WarmingEngine;

use super::AskService;
use super::run_context::Asked;

impl AskService {
    /// Lets the embedded engine process the configured agent's instructions and tools, as the owner's complete answers send them. This
    /// generates and records nothing. Other engines have their own caches.
    pub async fn warm(&self) -> Result<(), AskError> {
        let engine = self.pool.selected();
        let Some(agent) = self.agent.as_ref().filter(|_| engine.key() == EngineName::Embedded.as_str())
        else {
            return Ok(());
        };
        let Some(model) = self.steady_model().await? else { return Ok(()) };
        let caller = Caller::trusted(RequestSource::Server, random_id("warm-"));
        let messages = vec![Message::new(Role::User, "Hello")];
        let request = GenerateRequest { model, messages, ..GenerateRequest::default() };
        let events = RunEvents::without_subscribers();
        let context = AgentContext {
            engine: Arc::new(WarmingEngine(Arc::clone(engine))),
            tools: self.tools_for(Asked { request: &request, caller: &caller }, &events)?,
            events,
            max_turns: 1,
            listener: None,
        };
        agent.run(&request, &context).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use hob_agents::builtin::{BuiltInOptions, built_in_tools};
    use hob_core::{Engine, EngineError, EventBus, Generation, GenerationStream, ModelInfo};
    use hob_telemetry::{Inference, InferenceLog};
    use hob_testkit::ScriptedEngine;

    use super::*;
    use crate::AskServiceParts;
    use hob_agents::ToolSet;

    /// An engine that records the prompts that it is to process.
    struct Reader {
        key: &'static str,
        asked: ScriptedEngine,
        read: Mutex<Vec<GenerateRequest>>,
    }

    #[async_trait]
    impl Engine for Reader {
        fn key(&self) -> &str {
            self.key
        }

        fn address(&self) -> &str {
            ""
        }

        async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
            self.asked.generate(request).await
        }

        async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
            self.asked.stream(request).await
        }

        async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
            self.asked.list_models().await
        }

        async fn health(&self) -> bool {
            true
        }

        async fn warm(&self, request: &GenerateRequest) -> Result<(), EngineError> {
            self.read.lock().unwrap().push(request.clone());
            Ok(())
        }
    }

    #[derive(Default)]
    struct Counted(Mutex<u32>);

    impl InferenceLog for Counted {
        fn record(&self, _inference: Inference) {
            *self.0.lock().unwrap() += 1;
        }
    }

    fn service(key: &'static str, agent: &str) -> (AskService, Arc<Reader>, Arc<Counted>) {
        let engine =
            Arc::new(Reader { key, asked: ScriptedEngine::saying(&["yes"]), read: Mutex::default() });
        let log = Arc::new(Counted::default());
        let system = AskService::new(AskServiceParts {
            engine: Arc::clone(&engine) as Arc<dyn Engine>,
            default_model: Some("m".to_owned()),
            agent: hob_agents::agent(agent),
            tools: ToolSet::new(built_in_tools(BuiltInOptions::default())).unwrap(),
            max_turns: 3,
            bus: EventBus::new(),
            log: Arc::clone(&log) as Arc<dyn InferenceLog>,
        });
        (system, engine, log)
    }

    #[tokio::test]
    async fn the_warm_up_prompt_is_the_beginning_of_a_complete_answers_prompt() {
        for agent in ["orchestrator", "react"] {
            let (system, engine, log) = service("embedded", agent);
            system.warm().await.unwrap();
            assert_eq!((engine.asked.requests().len(), *log.0.lock().unwrap()), (0, 0), "it is no inference");
            let mut warmed = engine.read.lock().unwrap().remove(0);

            let messages = vec![Message::new(Role::User, "What is 17 * 23?")];
            let request = GenerateRequest { model: "m".into(), messages, ..GenerateRequest::default() };
            system.complete(request, &Caller::trusted(RequestSource::Server, "run")).await.unwrap();
            let mut asked = engine.asked.requests().remove(0);
            assert_ne!(warmed.messages.pop(), asked.messages.pop(), "only the question differs");
            assert_eq!((warmed.messages, warmed.tools), (asked.messages, asked.tools), "{agent}");
            assert_eq!(*log.0.lock().unwrap(), 1);
        }
    }

    #[tokio::test]
    async fn an_external_engine_is_not_warmed_up() {
        let (system, engine, _) = service("ollama", "orchestrator");
        system.warm().await.unwrap();
        assert!(engine.read.lock().unwrap().is_empty());
    }
}
