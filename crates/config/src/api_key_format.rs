//! Checks the format of providers' keys: finds keys that cannot be valid. Never shows a key.

use secrecy::{ExposeSecret, SecretString};

use crate::env::ProviderKeys;

/// A key that is not valid for its provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SuspiciousKey {
    /// Where it comes from.
    pub variable: &'static str,
    /// Completes "OPENAI_API_KEY …".
    pub problem: &'static str,
}

impl ProviderKeys {
    /// The keys that cannot be valid.
    pub fn suspicious(&self) -> Vec<SuspiciousKey> {
        let keys = [
            ("OPENAI_API_KEY", Maker::OpenAi, &self.openai),
            ("ANTHROPIC_API_KEY", Maker::Anthropic, &self.anthropic),
            ("GEMINI_API_KEY", Maker::Google, &self.gemini),
        ];
        let look = |(variable, wanted, key): (_, _, &Option<SecretString>)| {
            let problem = problem(key.as_ref()?.expose_secret(), wanted)?;
            Some(SuspiciousKey { variable, problem })
        };
        keys.into_iter().filter_map(look).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    OpenAi,
    Anthropic,
    Google,
}

fn problem(key: &str, wanted: Maker) -> Option<&'static str> {
    if key.starts_with('$') || key.contains("...") || key.contains('<') || key.to_lowercase().contains("your")
    {
        return Some("is a placeholder, not a key");
    }
    if !key.chars().all(|character| character.is_ascii_graphic()) || key.contains(['"', '\'']) {
        return Some("contains a space, a quote or another character that keys do not have");
    }
    match maker(key) {
        // Other services with OpenAI's API have keys of any form, so an unknown prefix is accepted.
        None => None,
        Some(maker) if maker == wanted => None,
        Some(Maker::Anthropic) => Some("looks like an Anthropic key"),
        Some(Maker::Google) => Some("looks like a Google key"),
        Some(Maker::OpenAi) => Some("looks like an OpenAI key"),
    }
}

fn maker(key: &str) -> Option<Maker> {
    let beginnings = [("sk-ant-", Maker::Anthropic), ("AIza", Maker::Google), ("sk-proj-", Maker::OpenAi)];
    beginnings.into_iter().find(|(beginning, _)| key.starts_with(beginning)).map(|(_, maker)| maker)
}

#[cfg(test)]
mod tests {
    use crate::env::Environment;

    fn odd(variable: &'static str, key: &str) -> Option<&'static str> {
        let environment: Environment = [(variable, key)].into_iter().collect();
        let odd = environment.provider_keys().expect("text").suspicious();
        assert!(odd.iter().all(|odd| odd.variable == variable), "{odd:?}");
        odd.first().map(|odd| odd.problem)
    }

    #[test]
    fn a_key_that_cannot_be_right_is_seen() {
        for (variable, key, seen) in [
            ("OPENAI_API_KEY", "sk-proj-abc123", None),
            ("OPENAI_API_KEY", "some-other-service", None),
            ("ANTHROPIC_API_KEY", "sk-ant-abc123", None),
            ("GEMINI_API_KEY", "AIzaSyAbc123", None),
            ("OPENAI_API_KEY", "sk-...", Some("placeholder")),
            ("OPENAI_API_KEY", "YOUR_KEY", Some("placeholder")),
            ("OPENAI_API_KEY", "$OPENAI", Some("placeholder")),
            ("OPENAI_API_KEY", "\"sk-proj-abc\"", Some("a quote")),
            ("OPENAI_API_KEY", "sk-proj-abc def", Some("a space")),
            ("OPENAI_API_KEY", "sk-ant-abc123", Some("an Anthropic key")),
            ("ANTHROPIC_API_KEY", "sk-proj-abc123", Some("an OpenAI key")),
            ("GEMINI_API_KEY", "sk-ant-abc123", Some("an Anthropic key")),
        ] {
            let problem = odd(variable, key);
            let as_expected = match (problem, seen) {
                (Some(problem), Some(words)) => problem.contains(words),
                (problem, seen) => problem.is_none() && seen.is_none(),
            };
            assert!(as_expected, "{variable}={key}: {problem:?}");
        }
    }
}
