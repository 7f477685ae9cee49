//! The machine, and the keys in its environment.

use hob_config::{Config, Hardware, SuspiciousKey};

use super::report::{CheckStatus, DoctorCheck};
use super::summary;

pub fn check(hardware: &Hardware) -> Vec<DoctorCheck> {
    let mut checks = vec![DoctorCheck::new("machine", CheckStatus::Good, summary(hardware))];
    checks.extend(hardware.notes.iter().map(|note| {
        DoctorCheck::new("machine", CheckStatus::Warning, note)
            .advise("GPUs that only it reports are not detected; check its driver")
    }));
    checks
}

/// Keys that cannot work, each with its variable.
pub fn check_odd_keys(config: &Config) -> impl Iterator<Item = DoctorCheck> {
    config.provider_keys.suspicious().into_iter().map(|SuspiciousKey { variable, problem }| {
        DoctorCheck::new("keys", CheckStatus::Warning, format!("{variable} {problem}"))
            .advise(format!("Set {variable} to the key as the provider shows it, or unset it"))
    })
}

/// Which providers have a key. The keys are not shown.
pub fn check_keys(config: &Config) -> Option<DoctorCheck> {
    let keys = &config.provider_keys;
    let present: Vec<&str> =
        [("OpenAI", &keys.openai), ("Anthropic", &keys.anthropic), ("Gemini", &keys.gemini)]
            .into_iter()
            .filter_map(|(provider, key)| key.as_ref().map(|_| provider))
            .collect();
    let message = format!("for {}", present.join(", "));
    (!present.is_empty()).then(|| DoctorCheck::new("keys", CheckStatus::Good, message))
}
