//! Prompt templates as clients of Ollama send them. They are written for Go's template engine; Hob reads what prompts need: text, the
//! variables `.System`, `.Prompt`, `.Suffix` and `.Response`, and conditions on them.

/// Conditions inside each other.
const MAX_DEPTH: usize = 64;

/// What a template puts into the prompt.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TemplateValues<'a> {
    pub(super) system: &'a str,
    pub(super) prompt: &'a str,
    pub(super) suffix: &'a str,
}

impl<'a> TemplateValues<'a> {
    fn get(&self, variable: &str) -> Option<&'a str> {
        match variable {
            ".System" => Some(self.system),
            ".Prompt" => Some(self.prompt),
            ".Suffix" => Some(self.suffix),
            // What the model writes: there is none before it.
            ".Response" => Some(""),
            _ => None,
        }
    }
}

/// Why a template makes no prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TemplateError {
    /// What Hob cannot read.
    Unread(String),
    /// The prompt would have more bytes than the limit: a variable may stand in a template many times.
    TooLong,
}

/// The prompt so far.
struct PromptText {
    text: String,
    most: usize,
}

impl PromptText {
    fn push(&mut self, text: &str) -> Result<(), TemplateError> {
        if text.len() > self.most - self.text.len() {
            return Err(TemplateError::TooLong);
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// A condition whose end has not come yet.
struct Condition {
    holds: bool,
    in_else: bool,
}

impl Condition {
    fn shows(&self) -> bool {
        self.holds != self.in_else
    }
}

/// The prompt that a template makes, of at most `most` bytes. It ends where the answer of the model begins.
pub(super) fn render(
    template: &str,
    values: TemplateValues<'_>,
    most: usize,
) -> Result<String, TemplateError> {
    let mut prompt = PromptText { text: String::new(), most };
    let mut conditions: Vec<Condition> = Vec::new();
    let mut rest = template;
    let mut trims = false;
    while let Some((text, after)) = rest.split_once("{{") {
        let (action, after_action) =
            after.split_once("}}").ok_or_else(|| TemplateError::Unread("an action without }}".to_owned()))?;
        let shows = conditions.iter().all(Condition::shows);
        let text = if trims { text.trim_start() } else { text };
        let (action, trims_before) = match action.strip_prefix('-') {
            Some(action) => (action, true),
            None => (action, false),
        };
        if shows {
            prompt.push(if trims_before { text.trim_end() } else { text })?;
        }
        (rest, trims) = (after_action, action.ends_with('-'));
        let words: Vec<&str> = action.trim_end_matches('-').split_whitespace().collect();
        match words.as_slice() {
            [".Response"] if shows => return Ok(prompt.text),
            ["if", variable] if conditions.len() < MAX_DEPTH => {
                let value = values.get(variable).ok_or_else(|| unread(&words))?;
                conditions.push(Condition { holds: !value.is_empty(), in_else: false });
            }
            ["else"] => match conditions.last_mut() {
                Some(condition) if !condition.in_else => condition.in_else = true,
                _ => return Err(unread(&words)),
            },
            ["end"] if !conditions.is_empty() => {
                conditions.pop();
            }
            [comment, ..] if comment.starts_with("/*") => {}
            [variable] => {
                let value = values.get(variable).ok_or_else(|| unread(&words))?;
                if shows {
                    prompt.push(value)?;
                }
            }
            _ => return Err(unread(&words)),
        }
    }
    if !conditions.is_empty() {
        return Err(TemplateError::Unread("a condition without {{ end }}".to_owned()));
    }
    prompt.push(if trims { rest.trim_start() } else { rest })?;
    Ok(prompt.text)
}

fn unread(words: &[&str]) -> TemplateError {
    let action: String = words.join(" ").chars().take(60).collect();
    TemplateError::Unread(format!("{{{{ {action} }}}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: TemplateValues<'_> = TemplateValues { system: "Be brief.", prompt: "Hi", suffix: "" };

    fn render(template: &str, values: TemplateValues<'_>) -> Result<String, TemplateError> {
        super::render(template, values, 1 << 20)
    }

    #[test]
    fn variables_and_conditions_make_a_prompt() {
        for (template, prompt) in [
            ("{{ .Prompt }}", "Hi"),
            ("{{.Prompt}}!", "Hi!"),
            ("{{ if .System }}S: {{ .System }}\n{{ end }}U: {{ .Prompt }}", "S: Be brief.\nU: Hi"),
            ("{{ if .Suffix }}<S>{{ .Suffix }}{{ else }}none{{ end }}", "none"),
            ("a  {{- if .System -}}  b  {{- end -}}  c", "abc"),
            ("{{ .Prompt }}<A>{{ .Response }}<E>", "Hi<A>"),
            ("{{ if .Suffix }}{{ .Response }}{{ end }}{{ .Prompt }}", "Hi"),
            ("{{- /* a note */ -}} x", "x"),
            ("no variables", "no variables"),
            ("", ""),
        ] {
            assert_eq!(render(template, VALUES), Ok(prompt.to_owned()), "{template}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (template, unread) in [
            ("{{ range .Messages }}x{{ end }}", "{{ range .Messages }}"),
            ("{{ .Tools }}", "{{ .Tools }}"),
            ("{{ if and .System .Prompt }}x{{ end }}", "{{ if and .System .Prompt }}"),
            ("{{ end }}", "{{ end }}"),
            ("{{ if .System }}{{ else }}{{ else }}{{ end }}", "{{ else }}"),
            ("{{ if .System }}x", "a condition without {{ end }}"),
            ("{{ .Prompt", "an action without }}"),
            ("{{ }}", "{{  }}"),
        ] {
            assert_eq!(render(template, VALUES), Err(TemplateError::Unread(unread.to_owned())), "{template}");
        }
        let deep = "{{ if .System }}".repeat(10_000);
        assert_eq!(render(&deep, VALUES), Err(TemplateError::Unread("{{ if .System }}".to_owned())));
    }

    #[test]
    fn a_variable_that_is_repeated_does_not_make_a_prompt_of_any_length() {
        let prompt = "x".repeat(1 << 10);
        let values = TemplateValues { prompt: &prompt, ..TemplateValues::default() };
        let most = 4 << 10;
        let times = |count: usize| super::render(&"{{.Prompt}}".repeat(count), values, most);
        assert_eq!(times(4).map(|prompt| prompt.len()), Ok(most));
        assert_eq!(times(5), Err(TemplateError::TooLong));
        assert_eq!(super::render("{{.Prompt}} and text", values, 1 << 10), Err(TemplateError::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn any_template_may_be_sent(template in "(\\{\\{|\\}\\}|-| |if|else|end|\\.System|\\.Prompt|x|é){0,40}") {
            let _ = render(&template, VALUES);
        }
    }
}
