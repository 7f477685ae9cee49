//! The agent that writes code, runs it in the sandbox, and reads the output.

use hob_core::{
    Answer, EngineError, FinishReason, GenerateRequest, Message, Role, ToolCall, ToolDefinition, ToolResult,
};
use serde_json::json;

use crate::code_blocks::{CodeBlock, code_blocks};
use crate::protocol::{
    HoldBack, ModelTurn, Protocol, RequestedCalls, ShownResult, TextFilter, instruct, refuse_forced_call,
    refuse_unsupported,
};

const INTERPRETER: &str = "code_interpreter";
const OUTPUT: &str = "Output:\n";
const INSTRUCTIONS: &str = "You solve tasks by running code. Put code to run into a fenced block marked python or sh, and print \
    what you need to see. It runs in a sandbox, and the next message contains its output. Blocks share no state. When you \
    know the answer, write it without such a block. Put code that is only an example into a block without a mark.";

pub(crate) struct CodeAct;

impl Protocol for CodeAct {
    fn name(&self) -> &'static str {
        "codeact"
    }

    fn prepare(&self, request: &mut GenerateRequest, tools: &[ToolDefinition]) -> Result<(), EngineError> {
        let Some(interpreter) = tools.iter().find(|tool| tool.name == INTERPRETER) else {
            let reason = format!(
                "it needs the tool '{INTERPRETER}', which is not available to this caller. It needs the sandbox \
                 ([sandbox] enabled = true) and a caller who may run code"
            );
            return Err(EngineError::NotConfigured { engine: self.name().to_owned(), reason });
        };
        refuse_unsupported(self.name(), request)?;
        refuse_forced_call(self.name(), request)?;
        // The description also lists the readable files.
        let about = interpreter.description.as_deref().unwrap_or_default();
        instruct(&mut request.messages, format!("{INSTRUCTIONS}\n\nAbout the sandbox: {about}"));
        Ok(())
    }

    fn read(&self, answer: &Answer, _tools: &[ToolDefinition]) -> ModelTurn {
        // Incomplete code must not run.
        let whole = |block: &CodeBlock| block.closed || answer.finish_reason != FinishReason::Length;
        let blocks = code_blocks(&answer.content);
        let calls: Vec<ToolCall> = blocks.iter().filter(|block| whole(block)).enumerate().map(call).collect();
        if calls.is_empty() {
            return ModelTurn::Answer(answer.content.clone());
        }
        ModelTurn::Calls(Box::new(RequestedCalls {
            calls,
            said: Message::new(Role::Assistant, answer.content.as_str()),
            so_far: answer.content.clone(),
        }))
    }

    fn show(&self, _calls: &[ToolCall], results: &[ToolResult]) -> Vec<ShownResult> {
        let outputs: Vec<String> = match results {
            [only] => vec![only.content.clone()],
            several => {
                let numbered = several.iter().enumerate();
                numbered.map(|(at, result)| format!("[block {}]\n{}", at + 1, result.content)).collect()
            }
        };
        // One message for all blocks, because many chat templates require alternating roles.
        let message = Message::new(Role::User, format!("{OUTPUT}{}", outputs.join("\n")));
        vec![ShownResult { message, tool: INTERPRETER.to_owned(), label: OUTPUT }]
    }

    fn text_filter(&self) -> Option<Box<dyn TextFilter>> {
        Some(Box::new(HoldBack))
    }

    /// Code blocks run in order.
    fn max_parallel(&self) -> usize {
        1
    }
}

fn call((at, block): (usize, &CodeBlock)) -> ToolCall {
    ToolCall {
        id: format!("block-{}", at + 1),
        name: INTERPRETER.to_owned(),
        arguments: json!({ "language": block.language.as_str(), "code": block.code }).to_string(),
    }
}
