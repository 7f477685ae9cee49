//! llama.cpp's chat layer: turns a conversation into a prompt, and the text of an answer into words, reasoning and tool calls, in
//! the format of the model's template. `native/chat` is the C++ side. Knows nothing of requests, tokens or sampling.

mod answer_format;
mod answer_parser;
mod call_grammar;
mod call_ids;
mod gbnf;
mod native;
mod plain_tools;
mod template;

pub(crate) use answer_format::{AnswerFormat, Trigger};
pub(crate) use answer_parser::{AnswerParser, AnswerPart};
pub(crate) use call_grammar::{CallGrammar, Enforcement};
pub(crate) use plain_tools::{parameters, signatures, spelled_history, spelled_out, tool_value};
pub(crate) use template::{Calling, ChatTemplate, Conversation, Rendered, TemplateError, ToolSupport};

#[cfg(test)]
mod format_tests;
