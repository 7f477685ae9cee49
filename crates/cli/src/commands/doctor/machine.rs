//! The machine, and the keys in its environment.

use hob_config::{Config, Hardware, OddKey};

use super::report::{Check, Status};
use super::summary;

pub fn check(hardware: &Hardware) -> Vec<Check> {
    let mut checks = vec![Check::new("machine", Status::Good, summary(hardware))];
    checks.extend(hardware.notes.iter().map(|note| {
        Check::new("machine", Status::Warning, note)
            .advise("Graphics cards it knows of are not seen; check its driver")
    }));
    checks
}

/// Keys that cannot work, each with its variable.
pub fn check_odd_keys(config: &Config) -> impl Iterator<Item = Check> {
    config.provider_keys.odd_ones().into_iter().map(|OddKey { variable, problem }| {
        Check::new("keys", Status::Warning, format!("{variable} {problem}"))
            .advise(format!("Set {variable} to the key as the provider shows it, or unset it"))
    })
}

/// Which providers have a key; the keys themselves are nobody's business.
pub fn check_keys(config: &Config) -> Option<Check> {
    let keys = &config.provider_keys;
    let present: Vec<&str> =
        [("OpenAI", &keys.openai), ("Anthropic", &keys.anthropic), ("Gemini", &keys.gemini)]
            .into_iter()
            .filter_map(|(provider, key)| key.as_ref().map(|_| provider))
            .collect();
    let message = format!("for {}", present.join(", "));
    (!present.is_empty()).then(|| Check::new("keys", Status::Good, message))
}
