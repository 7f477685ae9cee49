//! The senders of e-mails in the rules for answering: their addresses count in any case, and can be forged.

use hob_core::Reach;

use super::thread::CHANNEL;
use crate::auto_reply::ReplyRules;

/// The rules as they apply to e-mail. Without a server that checks senders, the trust in one never includes tools that act.
pub fn rules_with_email(rules: ReplyRules, is_checked: bool) -> ReplyRules {
    let most = if is_checked { Reach::Act } else { Reach::Read };
    let limited = |(sender, reach): (String, Reach)| {
        if !is_email(&sender) {
            return (sender, reach);
        }
        if reach > most {
            tracing::warn!(
                %sender,
                "the sender of an e-mail can be forged, so this one gets 'read' instead of 'act'. To allow 'act', \
                 set [channel.email] authentication_server"
            );
        }
        (sender.to_ascii_lowercase(), reach.min(most))
    };
    let lowered = |sender: String| if is_email(&sender) { sender.to_ascii_lowercase() } else { sender };
    ReplyRules {
        trust: rules.trust.into_iter().map(limited).collect(),
        allow_from: rules.allow_from.into_iter().map(lowered).collect(),
        ..rules
    }
}

/// Whether an entry names a sender of e-mails.
fn is_email(sender: &str) -> bool {
    sender.split_once(':').is_some_and(|(channel, _)| channel == CHANNEL)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use hob_core::AgentPreference;

    use super::*;

    #[test]
    fn the_sender_of_an_email_never_acts_unless_a_server_checks_it() {
        let senders = ["email:Ann@Example.org", "telegram:Ann"].map(str::to_owned);
        let rules = ReplyRules {
            agent: AgentPreference::None,
            trust: senders.clone().map(|sender| (sender, Reach::Act)).into(),
            allow_from: senders.into(),
            messages_per_minute: 1,
            history: 0,
            key: None,
            pairing: BTreeSet::new(),
            transcription_model: None,
        };
        for (is_checked, most) in [(false, Reach::Read), (true, Reach::Act)] {
            let applied = rules_with_email(rules.clone(), is_checked);
            let email = ("email:ann@example.org".to_owned(), most);
            assert_eq!(applied.trust, BTreeMap::from([email, ("telegram:Ann".to_owned(), Reach::Act)]));
            assert_eq!(applied.allow_from, ["email:ann@example.org", "telegram:Ann"]);
        }
    }
}
