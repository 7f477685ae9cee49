//! `truncation: auto`: what is left out of a conversation that is too long for its model. Pure.

use hob_core::{Content, ContentPart, Message, Role};

/// Makes room by leaving out the oldest part of a conversation: whole turns first, then the first steps of the last turn. System
/// messages and the last question stay, and so does a call with its output. Keeps about `share` of the text. Returns how many
/// messages were left out.
pub(super) fn drop_oldest(messages: &mut Vec<Message>, share: f64) -> usize {
    let Some(question) = messages.iter().rposition(|message| message.role == Role::User) else { return 0 };
    let before = messages.len();
    let sizes: usize = messages.iter().map(size).sum();
    // Every attempt must leave something out.
    let mut excess = ((sizes as f64) * (1.0 - share.clamp(0.0, 1.0))).max(1.0) as usize;
    let mut stays = vec![true; before];
    let mut index = 0;
    while excess > 0
        && let Some(message) = messages.get(index)
    {
        if index == question || message.role == Role::System {
            index += 1;
            continue;
        }
        let rest = messages.get(index + 1..).unwrap_or_default();
        let end = index + 1 + rest.iter().take_while(|next| next.role == Role::Tool).count();
        // The last step is what the model continues.
        if end == before {
            break;
        }
        let freed: usize = messages.get(index..end).unwrap_or_default().iter().map(size).sum();
        stays.get_mut(index..end).unwrap_or_default().fill(false);
        excess = excess.saturating_sub(freed.max(1));
        index = end;
    }
    let mut stays = stays.into_iter();
    messages.retain(|_| stays.next().unwrap_or(true));
    before - messages.len()
}

fn size(message: &Message) -> usize {
    let content = match &message.content {
        Content::Empty => 0,
        Content::Text(text) => text.len(),
        Content::Parts(parts) => parts.iter().map(part_size).sum(),
    };
    let calls: usize = message.tool_calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
    content + calls
}

/// Of an image, about the text that takes as many tokens.
fn part_size(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(text) => text.len(),
        ContentPart::Image(_) | ContentPart::Other(_) => 4 << 10,
    }
}

#[cfg(test)]
mod tests {
    use hob_core::ToolCall;

    use super::*;

    fn called(id: &str) -> Message {
        let call = ToolCall { id: id.into(), name: "f".into(), arguments: "{}".into() };
        Message { tool_calls: vec![call], ..Message::new(Role::Assistant, Content::Empty) }
    }

    fn texts(messages: &[Message]) -> Vec<String> {
        messages
            .iter()
            .map(|message| format!("{}:{}", message.role.as_str(), message.content.text()))
            .collect()
    }

    #[test]
    fn whole_turns_make_room_and_what_is_needed_stays() {
        let mut messages = vec![
            Message::new(Role::System, "rules"),
            Message::new(Role::User, "first"),
            called("a"),
            Message::tool_result("a", "x".repeat(100)),
            Message::new(Role::Assistant, "one"),
            Message::new(Role::User, "second"),
        ];
        assert_eq!(drop_oldest(&mut messages, 0.9), 3);
        assert_eq!(texts(&messages), ["system:rules", "assistant:one", "user:second"]);
        assert_eq!(drop_oldest(&mut messages, 0.9), 1);
        assert_eq!(drop_oldest(&mut messages, 0.1), 0);
        assert_eq!(texts(&messages), ["system:rules", "user:second"]);
    }

    #[test]
    fn a_long_turn_loses_its_first_steps_with_their_outputs() {
        let mut messages = vec![
            Message::new(Role::User, "do it"),
            called("a"),
            Message::tool_result("a", "1".repeat(50)),
            called("b"),
            Message::tool_result("b", "2".repeat(50)),
            called("c"),
            Message::tool_result("c", "3"),
        ];
        assert_eq!(drop_oldest(&mut messages, 0.6), 2);
        assert_eq!(drop_oldest(&mut messages, 0.1), 2);
        let last = format!("tool:{}", "3");
        assert_eq!(texts(&messages), ["user:do it", "assistant:", last.as_str()]);
        assert_eq!(drop_oldest(&mut messages, 0.1), 0);
    }

    #[test]
    fn a_conversation_of_many_turns_is_gone_through_once() {
        let turn = || [Message::new(Role::User, "a"), Message::new(Role::Assistant, "b")];
        let mut messages: Vec<Message> = std::iter::repeat_with(turn).take(150_000).flatten().collect();
        messages.push(Message::new(Role::User, "last"));
        assert_eq!(drop_oldest(&mut messages, 0.1), 270_003);
        assert_eq!(texts(&messages[messages.len() - 1..]), ["user:last"]);
    }

    #[test]
    fn a_conversation_without_a_question_is_left_alone() {
        let mut messages = vec![Message::new(Role::System, "rules"), Message::new(Role::Assistant, "hi")];
        assert_eq!(drop_oldest(&mut messages, 0.1), 0);
    }
}
