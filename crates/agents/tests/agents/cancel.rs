//! Dropping a run ends what it started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use futures::{FutureExt, stream};
use hob_core::{
    Engine, EngineError, GenerateRequest, Generation, GenerationStream, ModelInfo, Reach, Tool, ToolError,
    ToolSpec,
};
use serde_json::Value;

use crate::support::{TestRun, asking, call, calls, script, spec};

/// Raises its flag when it is dropped.
struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Never done.
struct Endless {
    spec: ToolSpec,
    dropped: Arc<AtomicBool>,
}

#[async_trait]
impl Tool for Endless {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _arguments: Value) -> Result<String, ToolError> {
        let _flag = Flag(Arc::clone(&self.dropped));
        std::future::pending().await
    }
}

/// Never answers.
struct Silent(Arc<AtomicBool>);

#[async_trait]
impl Engine for Silent {
    fn key(&self) -> &str {
        "silent"
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, _request: &GenerateRequest) -> Result<Generation, EngineError> {
        let _flag = Flag(Arc::clone(&self.0));
        std::future::pending().await
    }

    async fn stream(&self, _request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let flag = Flag(Arc::clone(&self.0));
        let deltas = Box::pin(stream::once(async move {
            let _flag = flag;
            std::future::pending().await
        }));
        Ok(GenerationStream { warnings: Vec::new(), deltas })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        Ok(Vec::new())
    }

    async fn health(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_dropped_run_ends_its_tools_and_publishes_it() {
    let dropped = Arc::new(AtomicBool::new(false));
    let tool = Endless { spec: spec("endless", Reach::Act), dropped: Arc::clone(&dropped) };
    let turn = calls("", &[call("c", "endless", r#"{"text":""}"#)]);
    let test = TestRun::new(script([turn]), &[Arc::new(tool)]);
    let request = asking("go");

    let mut run = Box::pin(test.run("orchestrator", &request));
    assert!(run.as_mut().now_or_never().is_none());
    assert!(!dropped.load(Ordering::SeqCst));
    drop(run);
    assert!(dropped.load(Ordering::SeqCst));
    let names: Vec<String> =
        test.events().iter().filter_map(|event| event.split(' ').next().map(str::to_owned)).collect();
    assert_eq!(names, ["AGENT_TURN_START", "TOOL_CALL_START", "TOOL_CALL_END", "AGENT_TURN_END"]);
}

#[tokio::test]
async fn a_dropped_run_ends_the_engines_work() {
    for listens in [false, true] {
        let dropped = Arc::new(AtomicBool::new(false));
        let mut test = TestRun::new(script([]), &[]);
        test.context.engine = Arc::new(Silent(Arc::clone(&dropped)));
        let test = if listens { test.listening() } else { test };
        let request = asking("go");

        let mut run = Box::pin(test.run("orchestrator", &request));
        assert!(run.as_mut().now_or_never().is_none());
        assert!(!dropped.load(Ordering::SeqCst));
        drop(run);
        assert!(dropped.load(Ordering::SeqCst), "listens: {listens}");
    }
}
