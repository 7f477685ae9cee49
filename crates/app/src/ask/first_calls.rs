//! Makes the calls of tools that come before the question.

use futures::future::join_all;
use hob_agents::first_results::{put_before, results_text};
use hob_core::{AskError, Caller, FirstCalls, GenerateRequest, ToolCall, ToolResult};
use hob_telemetry::charging;

use super::AskService;
use super::run_context::Asked;

impl AskService {
    /// Makes the calls that the caller wants before the question, unless it has their results, and puts the results before it.
    pub(super) async fn first_results(
        &self,
        request: &mut GenerateRequest,
        caller: &Caller,
    ) -> Result<Vec<ToolResult>, AskError> {
        let Some(first) = &caller.first_calls else { return Ok(Vec::new()) };
        let results = match &first.results {
            Some(results) => results.clone(),
            None => self.call_first(first, request, caller).await?,
        };
        put_before(&mut request.messages, &results_text(&first.calls, &results));
        Ok(results)
    }

    /// Makes the calls. One that fails has a result that says why.
    pub(super) async fn call_first(
        &self,
        first: &FirstCalls,
        request: &GenerateRequest,
        caller: &Caller,
    ) -> Result<Vec<ToolResult>, AskError> {
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
        Ok(charging(self.charge(caller, None), Box::pin(join_all(calls))).await)
    }
}

fn missing(call: &ToolCall, why: Option<&str>) -> ToolResult {
    let why = why.map_or_else(String::new, |why| format!(": {why}"));
    let content = format!("there is no tool '{}'{why}.", call.name);
    ToolResult { tool_name: call.name.clone(), content, success: false }
}
