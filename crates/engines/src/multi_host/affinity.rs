//! Which host has the cached prefix of a conversation: the host that answered its earlier turns. Pure, without stored
//! state.
//!
//! A conversation is identified by its first user message, which all its turns share. The system message before it
//! and the passages that were retrieved for a turn do not count. Every host has a weight for every conversation
//! (rendezvous hashing), and the host with the highest weight is the conversation's home. When a host is added or
//! removed, only the conversations of that host move.
//!
//! Several Hobs with the same hosts choose the same home without talking to each other. So a weight depends only on
//! the address of the host and on the request: not on the order of the hosts, and not on the process, its version or
//! its machine.

use std::hash::Hasher;

use hob_core::{
    CompletionRequest, Content, ContentPart, GenerateRequest, Message, PASSAGES_BEGIN, Prompt, Role,
    without_passages,
};
use siphasher::sip::SipHasher13;

/// This many bytes of each message identify the conversation.
const HASHED_BYTES: usize = 16 << 10;

/// OpenAI's field with which callers mark requests that share a prefix.
const CACHE_KEY: &str = "prompt_cache_key";

/// A hash that is the same in every process. The standard library's hasher may change with the compiler, and its
/// `Hash` implementations with the machine.
struct StableHasher(SipHasher13);

impl StableHasher {
    fn new() -> Self {
        StableHasher(SipHasher13::new_with_keys(0, 0))
    }

    fn number(&mut self, number: u64) {
        self.0.write(&number.to_le_bytes());
    }

    /// The first bytes of a text, and its length, so that two texts in a row are not the same as other two.
    fn text(&mut self, text: &str, most: usize) {
        self.number(text.len() as u64);
        self.0.write(&text.as_bytes()[..text.len().min(most)]);
    }

    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// A hash that all turns of a conversation share.
pub(super) fn conversation(request: &GenerateRequest) -> u64 {
    let mut hasher = StableHasher::new();
    hasher.text(&request.model, HASHED_BYTES);
    match request.extra.get(CACHE_KEY).and_then(|key| key.as_str()) {
        Some(key) => hasher.text(key, HASHED_BYTES),
        None => {
            beginning(&request.messages).into_iter().for_each(|message| hash_message(message, &mut hasher))
        }
    }
    hasher.finish()
}

/// This many bytes of a text to continue choose its host.
const PROMPT_BYTES: usize = 1 << 10;

/// A hash that all versions of a text share while its beginning stays.
pub(super) fn prompt(request: &CompletionRequest) -> u64 {
    let mut hasher = StableHasher::new();
    hasher.text(&request.model, HASHED_BYTES);
    match &request.prompt {
        // Without its length: a text that grows keeps its host.
        Prompt::Text(text) => hasher.0.write(&text.as_bytes()[..text.len().min(PROMPT_BYTES)]),
        Prompt::Tokens(tokens) => {
            tokens.iter().take(PROMPT_BYTES / 4).for_each(|token| hasher.number(u64::from(*token)));
        }
    }
    hasher.finish()
}

/// A hash of an address.
pub(super) fn host(address: &str) -> u64 {
    let mut hasher = StableHasher::new();
    hasher.text(address, usize::MAX);
    hasher.finish()
}

/// The weight of a host for a conversation. The highest weight is its home.
pub(super) fn weight(conversation: u64, host: u64) -> u64 {
    // Both are hashes already. Mixing them avoids one order of the hosts for all conversations.
    let mixed = (conversation ^ host.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    mixed ^ (mixed >> 32)
}

/// The first user message, or the first message if there is none.
fn beginning(messages: &[Message]) -> Option<&Message> {
    messages.iter().find(|message| message.role == Role::User).or(messages.first())
}

fn hash_message(message: &Message, hasher: &mut StableHasher) {
    hasher.text(message.role.as_str(), HASHED_BYTES);
    match &message.content {
        Content::Empty => {}
        Content::Text(text) => hasher.text(without_passages(text), HASHED_BYTES),
        Content::Parts(parts) => parts.iter().for_each(|part| match part {
            ContentPart::Text(text) if text.starts_with(PASSAGES_BEGIN) => {}
            ContentPart::Text(text) => hasher.text(text, HASHED_BYTES),
            ContentPart::Image(image) => hasher.text(&image.url, HASHED_BYTES),
            ContentPart::Other(part) => hasher.text(&part.to_string(), HASHED_BYTES),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(messages: &[(Role, &str)]) -> GenerateRequest {
        GenerateRequest {
            model: "m".into(),
            messages: messages.iter().map(|(role, text)| Message::new(*role, *text)).collect(),
            ..GenerateRequest::default()
        }
    }

    fn home(conversation: u64, hosts: &[&str]) -> usize {
        let weights: Vec<u64> = hosts.iter().map(|address| weight(conversation, host(address))).collect();
        (0..hosts.len()).max_by_key(|index| weights[*index]).unwrap()
    }

    #[test]
    fn passages_in_one_turn_do_not_change_the_conversation() {
        let told = format!("{PASSAGES_BEGIN}.\n[1] a.md\nSalt.\n{}Hello?", hob_core::PASSAGES_END);
        let (first, later) =
            (talk(&[(Role::User, &told)]), talk(&[(Role::User, "Hello?"), (Role::User, "And?")]));
        assert_eq!(conversation(&first), conversation(&later));
        assert_ne!(conversation(&first), conversation(&talk(&[(Role::User, "Goodbye?")])));
    }

    #[test]
    fn all_turns_of_a_conversation_are_known_as_one() {
        let first = talk(&[(Role::System, "Be brief."), (Role::User, "Hello?")]);
        let later = talk(&[
            (Role::System, "Be brief. You know of what was asked now: the sea is salty."),
            (Role::User, "Hello?"),
            (Role::Assistant, "Hi."),
            (Role::User, "And now?"),
        ]);
        assert_eq!(conversation(&first), conversation(&later));
        for other in [
            talk(&[(Role::System, "Be brief."), (Role::User, "Hello!")]),
            talk(&[(Role::System, "Be brief.")]),
            GenerateRequest { model: "other".into(), ..first.clone() },
        ] {
            assert_ne!(conversation(&first), conversation(&other), "{other:?}");
        }
    }

    #[test]
    fn a_cache_key_of_the_caller_is_used() {
        let named = |key: &str, text: &str| {
            let mut request = talk(&[(Role::User, text)]);
            request.extra.insert(CACHE_KEY.into(), key.into());
            conversation(&request)
        };
        assert_eq!(named("a", "one"), named("a", "two"));
        assert_ne!(named("a", "one"), named("b", "one"));
    }

    #[test]
    fn huge_messages_cost_no_more_than_large_ones() {
        let long = "x".repeat(HASHED_BYTES);
        let of = |text: String| conversation(&talk(&[(Role::User, &text)]));
        assert_eq!(of(format!("{long}a")), of(format!("{long}b")), "what is beyond is not looked at");
        assert_ne!(of(long.clone()), of(format!("{long}a")), "but that there is more is");
        assert_eq!(conversation(&talk(&[])), conversation(&talk(&[])));
    }

    #[test]
    fn conversations_spread_over_the_hosts_and_few_move_when_one_is_lost() {
        let hosts = ["http://a:1", "http://b:1", "http://c:1"];
        let conversations: Vec<u64> = (0..3000)
            .map(|number| conversation(&talk(&[(Role::User, &format!("question {number}"))])))
            .collect();
        let mut homes = [0; 3];
        for conversation in &conversations {
            homes[home(*conversation, &hosts)] += 1;
        }
        assert!(homes.iter().all(|count| (850..=1150).contains(count)), "{homes:?}");
        for conversation in conversations {
            let before = home(conversation, &hosts);
            if before != 2 {
                assert_eq!(home(conversation, &hosts[..2]), before, "it moved for no reason");
            }
        }
    }

    /// Two Hobs of different versions, or on different machines, run side by side: a change here moves every conversation.
    #[test]
    fn hashes_are_the_same_in_every_process() {
        let request = talk(&[(Role::System, "Be brief."), (Role::User, "Hello?")]);
        let text = CompletionRequest {
            model: "m".into(),
            prompt: Prompt::Text("fn main".into()),
            ..CompletionRequest::default()
        };
        let tokens = CompletionRequest { prompt: Prompt::Tokens(vec![1, 2, 3]), ..text.clone() };
        let hashes = [
            conversation(&request),
            prompt(&text),
            prompt(&tokens),
            host("http://10.0.0.5:8000"),
            weight(conversation(&request), host("http://10.0.0.5:8000")),
        ];
        assert_eq!(
            hashes,
            [
                16_190_288_979_806_257_506,
                2_678_224_216_253_483_895,
                4_123_285_607_288_399_775,
                5_641_040_983_730_411_426,
                3_613_942_189_871_338_395
            ]
        );
    }
}
