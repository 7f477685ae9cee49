//! Ids of calls in the history, as the template of the model takes them. A conversation may have begun with another model, which makes
//! other ids.

use std::borrow::Cow;
use std::collections::HashMap;

use hob_core::call_id::{accepted, is_short, plain};
use hob_core::{Message, ToolCall};

/// What a template demands of the ids of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallIds {
    /// It prints any id, or none.
    Any,
    /// It refuses all but nine letters and digits, as those of Mistral do.
    Short,
    /// It prints `functions.NAME:INDEX` in the place of the name, as those of Kimi do.
    Named,
}

/// The ids of an earlier call, and of its result.
const TRIED: &str = "call_0123456789abcdefghijklmn";
const TRIED_SHORT: &str = "call00001";

/// The name of that call, which is in no list of tools.
pub(super) const TRIED_NAME: &str = "earlier";

impl CallIds {
    /// What a template demands. `render` makes the prompt of a conversation with a call of [`TRIED_NAME`] that has this id.
    pub(super) fn of_template(render: impl Fn(&str) -> Option<String>) -> Self {
        match render(TRIED) {
            Some(prompt) if prompt.contains(TRIED) && !prompt.contains(TRIED_NAME) => CallIds::Named,
            Some(_) => CallIds::Any,
            None if render(TRIED_SHORT).is_some() => CallIds::Short,
            None => CallIds::Any,
        }
    }

    /// The messages with ids that the template takes. Those that the model wrote stay as they are, so that the prompt begins like the
    /// one before.
    pub(crate) fn apply(self, messages: &[Message]) -> Cow<'_, [Message]> {
        let mut taken = Cow::Borrowed(messages);
        let mut known: HashMap<&str, Cow<'_, str>> = HashMap::new();
        let mut count = 0;
        for (at, message) in messages.iter().enumerate() {
            let ids: Vec<Cow<'_, str>> = message
                .tool_calls
                .iter()
                .zip(count..)
                .map(|(call, index)| self.of_call(call, index))
                .collect();
            count += ids.len();
            for (position, (call, id)) in message.tool_calls.iter().zip(&ids).enumerate() {
                if call.id != *id {
                    taken.to_mut()[at].tool_calls[position].id = id.clone().into_owned();
                }
            }
            // An id that occurs again means the later message, and the first call in it.
            known.extend(message.tool_calls.iter().map(|call| call.id.as_str()).zip(ids).rev());
            if let Some(answered) = &message.tool_call_id {
                let id = known.get(answered.as_str()).cloned().unwrap_or_else(|| self.of_unknown(answered));
                if *answered != id {
                    taken.to_mut()[at].tool_call_id = Some(id.into_owned());
                }
            }
        }
        taken
    }

    /// The id of the call with this index in the conversation.
    fn of_call(self, call: &ToolCall, index: usize) -> Cow<'_, str> {
        let id = plain(&call.id);
        match self {
            CallIds::Named if !is_named(id, &call.name) => {
                Cow::Owned(format!("functions.{}:{index}", call.name))
            }
            _ => self.of_unknown(&call.id),
        }
    }

    /// The id of a result whose call is not there.
    fn of_unknown(self, id: &str) -> Cow<'_, str> {
        match self {
            CallIds::Short => accepted(id, is_short),
            CallIds::Any | CallIds::Named => Cow::Borrowed(plain(id)),
        }
    }
}

/// Whether an id is that of a call of `name`, as Kimi writes it.
fn is_named(id: &str, name: &str) -> bool {
    let index = id.strip_prefix("functions.").and_then(|rest| rest.strip_prefix(name)?.strip_prefix(':'));
    index.is_some_and(|index| !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use hob_core::Role;

    use super::*;
    use crate::chat::ChatTemplate;

    /// Prints the ids, after a check of their length if there is one.
    fn source(check: &str, call: &str) -> String {
        format!(
            "{{%- for m in messages %}}{{{{ m.content }}}}{{%- for c in m.tool_calls %}}{check}{{{{ {call} }}}}\
             {{{{ c.function.arguments | tojson }}}}{{%- endfor %}}{{%- if m.role == 'tool' %}}{{{{ m.tool_call_id }}}}\
             {{%- endif %}}{{%- endfor %}}{{{{ tools | tojson }}}}"
        )
    }

    const MISTRAL_CHECK: &str =
        "{%- if c.id is not defined or c.id|length != 9 %}{{ raise_exception('nine') }}{%- endif %}";

    fn called(calls: &[(&str, &str)]) -> Message {
        let call = |(id, name): &(&str, &str)| ToolCall {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: "{}".into(),
        };
        Message { tool_calls: calls.iter().map(call).collect(), ..Message::new(Role::Assistant, "") }
    }

    /// The ids of calls and results, in order.
    fn ids(messages: &[Message]) -> Vec<&str> {
        let mut ids = Vec::new();
        for message in messages {
            ids.extend(message.tool_calls.iter().map(|call| call.id.as_str()));
            ids.extend(message.tool_call_id.as_deref());
        }
        ids
    }

    #[test]
    fn what_a_template_demands_shows_in_what_it_makes_of_a_call() {
        let template = |check: &str, call: &str| {
            ChatTemplate::new(&source(check, call), "<s>", "</s>").expect("a template").call_ids
        };
        assert_eq!(template("", "c.function.name"), CallIds::Any);
        assert_eq!(template("", "c.function.name + c.id"), CallIds::Any);
        assert_eq!(template(MISTRAL_CHECK, "c.function.name + c.id"), CallIds::Short);
        assert_eq!(template("", "c.id"), CallIds::Named);
        assert_eq!(template("{{ raise_exception('no calls') }}", "c.id"), CallIds::Any);
    }

    #[test]
    fn ids_of_other_providers_lose_their_signature() {
        let signed = "fc-1--thought--EqQB";
        let messages = [called(&[(signed, "f")]), Message::tool_result(signed, "1")];
        assert_eq!(ids(&CallIds::Any.apply(&messages)), ["fc-1", "fc-1"]);
        let plain = [called(&[("c1", "f")]), Message::tool_result("c1", "1")];
        assert!(matches!(CallIds::Any.apply(&plain), Cow::Borrowed(_)));
    }

    #[test]
    fn a_template_for_short_ids_gets_no_others() {
        let messages = [
            called(&[("abcde1234", "f"), ("call_0123456789", "f")]),
            Message::tool_result("call_0123456789", "2"),
            Message::tool_result("abcde1234", "1"),
            Message::tool_result("of no call", "3"),
        ];
        let taken = CallIds::Short.apply(&messages);
        let [own, other, second, first, unknown] = ids(&taken)[..] else { panic!("{taken:?}") };
        assert_eq!((own, first), ("abcde1234", "abcde1234"), "the model wrote it");
        assert_eq!(other, second);
        assert!(is_short(other) && is_short(unknown) && other != unknown, "{other} {unknown}");
    }

    #[test]
    fn a_template_that_prints_ids_alone_gets_the_names_in_them() {
        let messages = [
            called(&[("functions.f:0", "f"), ("c1", "g")]),
            Message::tool_result("functions.f:0", "1"),
            Message::tool_result("c1", "2"),
            // The id occurs again.
            called(&[("c1", "f"), ("functions.f:x", "f")]),
            Message::tool_result("c1", "3"),
        ];
        assert_eq!(
            ids(&CallIds::Named.apply(&messages)),
            [
                "functions.f:0",
                "functions.g:1",
                "functions.f:0",
                "functions.g:1",
                "functions.f:2",
                "functions.f:3",
                "functions.f:2"
            ]
        );
    }
}
