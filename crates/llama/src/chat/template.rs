//! The chat template of a model: a Jinja program that turns a conversation into text, run by llama.cpp.
//!
//! The file is not trusted, so its time, its memory and its depth are limited.

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use thiserror::Error;

use super::answer_format::AnswerFormat;
use super::call_ids::{CallIds, TRIED_NAME};
use super::native::{CallLimits, NativeTemplate};

/// Enough for thousands of messages. A template that takes longer is stopped; in tests sooner.
const LIMITS: CallLimits = CallLimits {
    steps: if cfg!(test) { 1_000_000 } else { 10_000_000 },
    milliseconds: 5_000,
    bytes: if cfg!(test) { 64 << 20 } else { 512 << 20 },
    stack: 512 << 10,
};

/// Bytes of a template. Those of real ones have some ten thousand.
const MAX_SOURCE: usize = 4 << 20;

/// Memory for each byte of a conversation: a template copies texts from block to block.
const BYTES_PER_BYTE: usize = 256;

/// The start of the template's own errors.
const RAISED: &str = "Jinja Exception: ";

/// A format for models whose own template has none: tool calls as most models know them, and reasoning in its most common marks.
const COMMON_FORMAT: &str = "\
{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- if message.reasoning_content %}{{ '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls %}
{{- '<tool_call>{\"name\": \"' + call.function.name + '\", \"arguments\": ' + (call.function.arguments | tojson) + '}</tool_call>' }}
{%- endfor %}
{{- '<|end|>' }}
{%- else %}{{ '<|' + message.role + '|>' + message.content + '<|end|>' }}{% endif %}
{%- endfor %}
{%- if tools %}{{ tools | tojson }}{% endif %}
{%- if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}";

/// Why a conversation cannot be rendered.
#[derive(Debug, Error)]
pub(crate) enum TemplateError {
    #[error("cannot read the model's chat template: {0}")]
    Unreadable(String),
    /// The template's own error, such as that roles must alternate.
    #[error("the model's chat template refuses this conversation: {0}")]
    Refused(String),
    #[error("the model's chat template failed: {0}")]
    Failed(String),
}

impl TemplateError {
    fn from_run(message: &str) -> Self {
        match message.rsplit_once(RAISED) {
            Some((_, reason)) => TemplateError::Refused(reason.trim().to_owned()),
            None => {
                // The lines before quote the template.
                let reason = message.rsplit("Error: ").next().unwrap_or(message);
                TemplateError::Failed(reason.trim().chars().take(300).collect())
            }
        }
    }
}

/// The input of a template.
pub(crate) struct Conversation<'a> {
    /// In the chat-completions format.
    pub(crate) messages: &'a [Value],
    /// In the chat-completions format.
    pub(crate) tools: &'a [Value],
    /// What the template prints instead of the JSON of a tool, by its name.
    pub(crate) signatures: &'a Map<String, Value>,
    /// Variables of the caller.
    pub(crate) variables: &'a Map<String, Value>,
    pub(crate) calling: Calling,
}

/// What the answer may do with the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calling {
    /// The prompt lists them, and the answer is read as text.
    Never,
    /// `several` calls at most one, or more.
    Possible { several: bool },
    /// The answer is a call.
    Forced { several: bool },
}

/// A rendered conversation.
#[derive(Debug)]
pub(crate) struct Rendered {
    pub(crate) prompt: String,
    pub(crate) format: AnswerFormat,
}

/// What a template does with tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolSupport {
    /// It lists tools, and its answers have a format for calls that the chat layer recognises.
    Full,
    /// It lists tools, and the format of its calls is not known.
    ListOnly,
    None,
}

/// What llama.cpp found out about a template.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateInfo {
    supports_tools: bool,
    supports_tool_calls: bool,
}

#[derive(Debug)]
pub(crate) struct ChatTemplate {
    native: NativeTemplate,
    source: String,
    pub(crate) tools: ToolSupport,
    /// Whether it writes the calls of earlier answers. Otherwise they must be part of their text.
    pub(crate) writes_calls: bool,
    /// What it demands of their ids.
    pub(crate) call_ids: CallIds,
    /// Whether it has a format for reasoning.
    pub(crate) thinks: bool,
    /// The texts that mark calls and reasoning in its answers.
    pub(crate) marks: Vec<String>,
}

impl ChatTemplate {
    pub(crate) fn new(source: &str, bos: &str, eos: &str) -> Result<Self, TemplateError> {
        if source.len() > MAX_SOURCE {
            return Err(TemplateError::Unreadable(format!("it has more than {} MiB", MAX_SOURCE >> 20)));
        }
        let (native, info) =
            NativeTemplate::new(source, bos, eos, LIMITS).map_err(TemplateError::Unreadable)?;
        let info: TemplateInfo = serde_json::from_str(&info).unwrap_or_default();
        let mut template = ChatTemplate {
            native,
            source: source.to_owned(),
            tools: if info.supports_tools { ToolSupport::ListOnly } else { ToolSupport::None },
            writes_calls: info.supports_tool_calls,
            call_ids: CallIds::Any,
            thinks: false,
            marks: Vec::new(),
        };
        // A trial shows the format. A template that refuses it may take other conversations.
        if let Ok(trial) = template.trial() {
            if info.supports_tools && trial.grammar().is_some() {
                template.tools = ToolSupport::Full;
            }
            template.thinks = trial.thinks();
            template.marks = trial.marks().map(str::to_owned).collect();
        }
        if template.writes_calls {
            template.call_ids = CallIds::of_template(|id| template.prompt_after_call(id));
        }
        Ok(template)
    }

    /// The format for models whose template has none.
    pub(crate) fn common() -> Result<&'static ChatTemplate, TemplateError> {
        static COMMON: LazyLock<Result<ChatTemplate, TemplateError>> =
            LazyLock::new(|| ChatTemplate::new(COMMON_FORMAT, "", ""));
        COMMON.as_ref().map_err(|error| TemplateError::Unreadable(error.to_string()))
    }

    /// The format of an answer in words, for models whose template has none.
    pub(crate) fn common_words() -> Result<AnswerFormat, TemplateError> {
        static WORDS: LazyLock<Result<AnswerFormat, TemplateError>> = LazyLock::new(|| {
            let message = json!({ "role": "user", "content": "Hello" });
            let conversation = Conversation {
                messages: &[message],
                tools: &[],
                signatures: &Map::new(),
                variables: &Map::new(),
                calling: Calling::Never,
            };
            ChatTemplate::common()?.render(&conversation).map(|rendered| rendered.format)
        });
        WORDS.as_ref().map(AnswerFormat::clone).map_err(|error| TemplateError::Unreadable(error.to_string()))
    }

    fn trial(&self) -> Result<AnswerFormat, TemplateError> {
        let message = json!({ "role": "user", "content": "Hello" });
        Ok(self.try_on(&[message], Calling::Forced { several: true })?.format)
    }

    /// The prompt of a conversation with a call that has this id; `None` if the template refuses it.
    fn prompt_after_call(&self, id: &str) -> Option<String> {
        let function = json!({ "name": TRIED_NAME, "arguments": "{\"value\": \"a\"}" });
        let call = json!({ "id": id, "type": "function", "function": function });
        let messages = [
            json!({ "role": "user", "content": "Hello" }),
            json!({ "role": "assistant", "content": "", "tool_calls": [call] }),
            json!({ "role": "tool", "content": "b", "tool_call_id": id }),
        ];
        Some(self.try_on(&messages, Calling::Never).ok()?.prompt)
    }

    /// Renders a conversation with a tool.
    fn try_on(&self, messages: &[Value], calling: Calling) -> Result<Rendered, TemplateError> {
        let parameters = json!({ "type": "object", "properties": { "value": { "type": "string" } } });
        let function = json!({ "name": "trial", "description": "A trial", "parameters": parameters });
        self.render(&Conversation {
            messages,
            tools: &[json!({ "type": "function", "function": function })],
            signatures: &Map::new(),
            variables: &Map::new(),
            calling,
        })
    }

    /// The source of the template.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Renders the text up to the start of the answer.
    pub(crate) fn render(&self, conversation: &Conversation<'_>) -> Result<Rendered, TemplateError> {
        let (choice, several) = match conversation.calling {
            Calling::Never => ("none", false),
            Calling::Possible { several } => ("auto", several),
            Calling::Forced { several } => ("required", several),
        };
        let thinking = conversation.variables.get("enable_thinking").and_then(Value::as_bool);
        let request = json!({
            "messages": conversation.messages,
            "tools": conversation.tools,
            "tool_choice": choice,
            "parallel_tool_calls": several,
            "add_generation_prompt": true,
            "enable_thinking": thinking.unwrap_or(true),
            "variables": conversation.variables,
            "signatures": conversation.signatures,
            "calls_only": true,
        })
        .to_string();
        let limits =
            CallLimits { bytes: LIMITS.bytes.saturating_add(request.len() * BYTES_PER_BYTE), ..LIMITS };
        let (prompt, details) =
            self.native.apply(&request, limits).map_err(|error| TemplateError::from_run(&error))?;
        let format = AnswerFormat::read(&details, &prompt)
            .map_err(|error| TemplateError::Failed(format!("its format cannot be read: {error}")))?;
        Ok(Rendered { prompt, format })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHATML: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] \
        + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

    fn render(source: &str, messages: &[Value], tools: &[Value]) -> Result<String, TemplateError> {
        let template = ChatTemplate::new(source, "<s>", "</s>")?;
        let variables = Map::new();
        let conversation = Conversation {
            messages,
            tools,
            signatures: &Map::new(),
            variables: &variables,
            calling: Calling::Never,
        };
        template.render(&conversation).map(|rendered| rendered.prompt)
    }

    fn hi() -> Value {
        json!({"role": "user", "content": "Hi"})
    }

    #[test]
    fn a_conversation_is_rendered() {
        let text = render(CHATML, &[hi()], &[]).expect("renders");
        assert_eq!(text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    }

    #[test]
    fn tools_reach_the_template_as_json_without_escapes() {
        let source = "{%- for tool in tools %}{{ tool | tojson }}{% endfor %}";
        let function = json!({"name": "a<b", "description": "é", "parameters": {"x": [1, 2]}});
        let text =
            render(source, &[hi()], &[json!({"type": "function", "function": function})]).expect("renders");
        assert_eq!(
            text,
            r#"{"type": "function", "function": {"name": "a<b", "description": "é", "parameters": {"x": [1, 2]}}}"#
        );
    }

    #[test]
    fn marks_of_text_by_callers_survive_the_template() {
        // The marks around control tokens that callers spell; see `control_tokens`.
        let marked = "a\u{FDD0}<s>\u{FDD1}b";
        let source = "{% for m in messages %}{{ m.content | trim }}{% for c in m.tool_calls %}{{ c.function.name }}\
            {{ c.function.arguments | tojson }}{% endfor %}{% endfor %}{{ tools | tojson }}{{ style | upper }}";
        let arguments = json!({ (marked): marked }).to_string();
        let call =
            json!({"id": "1", "type": "function", "function": {"name": marked, "arguments": arguments}});
        let messages = [
            json!({"role": "user", "content": marked}),
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
        ];
        let parameters =
            json!({"type": "object", "properties": {(marked): {"type": "string", "enum": [marked]}}});
        let function = json!({"name": "f", "description": marked, "parameters": parameters});
        let conversation = Conversation {
            messages: &messages,
            tools: &[json!({"type": "function", "function": function})],
            signatures: &Map::new(),
            variables: &Map::from_iter([("style".to_owned(), json!(marked))]),
            calling: Calling::Never,
        };
        let template = ChatTemplate::new(source, "<s>", "</s>").expect("a template");
        let prompt = template.render(&conversation).expect("renders").prompt;
        assert_eq!(prompt.matches(marked).count(), 7, "{prompt}");
        assert_eq!(prompt.matches("<s>").count() + prompt.matches("<S>").count(), 8, "{prompt}");
        assert_eq!(prompt.matches('\u{FDD0}').count(), 8, "{prompt}");
    }

    #[test]
    fn python_methods_and_special_tokens_work() {
        let source = "{{ bos_token }}{{ messages[0].content.strip().split(' ')[0] }}{{ eos_token }}";
        let text = render(source, &[json!({"role": "user", "content": "  one two "})], &[]).expect("renders");
        assert_eq!(text, "<s>one</s>");
    }

    #[test]
    fn the_templates_own_error_is_passed_on() {
        let source = "{% if messages|length > 2 %}{{ raise_exception('roles must alternate') }}{% endif %}{{ messages }}";
        let error = render(source, &[hi(), hi(), hi()], &[]).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "the model's chat template refuses this conversation: roles must alternate"
        );
    }

    #[test]
    fn a_template_that_never_ends_is_stopped() {
        let source = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{{ a }}\
            {% endfor %}{% endfor %}{% endfor %}";
        assert!(render(source, &[hi()], &[]).is_err());
        assert!(render("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", &[hi()], &[]).is_err());
    }

    #[test]
    fn a_template_that_fills_the_memory_is_stopped() {
        let doubling = "{% set n = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}";
        for source in [doubling, "{{ 'a' * 99999999999 }}", "{{ range(99999999999) }}"] {
            assert!(render(source, &[hi()], &[]).is_err(), "{source}");
        }
    }

    /// Why a template cannot be read.
    fn unreadable(source: &str) -> String {
        match ChatTemplate::new(source, "<s>", "</s>") {
            Err(TemplateError::Unreadable(reason)) => reason,
            other => panic!("{:?} of {source:.20}", other.map(|template| template.marks)),
        }
    }

    #[test]
    fn a_template_that_is_nested_too_deeply_is_refused() {
        const DEPTH: usize = 20_000;
        let expression =
            |open: &str, close: &str| format!("{{{{ {}1{} }}}}", open.repeat(DEPTH), close.repeat(DEPTH));
        for (open, close) in
            [("(", ")"), ("[", "]"), ("{'a': ", "}"), ("f(", ")"), ("x[", "]"), ("not ", ""), ("-", "")]
        {
            assert_eq!(
                unreadable(&expression(open, close)),
                "a statement or an expression of it is too long",
                "{open}"
            );
        }
        let statements = [
            ("{% if 1 %}", "{% endif %}"),
            ("{% for a in b %}", "{% endfor %}"),
            ("{% set a %}", "{% endset %}"),
            ("{% macro f() %}", "{% endmacro %}"),
            ("{% filter upper %}", "{% endfilter %}"),
            ("{% if 1 %}{% else %}", "{% endif %}"),
        ];
        for (open, close) in statements {
            let source = format!("{}x{}", open.repeat(DEPTH), close.repeat(DEPTH));
            assert_eq!(unreadable(&source), "it is nested too deeply", "{open}");
        }
        let chained = format!("{{% if 1 %}}{}{{% endif %}}", "{% elif 1 %}".repeat(DEPTH));
        assert_eq!(unreadable(&chained), "it is nested too deeply");
    }

    #[test]
    fn nesting_within_one_expression_is_refused_before_the_stack_ends() {
        // Within the length of an expression.
        for (open, close) in [("(", ")"), ("[", "]")] {
            let source = format!("{{{{ {}1{} }}}}", open.repeat(2000), close.repeat(2000));
            assert_eq!(unreadable(&source), "it is nested too deeply", "{open}");
        }
    }

    #[test]
    fn a_chain_that_is_freed_with_recursion_is_refused() {
        for link in ["+ 1 ", "| upper ", ".a", "[0]", "is defined ", "and 1 ", "== 1 "] {
            let chain = link.repeat(20_000);
            for source in [format!("{{{{ a {chain} }}}}"), format!("{{% set b = a {chain} %}}")] {
                assert_eq!(unreadable(&source), "a statement or an expression of it is too long", "{link}");
            }
        }
        // As long as those of real templates.
        let usual = format!("{{{{ 'a' {} }}}}", "~ 'a' ".repeat(50));
        assert_eq!(render(&usual.repeat(3), &[hi()], &[]).ok(), Some("a".repeat(153)));
    }

    #[test]
    fn lists_that_a_template_nests_too_deeply_are_refused() {
        let repeated = |times: u32, statement: &str| {
            format!("{{% set n = namespace(l=[]) %}}{{% for i in range({times}) %}}{statement}{{% endfor %}}")
        };
        for source in [
            repeated(99_999, "{% set n.l = [n.l] %}"),
            repeated(99_999, "{% set n.l = (n.l, 1) %}") + "{{ n.l == n.l }}",
            repeated(60, "{% set n.l = [n.l, n.l] %}") + "{{ n.l }}",
            "{% set l = [] %}{% set m = l.append(l) %}{{ l }}".to_owned(),
            "{% set l = [] %}{{ l.append(l) }}{{ l | tojson }}".to_owned(),
        ] {
            assert!(render(&source, &[hi()], &[]).is_err(), "{source}");
        }
        let usual = repeated(20, "{% set n.l = [n.l] %}") + "{{ messages[0].content }}";
        assert_eq!(render(&usual, &[hi()], &[]).ok().as_deref(), Some("Hi"));
    }

    #[test]
    fn a_template_that_is_too_large_is_refused() {
        let reason = "it has more than 4 MiB";
        assert_eq!(unreadable(&"x".repeat(MAX_SOURCE + 1)), reason);
    }

    #[test]
    fn a_broken_template_has_its_own_error() {
        for source in ["{% if %}", "{{ 'unclosed", "{% for 1 in x %}{% endfor %}", "{% endfor %}"] {
            assert!(matches!(render(source, &[hi()], &[]), Err(TemplateError::Unreadable(_))), "{source}");
        }
        assert!(render("{{ 5 is divisibleby(0) }}{% break %}", &[hi()], &[]).is_err());
    }

    #[test]
    fn the_common_format_has_calls_and_reasoning() {
        let common = ChatTemplate::common().expect("a format");
        assert_eq!((common.tools, common.thinks), (ToolSupport::Full, true));
        assert_eq!(common.marks, ["<think>", "</think>", "<tool_call>", "</tool_call>"]);
    }
}
