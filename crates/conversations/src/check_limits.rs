//! What is not saved: values over the limits. Pure.

use thiserror::Error;

use crate::chat::{
    AssistantChange, AttachmentKind, ChatChange, NewChat, SavedAnswer, SavedAttachment, SavedQuestion,
    SavedSettings, SettingsChange,
};
use crate::store::limits::{
    MAX_ANSWER_DETAIL_BYTES, MAX_ANSWER_PARTS, MAX_ATTACHMENT_BYTES, MAX_ATTACHMENTS, MAX_NAME_CHARS,
    MAX_SYSTEM_BYTES, MAX_TEXT_BYTES, MAX_TITLE_CHARS, MAX_TOOLS,
};

/// A value that is not saved, and why.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct UnsavableValue {
    pub field: String,
    pub message: String,
    /// Whether it has too many bytes.
    pub is_too_large: bool,
}

impl UnsavableValue {
    fn new(field: &str, message: String) -> Self {
        UnsavableValue { field: field.to_owned(), message, is_too_large: false }
    }
}

type Checked = Result<(), UnsavableValue>;

fn within_bytes(field: &str, bytes: usize, most: usize) -> Checked {
    match bytes > most {
        true => Err(UnsavableValue {
            is_too_large: true,
            ..UnsavableValue::new(field, format!("{field} has {bytes} bytes; the limit is {most}"))
        }),
        false => Ok(()),
    }
}

fn within_count(field: &str, count: usize, most: usize) -> Checked {
    match count > most {
        true => Err(UnsavableValue::new(field, format!("{field} has {count} entries; the limit is {most}"))),
        false => Ok(()),
    }
}

fn name(field: &str, text: &str, most: usize) -> Checked {
    if text.trim().is_empty() {
        return Err(UnsavableValue::new(field, format!("{field} must not be empty")));
    }
    match text.chars().nth(most) {
        Some(_) => {
            Err(UnsavableValue::new(field, format!("{field} is longer than the limit of {most} characters")))
        }
        None => Ok(()),
    }
}

fn optional_name(field: &str, text: Option<&String>) -> Checked {
    text.map_or(Ok(()), |text| name(field, text, MAX_NAME_CHARS))
}

impl SavedSettings {
    pub fn check(&self) -> Checked {
        optional_name("settings.model", self.model.as_ref())?;
        optional_name("settings.agent", self.agent.as_ref())?;
        optional_name("settings.assistant", self.assistant.as_ref())?;
        let tools = self.tools.as_deref().unwrap_or_default();
        within_count("settings.tools", tools.len(), MAX_TOOLS)?;
        tools.iter().try_for_each(|tool| name("settings.tools", tool, MAX_NAME_CHARS))?;
        if let Some(system) = &self.system {
            let (field, bytes) = ("settings.system", system.len());
            if bytes > MAX_SYSTEM_BYTES {
                let message = format!("{field} has {bytes} bytes; the limit is {MAX_SYSTEM_BYTES}");
                return Err(UnsavableValue::new(field, message));
            }
        }
        let is_temperature = |value: f64| (0.0..=2.0).contains(&value);
        if let Some(value) = self.temperature.filter(|value| !is_temperature(*value)) {
            let message = format!("settings.temperature must be between 0 and 2, got {value}");
            return Err(UnsavableValue::new("settings.temperature", message));
        }
        if self.max_tokens == Some(0) {
            let message = "settings.max_tokens must be 1 or more".to_owned();
            return Err(UnsavableValue::new("settings.max_tokens", message));
        }
        Ok(())
    }
}

impl SettingsChange {
    pub fn check(&self) -> Checked {
        self.clone().applied_to(SavedSettings::default()).check()
    }
}

impl NewChat {
    pub fn check(&self) -> Checked {
        if let Some(title) = &self.title {
            name("title", title, MAX_TITLE_CHARS)?;
        }
        self.settings.check()
    }
}

impl ChatChange {
    pub fn check(&self) -> Checked {
        if let Some(title) = &self.title {
            name("title", title, MAX_TITLE_CHARS)?;
        }
        self.settings.as_ref().map_or(Ok(()), SettingsChange::check)
    }
}

impl AssistantChange {
    pub fn check(&self) -> Checked {
        if let Some(text) = &self.name {
            name("name", text, MAX_TITLE_CHARS)?;
        }
        self.settings.as_ref().map_or(Ok(()), SettingsChange::check)
    }
}

impl SavedQuestion {
    pub fn check(&self) -> Checked {
        within_bytes("question.text", self.text.len(), MAX_TEXT_BYTES)?;
        if self.text.trim().is_empty() && self.attachments.is_empty() {
            let message = "question.text must not be empty without attachments".to_owned();
            return Err(UnsavableValue::new("question.text", message));
        }
        within_count("question.attachments", self.attachments.len(), MAX_ATTACHMENTS)?;
        let mut bytes = 0;
        for SavedAttachment { name: file, kind, content } in &self.attachments {
            name("question.attachments.name", file, MAX_NAME_CHARS)?;
            if *kind == AttachmentKind::Image && !content.starts_with("data:image/") {
                let field = "question.attachments.content";
                let message = format!("{field} of an image must be a data: URL of a picture");
                return Err(UnsavableValue::new(field, message));
            }
            bytes += content.len();
        }
        within_bytes("question.attachments", bytes, MAX_ATTACHMENT_BYTES)
    }
}

impl SavedAnswer {
    pub fn check(&self) -> Checked {
        within_bytes("text", self.text.len(), MAX_TEXT_BYTES)?;
        let length = self.model.chars().count();
        if length > MAX_NAME_CHARS {
            let message = format!("model is longer than the limit of {MAX_NAME_CHARS} characters");
            return Err(UnsavableValue::new("model", message));
        }
        within_count("sources", self.sources.len(), MAX_ANSWER_PARTS)?;
        within_count("steps", self.steps.len(), MAX_ANSWER_PARTS)?;
        let texts = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let sources: usize =
            self.sources.iter().map(|source| source.document.len() + source.passage.len()).sum();
        let steps: usize = self
            .steps
            .iter()
            .map(|step| step.tool.len() + step.arguments.to_string().len() + step.result.to_string().len())
            .sum();
        let bytes = texts(&self.reasoning) + texts(&self.error) + sources + steps;
        within_bytes("reasoning, sources and steps", bytes, MAX_ANSWER_DETAIL_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(value: serde_json::Value) -> SavedQuestion {
        serde_json::from_value(value).expect("a question")
    }

    fn refused(checked: Checked) -> (String, bool) {
        let error = checked.expect_err("refused");
        (error.field, error.is_too_large)
    }

    #[test]
    fn a_question_has_limits() {
        let good = json!({ "text": "What is it?", "attachments": [
            { "name": "a.png", "kind": "image", "content": "data:image/png;base64,AAAA" },
            { "name": "a.txt", "kind": "text", "content": "" },
        ] });
        assert_eq!(question(good).check(), Ok(()));
        let file =
            json!({ "name": "a.txt", "kind": "text", "content": "x".repeat(MAX_ATTACHMENT_BYTES + 1) });
        let many = vec![json!({ "name": "a.txt", "kind": "text", "content": "" }); MAX_ATTACHMENTS + 1];
        let link = json!({ "name": "a.png", "kind": "image", "content": "https://example.org/a.png" });
        for (value, field, is_too_large) in [
            (json!({ "text": " " }), "question.text", false),
            (json!({ "text": "x".repeat(MAX_TEXT_BYTES + 1) }), "question.text", true),
            (json!({ "text": "", "attachments": [file] }), "question.attachments", true),
            (json!({ "text": "", "attachments": many }), "question.attachments", false),
            (json!({ "text": "", "attachments": [link] }), "question.attachments.content", false),
        ] {
            assert_eq!(refused(question(value).check()), (field.to_owned(), is_too_large));
        }
    }

    #[test]
    fn settings_titles_and_answers_have_limits() {
        let settings = |value| serde_json::from_value::<SettingsChange>(value).expect("a change");
        assert_eq!(settings(json!({ "temperature": 2, "max_tokens": 1, "model": null })).check(), Ok(()));
        assert_eq!(settings(json!({ "system": "x".repeat(MAX_SYSTEM_BYTES) })).check(), Ok(()));
        for (value, field) in [
            (json!({ "temperature": 2.1 }), "settings.temperature"),
            (json!({ "max_tokens": 0 }), "settings.max_tokens"),
            (json!({ "model": "" }), "settings.model"),
            (json!({ "tools": [" "] }), "settings.tools"),
            (json!({ "tools": vec!["t"; MAX_TOOLS + 1] }), "settings.tools"),
            (json!({ "system": "x".repeat(MAX_SYSTEM_BYTES + 1) }), "settings.system"),
        ] {
            assert_eq!(refused(settings(value).check()), (field.to_owned(), false));
        }
        let titled = |title: String| ChatChange { title: Some(title), ..ChatChange::default() };
        assert_eq!(titled("ü".repeat(MAX_TITLE_CHARS)).check(), Ok(()));
        assert_eq!(refused(titled("ü".repeat(MAX_TITLE_CHARS + 1)).check()), ("title".to_owned(), false));
        let answer = |value| serde_json::from_value::<SavedAnswer>(value).expect("an answer");
        let long = json!({ "text": "x".repeat(MAX_TEXT_BYTES + 1), "model": "m", "ending": "complete" });
        assert_eq!(refused(answer(long).check()), ("text".to_owned(), true));
        let steps = vec![json!({ "tool": "t" }); MAX_ANSWER_PARTS + 1];
        let steps = json!({ "text": "", "model": "m", "ending": "failed", "steps": steps });
        assert_eq!(refused(answer(steps).check()), ("steps".to_owned(), false));
    }
}
