//! Recognises a repeated question.

use hob_core::fnv::{self, fnv1a};
use hob_core::{Content, ContentPart, GenerateRequest, Role};

/// Fields of the chat-completions format that identify the user: the older one and the newer one.
const USER_FIELDS: [&str; 2] = ["user", "safety_identifier"];

/// A hash of the question with all earlier messages of the user, the system messages, the images, and the user if the client
/// names one. `None` if the last message is not the user's.
pub fn question_hash(request: &GenerateRequest) -> Option<u64> {
    if request.messages.last()?.role != Role::User {
        return None;
    }
    let mut print = Fingerprint::default();
    for who in USER_FIELDS.iter().filter_map(|field| request.extra.get(*field)?.as_str()) {
        print.begin(b'@');
        print.add_words(who);
    }
    for message in &request.messages {
        match message.role {
            Role::System => print.begin(b's'),
            Role::User => print.begin(b'u'),
            // A different answer does not change the question.
            Role::Assistant | Role::Tool => continue,
        }
        match &message.content {
            Content::Empty => {}
            Content::Text(text) => print.add_words(text),
            Content::Parts(parts) => {
                for part in parts {
                    match part {
                        ContentPart::Text(text) => print.add_words(text),
                        ContentPart::Image(image) => print.add_picture(&image.url),
                        ContentPart::Other(part) => print.add_picture(&part.to_string()),
                    }
                }
            }
        }
    }
    Some(print.0)
}

struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Fingerprint(fnv::START)
    }
}

impl Fingerprint {
    fn add(&mut self, number: u64) {
        self.0 = fnv1a(self.0, number);
    }

    /// Begins a part. No text contains such a byte.
    fn begin(&mut self, kind: u8) {
        self.add(0xff);
        self.add(kind.into());
    }

    /// Ignores spacing and case.
    fn add_words(&mut self, text: &str) {
        for word in text.split_whitespace() {
            word.bytes().for_each(|byte| self.add(byte.to_ascii_lowercase().into()));
            self.add(b' '.into());
        }
    }

    /// Eight bytes at a time, because images are large.
    fn add_picture(&mut self, url: &str) {
        self.begin(b'p');
        let (blocks, rest) = url.as_bytes().as_chunks();
        for block in blocks {
            self.add(u64::from_le_bytes(*block));
            // A multiplication alone does not change the low bits.
            self.0 ^= self.0 >> 32;
        }
        rest.iter().for_each(|byte| self.add((*byte).into()));
    }
}

#[cfg(test)]
mod tests {
    use hob_core::{Image, Message};

    use super::*;

    fn asking(text: &str) -> GenerateRequest {
        conversation(&[(Role::User, text)])
    }

    fn conversation(said: &[(Role, &str)]) -> GenerateRequest {
        let messages = said.iter().map(|(role, text)| Message::new(*role, *text)).collect();
        GenerateRequest { messages, ..GenerateRequest::default() }
    }

    #[test]
    fn a_question_is_recognised_with_other_blanks_and_case() {
        let one = question_hash(&asking("Why is the  sky blue?"));
        assert_eq!(one, question_hash(&asking("why is the sky\nblue?")));
        assert_ne!(one, question_hash(&asking("Why is the sea blue?")));
        let mut in_parts = asking("");
        let parts = ["Why is the", "sky blue?"].map(|text| ContentPart::Text(text.into()));
        in_parts.messages[0].content = Content::Parts(parts.into());
        assert_eq!(one, question_hash(&in_parts));
    }

    #[test]
    fn other_instructions_make_another_question() {
        let told =
            |what: &str| question_hash(&conversation(&[(Role::System, what), (Role::User, "Bonjour")]));
        assert_ne!(told("Translate into English."), told("Translate into German."));
        assert_ne!(told("Translate into English."), question_hash(&asking("Bonjour")));
        assert_ne!(told("Bonjour"), question_hash(&conversation(&[(Role::User, "Bonjour"); 2])));
    }

    #[test]
    fn another_image_makes_another_question() {
        let about = |url: &str| {
            let mut request = asking("");
            let picture = ContentPart::Image(Image { url: url.into(), detail: None });
            request.messages[0].content =
                Content::Parts(vec![ContentPart::Text("What is this?".into()), picture]);
            question_hash(&request)
        };
        let head = "data:image/png;base64,";
        let same = format!("{head}{}", "A".repeat(100_000));
        assert_eq!(about(&same), about(&same));
        for other in [
            format!("{head}{}", "A".repeat(99_999)),
            format!("{head}{}B", "A".repeat(99_999)),
            format!("{head}B{}", "A".repeat(99_999)),
        ] {
            assert_ne!(about(&same), about(&other));
        }
        assert_ne!(about(&same), question_hash(&asking("What is this?")));
    }

    #[test]
    fn long_questions_that_differ_in_the_last_word_are_different() {
        let about = |last: &str| question_hash(&asking(&("word ".repeat(100_000) + last)));
        assert_ne!(about("Rome"), about("Athens"));
    }

    #[test]
    fn another_user_makes_another_question() {
        let of = |user: &str| {
            let mut request = asking("Why is the sky blue?");
            request.extra.insert("user".into(), user.into());
            question_hash(&request)
        };
        assert_eq!(of("ann"), of("ann"));
        assert_ne!(of("ann"), of("bob"));
    }

    #[test]
    fn another_conversation_makes_another_question() {
        let after = |before: &str| {
            question_hash(&conversation(&[
                (Role::User, before),
                (Role::Assistant, "Fine."),
                (Role::User, "Go on."),
            ]))
        };
        assert_ne!(after("Tell me of Rome"), after("Tell me of Athens"));
        assert_ne!(after("Tell me of Rome"), question_hash(&asking("Go on.")));
        assert_ne!(question_hash(&asking("Tell me of Rome Go on.")), after("Tell me of Rome"));
    }

    #[test]
    fn the_result_of_a_tool_is_not_a_repeated_question() {
        let loops = conversation(&[(Role::User, "What is 2 + 2?"), (Role::Assistant, ""), (Role::Tool, "4")]);
        assert_eq!(question_hash(&loops), None);
        assert_eq!(question_hash(&conversation(&[])), None);
    }
}
