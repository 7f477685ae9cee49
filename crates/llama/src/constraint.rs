//! The constraint of an answer: the grammar of its text or tool calls, and a final check.
//!
//! A schema is enforced, or the request is refused. Exception: for tools without `strict`, only the grammar is enforced, and a
//! schema that cannot be a grammar is ignored.

use std::collections::HashMap;
use std::sync::Arc;

use hob_core::{EngineError, GenerateRequest, ResponseFormat, ToolChoice, ToolDefinition};
use llama_cpp_2::token::LlamaToken;

use crate::error::{bad_request, refused_schema};
use crate::grammar::{Grammar, GrammarText};
use crate::loaded_model::LoadedModel;
use crate::schema::{AnswerCheck, Enforceable, Validator};
use crate::tools::{self, Calls, ToolFormat};

/// The field of `response_format` in errors.
const RESPONSE_FORMAT: &str = "response_format";

/// The constraint of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Constraint {
    /// The grammar from the first token.
    pub(crate) grammar: Option<Grammar>,
    pub(crate) tools: Option<ToolUse>,
    /// The check of a finished answer.
    pub(crate) check: Option<AnswerCheck>,
}

/// How tool calls in the answer are written.
#[derive(Debug, Clone)]
pub(crate) struct ToolUse {
    pub(crate) format: ToolFormat,
    /// The grammar after the model begins a call unprompted.
    pub(crate) once_called: Option<Grammar>,
    /// Control tokens that mark calls, which must be visible.
    pub(crate) markers: Vec<i32>,
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

impl Constraint {
    /// Reads the schemas of a request. Must run in `grammar_thread`.
    pub(crate) fn read(loaded: &LoadedModel, request: &GenerateRequest) -> Result<Self, EngineError> {
        let mut constraint = tool_calls(loaded, request)?;
        let schema = match &request.response_format {
            ResponseFormat::Text => return Ok(constraint),
            _ if constraint.grammar.is_some() => {
                return Err(bad_request(
                    "an answer cannot be a tool call and follow 'response_format' at once",
                    Some(RESPONSE_FORMAT),
                ));
            }
            ResponseFormat::JsonObject => Enforceable::any_object(),
            ResponseFormat::JsonSchema(wanted) => {
                let refused = |error| refused_schema(error, RESPONSE_FORMAT);
                let schema = Enforceable::read(&wanted.schema).map_err(refused)?;
                if !schema.checked.is_empty() {
                    let validator = Validator::of(&wanted.schema).map_err(refused)?;
                    constraint.check = Some(AnswerCheck::Content(Arc::new(validator)));
                }
                schema
            }
        };
        let grammar = loaded.vocabulary()?.start(GrammarText::of_schema(schema));
        constraint.grammar = Some(grammar.map_err(|error| refused_schema(error.into(), RESPONSE_FORMAT))?);
        Ok(constraint)
    }
}

/// A tool with its index in the request.
struct Callable<'a> {
    field: String,
    tool: &'a ToolDefinition,
    /// Whether its schema must be enforced.
    exact: bool,
}

fn tool_calls(loaded: &LoadedModel, request: &GenerateRequest) -> Result<Constraint, EngineError> {
    let offered = offered(request);
    if offered.is_empty() {
        return Ok(Constraint::default());
    }
    let choice = request.tool_choice.as_ref();
    let forced = matches!(choice, Some(ToolChoice::Required | ToolChoice::Function(_)));
    let callable: Vec<Callable<'_>> = offered
        .iter()
        .enumerate()
        .filter(|(_, tool)| !matches!(choice, Some(ToolChoice::Function(name)) if tool.name != *name))
        .map(|(at, tool)| Callable {
            field: format!("tools[{at}]"),
            tool,
            exact: forced || tool.strict == Some(true),
        })
        .collect();
    if callable.is_empty() {
        return Err(bad_request(
            "'tool_choice' names a function that is not among 'tools'",
            Some("tool_choice"),
        ));
    }
    let calls = match (choice, request.parallel_tool_calls) {
        (Some(ToolChoice::Function(_)), _) | (_, Some(false)) => Calls::One,
        _ => Calls::Several,
    };
    let format = loaded.tool_format;
    let (grammar, check) = call_grammar(loaded, &callable, calls)?;
    let vocab = loaded.model.vocab();
    let markers = format
        .marks()
        .flat_map(|mark| loaded.tokens(mark, false))
        .filter(|&token| vocab.is_control(LlamaToken(token)))
        .collect();
    let (now, once_called) = if forced { (Some(grammar), None) } else { (None, Some(grammar)) };
    Ok(Constraint { grammar: now, tools: Some(ToolUse { format, once_called, markers }), check })
}

/// The grammar of calls, and a check for the rest.
fn call_grammar(
    loaded: &LoadedModel,
    callable: &[Callable<'_>],
    calls: Calls,
) -> Result<(Grammar, Option<AnswerCheck>), EngineError> {
    let mut schemas = Vec::with_capacity(callable.len());
    let mut validators = HashMap::new();
    for Callable { field, tool, exact } in callable {
        let refused = |error| refused_schema(error, field);
        let parameters = tools::parameters(tool);
        let schema = match Enforceable::read(&parameters) {
            Err(error) if !exact => {
                tracing::debug!(tool = tool.name, %error, "the schema of a tool is not enforced");
                Enforceable::any_object()
            }
            read => read.map_err(refused)?,
        };
        if *exact && !schema.checked.is_empty() {
            validators.insert(tool.name.clone(), Validator::of(&parameters).map_err(refused)?);
        }
        schemas.push((tool.name.as_str(), schema));
    }
    let vocabulary = loaded.vocabulary()?;
    let grammar = match vocabulary.start(loaded.tool_format.grammar(schemas, calls)) {
        Ok(grammar) => grammar,
        Err(error) if callable.iter().any(|tool| tool.exact) => {
            return Err(refused_schema(error.into(), &oversized_tool(loaded, callable)));
        }
        Err(error) => {
            tracing::debug!(model = %loaded.id, %error, "the schemas of the tools are too much for a grammar");
            let open = callable.iter().map(|tool| (tool.tool.name.as_str(), Enforceable::any_object()));
            vocabulary
                .start(loaded.tool_format.grammar(open.collect(), calls))
                .map_err(|error| refused_schema(error.into(), "tools"))?
        }
    };
    let check = (!validators.is_empty()).then(|| AnswerCheck::Calls(Arc::new(validators)));
    Ok((grammar, check))
}

/// The tool with a schema that is too large, or all.
fn oversized_tool(loaded: &LoadedModel, callable: &[Callable<'_>]) -> String {
    let is_too_much = |tool: &&Callable<'_>| {
        let schema = Enforceable::read(&tools::parameters(tool.tool)).map(GrammarText::of_schema);
        let Ok(vocabulary) = loaded.vocabulary() else { return false };
        schema.is_ok_and(|text| vocabulary.start(text).is_err())
    };
    callable.iter().find(is_too_much).map_or_else(|| "tools".to_owned(), |tool| tool.field.clone())
}
