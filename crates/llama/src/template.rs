//! The chat template of a model: a Jinja program that turns a conversation into text.
//!
//! It runs with the functions that such templates expect. The file is not trusted, so its run time is limited. Knows nothing of
//! requests or llama.cpp.

use jiff::Timestamp;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, Value as Jinja};
use minijinja::{Environment, Error, ErrorKind, State, context};
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error as ThisError;

/// The limit of instructions: enough for thousands of messages.
const FUEL: u64 = 50_000_000;

/// Why a conversation cannot be rendered.
#[derive(Debug, ThisError)]
pub(crate) enum TemplateError {
    #[error("cannot read the model's chat template: {0}")]
    Unreadable(String),
    /// The template's own error, such as that roles must alternate.
    #[error("the model's chat template refuses this conversation: {0}")]
    Refused(String),
    #[error("the model's chat template failed: {0}")]
    Failed(String),
}

/// The input of a template.
pub(crate) struct Conversation<'a> {
    /// In the chat-completions format.
    pub(crate) messages: &'a [Value],
    /// In the chat-completions format.
    pub(crate) tools: &'a [Value],
    /// What the template prints instead of JSON, by the JSON that it replaces.
    pub(crate) signatures: &'a Map<String, Value>,
    /// Variables of the caller.
    pub(crate) variables: &'a Map<String, Value>,
}

#[derive(Debug)]
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
    /// Whether it supports tools.
    pub(crate) knows_tools: bool,
    source: String,
}

impl ChatTemplate {
    pub(crate) fn new(source: &str, bos: String, eos: String) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| TemplateError::Unreadable(reason(&error)))?;
        environment.set_syntax(syntax);
        environment.set_fuel(Some(FUEL));
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", raise_exception);
        environment.add_function("strftime_now", |format: &str| date_text(format, Timestamp::now()));
        environment.add_filter("tojson", to_json);
        // Marks for training, which have no meaning here.
        let plain = source
            .replace("{% generation %}", "")
            .replace("{%- generation -%}", "")
            .replace("{%- generation %}", "")
            .replace("{% endgeneration %}", "")
            .replace("{%- endgeneration -%}", "")
            .replace("{%- endgeneration %}", "");
        environment
            .add_template_owned("chat", plain)
            .map_err(|error| TemplateError::Unreadable(reason(&error)))?;
        Ok(ChatTemplate {
            environment,
            bos,
            eos,
            knows_tools: source.contains("tools"),
            source: source.to_owned(),
        })
    }

    /// The source of the template.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Renders the text up to the start of the answer.
    pub(crate) fn render(&self, conversation: &Conversation<'_>) -> Result<String, TemplateError> {
        let template =
            self.environment.get_template("chat").map_err(|error| TemplateError::Failed(reason(&error)))?;
        let tools = (!conversation.tools.is_empty()).then_some(conversation.tools);
        let fixed = context! {
            messages => Jinja::from(Serde(conversation.messages)),
            tools => Jinja::from(Serde(tools)),
            hob_signatures => Jinja::from(Serde(conversation.signatures)),
            add_generation_prompt => true,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        let variables = Jinja::from(Serde(conversation.variables));
        template.render(context! { ..fixed, ..variables }).map_err(|error| match error.kind() {
            // The only error that functions raise for a template.
            ErrorKind::InvalidOperation if error.detail().is_some_and(|d| d.starts_with(RAISED)) => {
                TemplateError::Refused(
                    error.detail().unwrap_or_default().trim_start_matches(RAISED).to_owned(),
                )
            }
            _ => TemplateError::Failed(reason(&error)),
        })
    }
}

/// Formats a time. Unknown directives of `strftime` stay unchanged.
fn date_text(format: &str, at: Timestamp) -> String {
    at.strftime(format).to_string()
}

const RAISED: &str = "raised: ";

fn raise_exception(message: &str) -> Result<Jinja, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{message}")))
}

fn reason(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// JSON as in Python: no HTML escapes, a blank after `,` and `:`. A tool with a signature is printed as its signature.
fn to_json(state: &State<'_, '_>, value: &Jinja, options: Kwargs) -> Result<Jinja, Error> {
    let failed = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let indent: Option<usize> = options.get("indent")?;
    let spaced = dump(value, Spaced).map_err(failed)?;
    let signature = state.lookup("hob_signatures").and_then(|known| known.get_attr(&spaced).ok());
    if let Some(signature) = signature.filter(|signature| !signature.is_undefined()) {
        return Ok(signature);
    }
    let text = match indent {
        Some(width) => {
            let blanks = vec![b' '; width.min(16)];
            dump(value, serde_json::ser::PrettyFormatter::with_indent(&blanks)).map_err(failed)?
        }
        None => spaced,
    };
    Ok(Jinja::from_safe_string(text))
}

fn dump(
    value: &impl Serialize,
    formatter: impl serde_json::ser::Formatter,
) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// JSON with a blank after each comma and colon.
pub(crate) fn spaced_json(value: &Value) -> String {
    dump(value, Spaced).unwrap_or_else(|_| value.to_string())
}

struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHATML: &str = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] \
        + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

    fn render(source: &str, messages: &[Value], tools: &[Value]) -> Result<String, TemplateError> {
        ChatTemplate::new(source, "<s>".into(), "</s>".into())?.render(&Conversation {
            messages,
            tools,
            signatures: &Map::new(),
            variables: &Map::new(),
        })
    }

    #[test]
    fn a_conversation_is_rendered() {
        let text = render(CHATML, &[json!({"role": "user", "content": "Hi"})], &[]).expect("renders");
        assert_eq!(text, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    }

    #[test]
    fn tools_reach_the_template_as_json_without_escapes() {
        let source = "{%- for tool in tools %}{{ tool | tojson }}{% endfor %}";
        let text =
            render(source, &[], &[json!({"name": "a<b", "parameters": {"x": [1, 2]}})]).expect("renders");
        assert_eq!(text, r#"{"name": "a<b", "parameters": {"x": [1, 2]}}"#);
    }

    #[test]
    fn python_methods_and_special_tokens_work() {
        let source = "{{ bos_token }}{{ messages[0].content.strip().split(' ')[0] }}{{ eos_token }}";
        let text = render(source, &[json!({"content": "  one two "})], &[]).expect("renders");
        assert_eq!(text, "<s>one</s>");
    }

    #[test]
    fn the_templates_own_error_is_passed_on() {
        let error = render("{{ raise_exception('roles must alternate') }}", &[], &[]).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "the model's chat template refuses this conversation: roles must alternate"
        );
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let text = |format, seconds| date_text(format, Timestamp::from_second(seconds).expect("in range"));
        assert_eq!(text("%d %b %Y %H:%M:%S %A", 1_709_209_845), "29 Feb 2024 12:30:45 Thursday");
        assert_eq!(text("%e %B %y, %a", 0), " 1 January 70, Thu");
        assert_eq!(text("100%% %! %", 0), "100% %! %");
    }

    #[test]
    fn a_template_that_never_ends_is_stopped() {
        let source = "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{{ a }}\
            {% endfor %}{% endfor %}{% endfor %}";
        assert!(matches!(render(source, &[], &[]), Err(TemplateError::Failed(_))));
    }

    #[test]
    fn a_broken_template_has_its_own_error() {
        assert!(matches!(render("{% if %}", &[], &[]), Err(TemplateError::Unreadable(_))));
    }
}
