//! The constraint of an answer: the grammar of its text or tool calls, and a final check.
//!
//! A schema is enforced, or the request is refused. Exception: for tools without `strict`, only the grammar is enforced, and a
//! schema that cannot be a grammar is ignored.

use std::collections::HashMap;
use std::sync::Arc;

use fancy_regex::Regex;
use hob_core::{EngineError, GenerateRequest, ResponseFormat, ToolChoice, ToolDefinition};
use serde_json::Value;

use crate::chat::{
    AnswerFormat, AnswerParser, AnswerPart, CallGrammar, Calling, Enforcement, Trigger, parameters,
    tool_value,
};
use crate::error::{bad_request, refused_schema};
use crate::grammar::{Grammar, GrammarText};
use crate::loaded_model::LoadedModel;
use crate::schema::{AnswerCheck, Enforceable, Validator};

/// The field of `response_format` in errors.
const RESPONSE_FORMAT: &str = "response_format";

/// The constraint of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Constraint {
    /// The grammar of the answer: from the first token, or after the thought that the prompt begins.
    pub(crate) grammar: Option<Grammar>,
    pub(crate) tools: Option<ToolUse>,
    /// The check of a finished answer.
    pub(crate) check: Option<AnswerCheck>,
}

/// How the model may call tools by itself.
#[derive(Debug, Clone)]
pub(crate) struct ToolUse {
    /// The grammar after the model begins a call unprompted.
    once_called: Option<Grammar>,
    starts: Vec<CallStart>,
    /// Whether an answer may have more than one call.
    pub(crate) several: bool,
}

/// What begins a call.
#[derive(Debug, Clone)]
enum CallStart {
    Word(String),
    Pattern(Arc<Regex>),
    /// A bracket at the start of the answer, for formats without a mark.
    Bracket,
}

impl ToolUse {
    /// Where a call begins in `text`, not before `from`.
    pub(crate) fn call_start(&self, text: &str, from: usize) -> Option<usize> {
        let places = self.starts.iter().filter_map(|start| match start {
            CallStart::Word(word) => text[from..].find(word.as_str()).map(|at| from + at),
            CallStart::Bracket => {
                let rest = text[from..].trim_start();
                rest.starts_with(['{', '[']).then_some(text.len() - rest.len())
            }
            CallStart::Pattern(pattern) => {
                let found = pattern.captures(text).ok()??;
                let place = (1..found.len()).find_map(|group| found.get(group)).or_else(|| found.get(0))?;
                (place.start() >= from).then_some(place.start())
            }
        });
        places.min()
    }

    /// Where to search for a call next time, if `text` has none: calls that begin with a word can only begin in its last part.
    pub(crate) fn next_search(&self, text: &str) -> usize {
        let longest = self.starts.iter().map(|start| match start {
            CallStart::Word(word) => Some(word.len()),
            CallStart::Pattern(_) | CallStart::Bracket => None,
        });
        let Some(longest) =
            longest.collect::<Option<Vec<usize>>>().and_then(|lengths| lengths.into_iter().max())
        else {
            return 0;
        };
        let mut next = text.len().saturating_sub(longest);
        while !text.is_char_boundary(next) {
            next -= 1;
        }
        next
    }

    pub(crate) fn once_called(&self) -> Option<&Grammar> {
        self.once_called.as_ref()
    }
}

/// The field with schemas in a request, if any.
pub(crate) fn schema_field(request: &GenerateRequest) -> Option<&'static str> {
    match &request.response_format {
        ResponseFormat::JsonObject | ResponseFormat::JsonSchema(_) => Some(RESPONSE_FORMAT),
        ResponseFormat::Text => (!offered(request).is_empty()).then_some("tools"),
    }
}

pub(crate) fn offered(request: &GenerateRequest) -> &[ToolDefinition] {
    match request.tool_choice {
        Some(ToolChoice::None) => &[],
        _ => &request.tools,
    }
}

/// A tool with its index in the request.
struct Callable<'a> {
    field: String,
    tool: &'a ToolDefinition,
    /// Whether its schema must be enforced.
    exact: bool,
    /// The schema of its arguments, or of any arguments if no grammar can enforce it.
    schema: Value,
    validator: Option<Validator>,
}

/// The tools that an answer may call.
pub(crate) struct CallPlan<'a> {
    callable: Vec<Callable<'a>>,
    forced: bool,
    several: bool,
}

impl<'a> CallPlan<'a> {
    /// Reads the schemas of the tools; `None` without tools. Must run in `grammar_thread`.
    pub(crate) fn read(request: &'a GenerateRequest) -> Result<Option<Self>, EngineError> {
        let offered = offered(request);
        if offered.is_empty() {
            return Ok(None);
        }
        let choice = request.tool_choice.as_ref();
        let forced = matches!(choice, Some(ToolChoice::Required | ToolChoice::Function(_)));
        let mut callable = Vec::with_capacity(offered.len());
        for (at, tool) in offered.iter().enumerate() {
            if matches!(choice, Some(ToolChoice::Function(name)) if tool.name != *name) {
                continue;
            }
            callable.push(Callable::read(tool, at, forced || tool.strict == Some(true))?);
        }
        if callable.is_empty() {
            return Err(bad_request(
                "'tool_choice' names a function that is not among 'tools'",
                Some("tool_choice"),
            ));
        }
        let one =
            matches!(choice, Some(ToolChoice::Function(_))) || request.parallel_tool_calls == Some(false);
        Ok(Some(CallPlan { callable, forced, several: !one }))
    }

    /// The tools in the chat-completions format.
    pub(crate) fn tools(&self) -> Vec<Value> {
        self.callable.iter().map(|callable| tool_value(callable.tool, callable.schema.clone())).collect()
    }

    pub(crate) fn calling(&self) -> Calling {
        let several = self.several;
        if self.forced { Calling::Forced { several } } else { Calling::Possible { several } }
    }

    /// How to call tools that are forced.
    pub(crate) fn forced(&self) -> Calling {
        Calling::Forced { several: self.several }
    }
}

impl<'a> Callable<'a> {
    fn read(tool: &'a ToolDefinition, at: usize, exact: bool) -> Result<Self, EngineError> {
        let field = format!("tools[{at}]");
        let mut schema = parameters(tool);
        let mut validator = None;
        match Enforceable::read(&schema) {
            Err(error) if !exact => {
                tracing::debug!(tool = tool.name, %error, "the schema of a tool is not enforced");
                schema = serde_json::json!({ "type": "object" });
            }
            Err(error) => return Err(refused_schema(error, &field)),
            Ok(read) if exact && !read.checked.is_empty() => {
                let made = Validator::of_checked(&schema, &read.checked);
                validator = Some(made.map_err(|error| refused_schema(error, &field))?);
            }
            Ok(_) => {}
        }
        Ok(Callable { field, tool, exact, schema, validator })
    }
}

impl Constraint {
    /// The constraint of an answer in `format`. `calls` are the rules of calls, if the format itself has none. An answer that follows
    /// `response_format` may still be a call instead, if [`Constraint::may_call`]. Must run in `grammar_thread` if the request has
    /// schemas.
    pub(crate) fn new(
        loaded: &LoadedModel,
        request: &GenerateRequest,
        plan: Option<CallPlan<'_>>,
        format: &AnswerFormat,
        calls: Option<&AnswerFormat>,
    ) -> Result<Self, EngineError> {
        let mut constraint = match plan {
            Some(plan) => tool_calls(loaded, plan, format, calls)?,
            None => Constraint::default(),
        };
        let follows_schema = request.response_format != ResponseFormat::Text;
        if follows_schema && constraint.grammar.is_some() {
            return Err(bad_request(
                "an answer cannot be a tool call and follow 'response_format' at once",
                Some(RESPONSE_FORMAT),
            ));
        }
        if follows_schema && constraint.may_call() && !format.is_in_thought() && !reads_json(format) {
            // The parser would take an answer for something else.
            constraint = Constraint::default();
        }
        constraint.add_response_format(loaded, request)?;
        Ok(constraint)
    }

    /// The constraint of a text to continue. Must run in `grammar_thread` if the request has schemas.
    pub(crate) fn of_text(loaded: &LoadedModel, request: &GenerateRequest) -> Result<Self, EngineError> {
        let mut constraint = Constraint::default();
        constraint.add_response_format(loaded, request)?;
        Ok(constraint)
    }

    fn add_response_format(
        &mut self,
        loaded: &LoadedModel,
        request: &GenerateRequest,
    ) -> Result<(), EngineError> {
        let schema = match &request.response_format {
            ResponseFormat::Text => return Ok(()),
            ResponseFormat::JsonObject => Enforceable::any_object(),
            ResponseFormat::JsonSchema(wanted) => {
                let refused = |error| refused_schema(error, RESPONSE_FORMAT);
                let schema = Enforceable::read(&wanted.schema).map_err(refused)?;
                if !schema.checked.is_empty() {
                    let made = Validator::of_checked(&wanted.schema, &schema.checked);
                    let validator = Arc::new(made.map_err(refused)?);
                    self.check = Some(match self.check.take() {
                        Some(AnswerCheck::Calls(calls)) => AnswerCheck::Either(validator, calls),
                        _ => AnswerCheck::Content(validator),
                    });
                }
                schema
            }
        };
        let grammar = loaded.vocabulary()?.start(GrammarText::of_schema(schema));
        let grammar = grammar.map_err(|error| refused_schema(error.into(), RESPONSE_FORMAT))?;
        let calls = self.tools.as_ref().and_then(ToolUse::once_called).cloned();
        self.grammar = Some(match calls {
            Some(calls) => grammar.or(calls),
            None => grammar,
        });
        Ok(())
    }

    /// Whether the model may call a tool by itself.
    pub(crate) fn may_call(&self) -> bool {
        self.tools.as_ref().is_some_and(|tools| tools.once_called.is_some())
    }
}

fn tool_calls(
    loaded: &LoadedModel,
    plan: CallPlan<'_>,
    format: &AnswerFormat,
    calls: Option<&AnswerFormat>,
) -> Result<Constraint, EngineError> {
    let Some(rules) = format.grammar().or_else(|| calls.and_then(AnswerFormat::grammar)) else {
        if plan.forced {
            let message = format!("the chat template of '{}' has no format for tool calls", loaded.id);
            return Err(bad_request(message, Some("tool_choice")));
        }
        return Ok(Constraint::default());
    };
    let grammar = call_grammar(loaded, &plan, rules)?;
    let CallPlan { callable, forced, several } = plan;
    let mut validators = HashMap::new();
    for Callable { field, tool, exact, schema, validator } in callable {
        let validator = match validator {
            // Some formats write arguments as text, which a grammar does not check.
            None if exact && !rules.has_schema_of(&schema) => {
                Some(Validator::of(&schema).map_err(|error| refused_schema(error, &field))?)
            }
            found => found,
        };
        validators.extend(validator.map(|validator| (tool.name.clone(), validator)));
    }
    let mut starts = call_starts(format.triggers());
    if starts.is_empty() {
        starts.push(CallStart::Bracket);
    }
    let (now, once_called) = if forced { (grammar, None) } else { (None, grammar) };
    Ok(Constraint {
        grammar: now,
        tools: Some(ToolUse { once_called, starts, several }),
        check: (!validators.is_empty()).then(|| AnswerCheck::Calls(Arc::new(validators))),
    })
}

/// Whether the parser of a format with calls takes JSON that stands alone for words. Some formats have marks around words.
fn reads_json(format: &AnswerFormat) -> bool {
    const TRIAL: &str = r#"{"trial": ["value"]}"#;
    let mut parser = AnswerParser::new(format);
    let mut parts = parser.push(TRIAL);
    parts.extend(parser.finish(true));
    let words = parts.iter().map(|part| match part {
        AnswerPart::Text(text) => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Option<String>>().is_some_and(|words| words == TRIAL)
}

fn call_starts(triggers: &[Trigger]) -> Vec<CallStart> {
    let start = |trigger: &Trigger| match trigger {
        // A model may leave out the blanks after a mark; the grammar then writes them.
        Trigger::Word(word) => {
            Some(CallStart::Word(word.trim_end().to_owned())).filter(|_| !word.trim().is_empty())
        }
        Trigger::Pattern(pattern) | Trigger::FullPattern(pattern) => {
            Some(CallStart::Pattern(Arc::new(Regex::new(pattern).ok()?)))
        }
    };
    triggers.iter().filter_map(start).collect()
}

/// The grammar of calls; `None` if it is too large and nothing has to be enforced.
fn call_grammar(
    loaded: &LoadedModel,
    plan: &CallPlan<'_>,
    rules: &CallGrammar,
) -> Result<Option<Grammar>, EngineError> {
    let vocabulary = loaded.vocabulary()?;
    let error = match vocabulary.start(rules.text(plan.several, Enforcement::Schemas)) {
        Ok(grammar) => return Ok(Some(grammar)),
        Err(error) => error,
    };
    if plan.callable.iter().any(|callable| callable.exact) {
        return Err(refused_schema(error.into(), &oversized_tool(loaded, plan)));
    }
    tracing::debug!(model = %loaded.id, %error, "the schemas of the tools are too much for a grammar");
    match vocabulary.start(rules.text(plan.several, Enforcement::Format)) {
        Ok(grammar) => Ok(Some(grammar)),
        Err(error) => {
            tracing::debug!(model = %loaded.id, %error, "the format of tool calls is not enforced");
            Ok(None)
        }
    }
}

/// The tool with a schema that is too large, or all.
fn oversized_tool(loaded: &LoadedModel, plan: &CallPlan<'_>) -> String {
    let is_too_much = |callable: &&Callable<'_>| {
        let schema = Enforceable::read(&callable.schema).map(GrammarText::of_schema);
        let Ok(vocabulary) = loaded.vocabulary() else { return false };
        schema.is_ok_and(|text| vocabulary.start(text).is_err())
    };
    plan.callable.iter().find(is_too_much).map_or_else(|| "tools".to_owned(), |tool| tool.field.clone())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Map, json};

    use super::*;
    use crate::chat::{ChatTemplate, Conversation};

    /// The format of an answer with this template, if the model may call a tool.
    fn format(source: &str) -> AnswerFormat {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let function = json!({"name": "get_weather", "description": "", "parameters": parameters});
        let conversation = Conversation {
            messages: &[json!({"role": "user", "content": "What is the weather?"})],
            tools: &[json!({"type": "function", "function": function})],
            signatures: &Map::new(),
            variables: &Map::new(),
            calling: Calling::Possible { several: true },
        };
        let template = ChatTemplate::new(source, "", "").expect("a template");
        template.render(&conversation).expect("renders").format
    }

    #[test]
    fn an_answer_by_a_schema_is_read_as_words_also_where_calls_are_possible() {
        // Marks before a call, a call that is JSON itself, arguments in tags, a list of calls, channels.
        for name in ["hermes", "llama-3", "qwen3-coder", "mistral-nemo", "gpt-oss"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{name}.txt"));
            let text = std::fs::read_to_string(path).expect("an example");
            let (source, _) = text.split_once("\n=== ").expect("a template");
            let source = source.strip_prefix("=== template\n").expect("a template");
            let format = format(source);
            assert!(format.is_in_thought() || reads_json(&format), "{name}");
        }
    }

    fn tool_use(triggers: &[Trigger]) -> ToolUse {
        let mut starts = call_starts(triggers);
        if starts.is_empty() {
            starts.push(CallStart::Bracket);
        }
        ToolUse { once_called: None, starts, several: true }
    }

    #[test]
    fn a_call_begins_where_its_mark_does() {
        let marked = tool_use(&[Trigger::Word("<call>\n".into()), Trigger::Word("<f>".into())]);
        assert_eq!(marked.call_start("Well, <f> or <call>", 0), Some(6));
        assert_eq!(marked.call_start("Well, <f> or <call>", 7), Some(13));
        assert_eq!(marked.call_start("Well", 0), None);
        assert_eq!(marked.next_search("Well, then <cal"), 9);
        let patterns =
            tool_use(&[Trigger::Pattern("start(\\s+to)".into()), Trigger::Pattern("^>>>(?!all)".into())]);
        assert_eq!(patterns.call_start("start to", 0), Some(5));
        assert_eq!(patterns.call_start(">>>all", 0), None);
        assert_eq!(patterns.call_start(">>>f", 0), Some(0));
    }

    #[test]
    fn a_call_without_a_mark_is_the_whole_answer() {
        let bare = tool_use(&[]);
        assert_eq!(bare.call_start(" {\"name\"", 0), Some(1));
        assert_eq!(bare.call_start("Use {x}", 0), None);
    }
}
