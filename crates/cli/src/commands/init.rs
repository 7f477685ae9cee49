//! `hob init`: detects the hardware and writes a configuration.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Error, Result, anyhow};
use hob_config::hardware::{Gpu, GpuVendor, detect};
use hob_config::{Config, EngineName, Environment, Hardware, recommend, template};
use hob_process::{Overwrite, WriteError, keep_copy, write_new};

use crate::args::InitArgs;
use crate::commands::{audit, block_on};
use crate::engine_advice;
use crate::engine_status::{EngineState, EngineStatus, check_engines};
use crate::output;
use crate::output::progress::Spinner;
use crate::output::style::{GOOD, STRONG};
use crate::output::table::print_facts;
use crate::settings;
use crate::starter_model;

pub fn run(args: &InitArgs) -> Result<ExitCode> {
    let path = Environment::from_process().config_file()?;
    let overwrite = if args.force { Overwrite::Force } else { Overwrite::Refuse };
    // Refuse before the detection, which takes time.
    if overwrite == Overwrite::Refuse && path.symlink_metadata().is_ok() {
        return Err(already_exists(&path));
    }
    block_on(look_and_write(&path, overwrite))
}

fn already_exists(path: &Path) -> Error {
    anyhow!(
        "{} already exists. To keep its settings, edit it. 'hob init --force' writes a new file in its place, saves a copy \
         of the old one, and its settings no longer apply.",
        path.display()
    )
}

/// Writes the configuration. The file may have been created during the detection.
fn write_config(path: &Path, text: &str, overwrite: Overwrite) -> Result<()> {
    write_new(path, text, overwrite).map_err(|error| match error {
        WriteError::Exists { path } => already_exists(&path),
        error => error.into(),
    })
}

async fn look_and_write(path: &Path, overwrite: Overwrite) -> Result<ExitCode> {
    // A file that is about to be replaced may be invalid, so the engines are probed at their default addresses.
    let config = Config::default();
    let engines = hob_app::engines(&config, &settings::home()?)?;
    let (hardware, found) = {
        let _waiting = Spinner::start("detecting hardware");
        tokio::join!(detect(), check_engines(&engines, &config))
    };
    let engine = recommend(&hardware.gpus);

    let mut facts = facts(&hardware);
    let meanwhile = match found.iter().any(|status| status.engine.key() == EngineName::Embedded.as_str()) {
        true => "; while it is not running, the embedded engine can answer",
        false => "",
    };
    facts.push(("Engine", format!("{engine}, because {}{meanwhile}", reason(&hardware.gpus))));
    print_facts(&facts)?;
    for note in &hardware.notes {
        output::note(note);
    }
    let is_replaced = path.exists();
    let copy = if overwrite == Overwrite::Force { keep_copy(path)? } else { None };
    // The audit log is in the database that the old file names, if it can be read.
    let before = hob_config::load(&Environment::from_process()).ok();
    write_config(path, &template(engine, Some(&hardware)), overwrite)?;
    if is_replaced {
        note_replaced(path, before.map(|loaded| loaded.config));
    }
    output::line(format_args!("\n{GOOD}✓{GOOD:#} Wrote {}", path.display()))?;
    if let Some(copy) = copy {
        output::line(format_args!("{GOOD}✓{GOOD:#} Saved the old file as {}", copy.display()))?;
    }
    output::line(format_args!("\n{STRONG}Next{STRONG:#}"))?;
    for step in next_steps(engine, &found) {
        output::line(format_args!("  {step}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Notes the change in the audit log. The file is written already, so a failure is a warning.
fn note_replaced(path: &Path, before: Option<Config>) {
    let databases = before.map_or_else(settings::load, Ok).and_then(|config| settings::databases(&config));
    match databases {
        Ok(databases) => audit::note(&databases, "config.replace", &path.display().to_string()),
        Err(error) => output::warning(format_args!("this change is missing in the audit log: {error:#}")),
    }
}

/// The hardware in a few lines.
pub fn facts(hardware: &Hardware) -> Vec<(&'static str, String)> {
    let platform = &hardware.platform;
    let mut facts = vec![
        ("Platform", format!("{} {}", platform.os, platform.arch)),
        ("CPU", hardware.cpu.to_string()),
        ("Memory", format!("{:.1} GB", hardware.ram_gb)),
    ];
    if hardware.gpus.is_empty() {
        facts.push(("GPU", "none".to_owned()));
    }
    facts.extend(hardware.gpus.iter().map(|gpu| ("GPU", gpu.to_string())));
    facts
}

/// Why this engine suits these cards; completes "because …".
fn reason(gpus: &[Gpu]) -> &'static str {
    let has = |vendor: GpuVendor| gpus.iter().any(|gpu| gpu.vendor == vendor);
    match recommend(gpus) {
        EngineName::Vllm if has(GpuVendor::Nvidia) => "it is the fastest on data-centre GPUs",
        EngineName::Vllm => "it is the fastest on AMD GPUs",
        EngineName::Ollama if has(GpuVendor::Nvidia) => "it is the easiest to run on NVIDIA GPUs",
        EngineName::Ollama => "it is the easiest to run on Apple silicon",
        _ if gpus.is_empty() => "it is the fastest server without a GPU",
        _ => "it runs on GPUs of any vendor",
    }
}

/// Next steps: first what works immediately, then what would be better.
fn next_steps(engine: EngineName, found: &[EngineStatus]) -> Vec<String> {
    let key = engine.as_str();
    let recommended = found.iter().find(|status| status.engine.key() == key);
    let answering = found.iter().find(|status| matches!(status.state, EngineState::Available { .. }));
    let is_inside = |status: &EngineStatus| status.engine.key() == EngineName::Embedded.as_str();
    let later = match recommended.map(|status| (&status.state, status.engine.address())) {
        Some((EngineState::Available { .. }, _)) => None,
        Some((EngineState::OwnAddress, _)) => Some(engine_advice::how_to_start_beside_us(key)),
        Some((_, address)) => Some(engine_advice::how_to_start(key, address)),
        None => Some(engine_advice::how_to_start(key, "")),
    };
    let mut steps = Vec::new();
    if let Some(how_to_start) = later {
        match answering {
            Some(other) if is_inside(other) => {
                steps.push("The embedded engine answers with a model that is already downloaded.".to_owned());
            }
            Some(other) => steps.push(format!(
                "{} is running at {} and answers.",
                other.engine.key(),
                other.engine.address()
            )),
            None if found.iter().any(is_inside) => steps.push(format!(
                "No installation is needed: the first question downloads a small model ({}) that Hob runs itself.",
                starter_model::starter_size()
            )),
            None => steps.push("No engine is running yet.".to_owned()),
        }
        if found.iter().any(is_inside) {
            steps.push(
                "For larger models, run 'hob model pull NAME': the embedded engine runs them. 'hob model list --available' \
                 lists them."
                    .to_owned(),
            );
            steps.push(format!("Or use {key}. {how_to_start}."));
        } else {
            steps.push(format!("For larger models, use {key}. {how_to_start}."));
        }
    }
    steps.push("hob ask 'Hello'   ask a first question".to_owned());
    steps.push("hob doctor        check the setup".to_owned());
    steps.push("hob serve         start the server".to_owned());
    steps
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hob_testkit::ScriptedEngine;

    use super::*;

    fn gpu(vendor: GpuVendor, model: &str) -> Gpu {
        Gpu { vendor, model: model.to_owned(), vram_gb: Some(24.0), count: 1 }
    }

    #[test]
    fn the_reason_goes_with_the_card() {
        for (gpus, expected) in [
            (vec![], "it is the fastest server without a GPU"),
            (vec![gpu(GpuVendor::Nvidia, "NVIDIA H100 NVL")], "it is the fastest on data-centre GPUs"),
            (vec![gpu(GpuVendor::Nvidia, "GeForce RTX 4090")], "it is the easiest to run on NVIDIA GPUs"),
            (vec![gpu(GpuVendor::Apple, "Apple M2")], "it is the easiest to run on Apple silicon"),
            (vec![gpu(GpuVendor::Amd, "MI300X")], "it is the fastest on AMD GPUs"),
            (vec![gpu(GpuVendor::Other("Intel".into()), "Arc")], "it runs on GPUs of any vendor"),
        ] {
            assert_eq!(reason(&gpus), expected, "{gpus:?}");
        }
    }

    #[test]
    fn a_file_that_appears_during_the_detection_is_kept() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("config.toml");
        std::fs::write(&path, "mine").expect("written");
        let refused = write_config(&path, "new", Overwrite::Refuse).expect_err("refused").to_string();
        assert!(refused.contains("'hob init --force' writes a new file in its place"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).expect("readable"), "mine");
    }

    fn status(key: &str, state: EngineState) -> EngineStatus {
        let engine = Arc::new(ScriptedEngine::saying(&[]).called(key));
        EngineStatus { engine, state, silent_hosts: Vec::new() }
    }

    #[test]
    fn a_fresh_machine_needs_no_installation() {
        let llamacpp = || status("llamacpp", EngineState::NotResponding);
        let steps = |found: &[EngineStatus]| next_steps(EngineName::Llamacpp, found);
        let bare = steps(&[llamacpp(), status("embedded", EngineState::NotConfigured)]);
        assert!(bare[0].starts_with("No installation is needed: "), "{bare:?}");
        assert!(bare[1].starts_with("For larger models, run 'hob model pull NAME'"), "{bare:?}");
        assert!(bare[2].starts_with("Or use llamacpp. Start it "), "{bare:?}");
        assert!(bare[3].starts_with("hob ask"), "{bare:?}");

        let answers = || EngineState::Available { models: Vec::new() };
        let inside = steps(&[llamacpp(), status("embedded", answers())]);
        assert_eq!(inside[0], "The embedded engine answers with a model that is already downloaded.");
        let beside = steps(&[status("ollama", answers()), llamacpp()]);
        assert!(beside[0].starts_with("ollama is running at "), "{beside:?}");
        assert_eq!(steps(&[llamacpp()])[0], "No engine is running yet.");
        assert!(steps(&[status("llamacpp", answers())])[0].starts_with("hob ask"));
    }

    #[test]
    fn an_engine_whose_usual_port_is_ours_is_started_on_another() {
        let steps = next_steps(EngineName::Vllm, &[status("vllm", EngineState::OwnAddress)]);
        assert_eq!(
            steps[1],
            "For larger models, use vllm. Start it with 'vllm serve MODEL --port 8001', and set [engine.vllm] host = \
             \"http://localhost:8001\"."
        );
    }
}
