//! Messages of one role in a row as one turn: most chat templates know turns that alternate. Each message is copied once, however many
//! there are.

use hob_core::{Content, ContentPart};
use serde_json::{Map, Value};

/// Adds `more` to `content`, with `between` between texts.
pub(crate) fn append(content: &mut Content, more: Content, between: &str) {
    match (&mut *content, more) {
        (_, Content::Empty) => {}
        (Content::Empty, more) => *content = more,
        (Content::Text(text), Content::Text(more)) => {
            text.push_str(between);
            text.push_str(&more);
        }
        (Content::Text(text), Content::Parts(more)) => {
            let first = ContentPart::Text(std::mem::take(text));
            *content = Content::Parts(std::iter::once(first).chain(more).collect());
        }
        (Content::Parts(parts), Content::Text(more)) => parts.push(ContentPart::Text(more)),
        (Content::Parts(parts), Content::Parts(more)) => parts.extend(more),
    }
}

/// Adds the further fields of one message to those of another: texts such as reasoning are joined, and lists are one list.
pub(crate) fn append_fields(fields: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (fields.get_mut(&name), value) {
            (Some(Value::String(text)), Value::String(more)) => {
                text.push('\n');
                text.push_str(&more);
            }
            (Some(Value::Array(items)), Value::Array(more)) => items.extend(more),
            (_, value) => drop(fields.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Content {
        Content::Text(text.to_owned())
    }

    fn parts(parts: &[&str]) -> Content {
        Content::Parts(parts.iter().map(|part| ContentPart::Text((*part).to_owned())).collect())
    }

    #[test]
    fn contents_of_every_form_are_put_together_in_order() {
        for (first, more, together) in [
            (Content::Empty, text("a"), text("a")),
            (text("a"), Content::Empty, text("a")),
            (text("a"), text("b"), text("a--b")),
            (text("a"), parts(&["b", "c"]), parts(&["a", "b", "c"])),
            (parts(&["a", "b"]), text("c"), parts(&["a", "b", "c"])),
            (parts(&["a"]), parts(&["b", "c"]), parts(&["a", "b", "c"])),
        ] {
            let mut content = first.clone();
            append(&mut content, more.clone(), "--");
            assert_eq!(content, together, "{first:?} {more:?}");
        }
    }

    #[test]
    fn what_is_there_is_not_copied_again() {
        let mut text = String::with_capacity(1 << 10);
        text.push('a');
        let mut parts = Vec::with_capacity(1 << 10);
        parts.push(ContentPart::Text("a".into()));
        let places = (text.as_ptr(), parts.as_ptr());
        let (mut text, mut parts) = (Content::Text(text), Content::Parts(parts));
        for _ in 0..100 {
            append(&mut text, Content::Text("b".into()), "");
            append(&mut parts, Content::Text("b".into()), "");
        }
        let (Content::Text(text), Content::Parts(parts)) = (text, parts) else { panic!("the kind changed") };
        assert_eq!((text.as_ptr(), parts.as_ptr()), places);
        assert_eq!((text.len(), parts.len()), (101, 101));
    }

    #[test]
    fn fields_of_two_messages_are_all_kept() {
        let fields = |value: Value| value.as_object().cloned().unwrap_or_default();
        let mut first = fields(json!({ "reasoning_content": "a", "thinking_blocks": [1], "id": 1 }));
        append_fields(
            &mut first,
            fields(json!({ "reasoning_content": "b", "thinking_blocks": [2, 3], "id": 2, "new": true })),
        );
        let both = json!({ "reasoning_content": "a\nb", "thinking_blocks": [1, 2, 3], "id": 2, "new": true });
        assert_eq!(first, fields(both));
    }
}
