//! Rules for messages that come in.

use std::collections::{BTreeMap, BTreeSet};

use hob_channels::ReplyRules;
use hob_core::AgentPreference;

/// Answers everyone, without an agent.
pub fn rules() -> ReplyRules {
    ReplyRules {
        agent: AgentPreference::None,
        trust: BTreeMap::new(),
        allow_from: Vec::new(),
        messages_per_minute: 1_000,
        history: 0,
        key: None,
        pairing: BTreeSet::new(),
        transcription_model: None,
    }
}
