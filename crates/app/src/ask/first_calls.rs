//! Makes the calls of tools that come before the question.

use futures::future::join_all;
use hob_core::{AskError, Caller, GenerateRequest, ToolCall, ToolResult};

use super::AskService;
use super::charged_engine::charging;
use super::first_results::{put_before, results_text};
use super::run_context::Asked;

impl AskService {
    /// Makes the calls that the caller wants before the question, and puts their results before it. A call that fails has a result
    /// that says why.
    pub(super) async fn first_results(
        &self,
        request: &mut GenerateRequest,
        caller: &Caller,
    ) -> Result<Vec<ToolResult>, AskError> {
        let Some(first) = &caller.first_calls else { return Ok(Vec::new()) };
        let tools = self.tools();
        let is_known = |name: &str| tools.specs().any(|spec| spec.name == name);
        let mut permit = first.permit.clone();
        if let Some(only) = &mut permit.only {
            // A tool that is gone must not end the run.
            only.retain(|name| is_known(name));
        }
        let calling = Caller { permit, first_calls: None, ..caller.clone() };
        let runner = self.tools_for(Asked { request, caller: &calling }, &self.events(caller))?;
        // One turn: the calls were chosen before any of their results were read.
        runner.begin_turn();
        let calls = first.calls.iter().map(|call| {
            let (runner, is_known) = (&runner, is_known(&call.name));
            let why = tools.absent().find(|(name, _)| *name == call.name).map(|(_, why)| why);
            async move { if is_known { runner.execute(call).await } else { missing(call, why) } }
        });
        let results = charging(self.charge(caller, None), Box::pin(join_all(calls))).await;
        put_before(&mut request.messages, &results_text(&first.calls, &results));
        Ok(results)
    }
}

fn missing(call: &ToolCall, why: Option<&str>) -> ToolResult {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let content = format!("there is no tool '{}'{why}.", call.name);
    ToolResult { tool_name: call.name.clone(), content, success: false }
}
