//! The machine, and the keys in its environment.

use std::time::Duration;

use hob_config::{Config, Hardware, SuspiciousKey};
use hob_core::{ComputeUnits, Engine, RunningModel};
use tokio::time::timeout;

use super::report::{CheckStatus, DoctorCheck};
use super::summary;
use crate::output::number::memory;
use crate::running_server::LocatedServer;

const NAME: &str = "machine";

/// A server that takes longer to say which models it has is skipped.
const TIMEOUT: Duration = Duration::from_secs(3);

pub fn check(hardware: &Hardware) -> Vec<DoctorCheck> {
    let mut checks = vec![DoctorCheck::new(NAME, CheckStatus::Good, summary(hardware))];
    checks.extend(hardware.notes.iter().map(|note| {
        DoctorCheck::new(NAME, CheckStatus::Warning, note)
            .advise("GPUs that only it reports are not detected; check its driver")
    }));
    checks
}

/// What the embedded engine computes with.
pub fn check_compute(units: &ComputeUnits, hardware: &Hardware) -> Vec<DoctorCheck> {
    let good = |message: String| DoctorCheck::new(NAME, CheckStatus::Good, message);
    let mut checks = Vec::new();
    if !units.processor.is_empty() {
        checks.push(good(format!("the embedded engine uses {}", units.processor.join(", "))));
    }
    checks.extend(units.cards.iter().map(|card| {
        let (free, total) = (memory(card.memory_free), memory(card.memory_total));
        good(format!(
            "the embedded engine uses {}: {} ({}), {free} of {total} free",
            card.name, card.description, card.backend
        ))
    }));
    checks.extend(units.problems.iter().map(|problem| {
        DoctorCheck::new(NAME, CheckStatus::Warning, format!("the embedded engine cannot use {problem}"))
            .advise("Install the driver of the card, or remove that library; see docs/gpu.md")
    }));
    if units.cards.is_empty() && units.problems.is_empty() && !hardware.gpus.is_empty() {
        let message = "the embedded engine does not use the graphics card: it has no library for it";
        checks.push(DoctorCheck::new(NAME, CheckStatus::Off, format!("{message}; see docs/gpu.md")));
    }
    checks
}

/// What the running server has on graphics cards, if it says so: it may want a key that is not known here.
pub async fn check_running(config: &Config, server: &LocatedServer) -> Vec<DoctorCheck> {
    let engine = server.url().and_then(|url| hob_app::running_server(config, &url).ok());
    let Some(engine) = engine else { return Vec::new() };
    match timeout(TIMEOUT, engine.running_models()).await {
        Ok(Ok(models)) => on_cards(&models),
        Ok(Err(_)) | Err(_) => Vec::new(),
    }
}

fn on_cards(models: &[RunningModel]) -> Vec<DoctorCheck> {
    let with_bytes = |model: &RunningModel| {
        let bytes = model.size_vram.filter(|bytes| *bytes > 0)?;
        let message = format!("the running server has {} of {} on graphics cards", memory(bytes), model.id);
        Some(DoctorCheck::new(NAME, CheckStatus::Good, message))
    };
    models.iter().filter_map(with_bytes).collect()
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

#[cfg(test)]
mod tests {
    use hob_core::ComputeDevice;

    use super::*;

    fn told(units: &ComputeUnits, hardware: &Hardware) -> Vec<(CheckStatus, String)> {
        check_compute(units, hardware).into_iter().map(|check| (check.status, check.message)).collect()
    }

    #[test]
    fn models_on_graphics_cards_are_shown() {
        let model =
            |id: &str, size_vram| RunningModel { id: id.into(), size_vram, ..RunningModel::default() };
        let models = [model("large", Some(5 << 30)), model("small", Some(0)), model("cloud", None)];
        let shown: Vec<String> = on_cards(&models).into_iter().map(|check| check.message).collect();
        assert_eq!(shown, [format!("the running server has {} of large on graphics cards", memory(5 << 30))]);
    }

    #[test]
    fn what_the_embedded_engine_uses_is_shown_with_what_it_cannot_use() {
        let card = ComputeDevice {
            name: "CUDA0".into(),
            description: "NVIDIA H200".into(),
            backend: "CUDA".into(),
            memory_total: 140 << 30,
            memory_free: 100 << 30,
        };
        let units = ComputeUnits {
            processor: vec!["SSE3".into(), "AVX2".into()],
            cards: vec![card],
            problems: vec!["/opt/libggml-hip.so: libamdhip64.so.7: cannot open shared object file".into()],
        };
        assert_eq!(
            told(&units, &Hardware::default()),
            [
                (CheckStatus::Good, "the embedded engine uses SSE3, AVX2".to_owned()),
                (
                    CheckStatus::Good,
                    format!(
                        "the embedded engine uses CUDA0: NVIDIA H200 (CUDA), {} of {} free",
                        memory(100 << 30),
                        memory(140 << 30)
                    )
                ),
                (
                    CheckStatus::Warning,
                    "the embedded engine cannot use /opt/libggml-hip.so: libamdhip64.so.7: cannot open shared object file"
                        .to_owned()
                ),
            ]
        );
    }
}
