//! `hob init`: looks at the machine and writes a configuration for it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use hob_config::hardware::{Gpu, GpuVendor, detect};
use hob_config::{
    Config, EngineKey, Environment, Hardware, Overwrite, WriteError, recommend, template, write_new,
};

use crate::advice;
use crate::args::InitArgs;
use crate::commands::block_on;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::style::{GOOD, STRONG};
use crate::output::table::print_facts;
use crate::settings;
use crate::survey::{State, Surveyed, survey};

pub fn run(args: &InitArgs) -> Result<ExitCode> {
    let path = Environment::from_process().config_file()?;
    let overwrite = if args.force { Overwrite::Force } else { Overwrite::Refuse };
    // Looking takes a moment, which is not worth spending on what will be refused.
    if overwrite == Overwrite::Refuse && path.symlink_metadata().is_ok() {
        return Err(WriteError::Exists { path }.into());
    }
    block_on(look_and_write(&path, overwrite))
}

async fn look_and_write(path: &Path, overwrite: Overwrite) -> Result<ExitCode> {
    // A file that is about to be replaced may be broken, so the engines are looked for where they usually are.
    let config = Config::default();
    let engines = hob_system::engines(&config, &settings::home()?)?;
    let (hardware, found) = {
        let _waiting = Spinner::start("looking at this machine");
        tokio::join!(detect(), survey(&engines, &config))
    };
    let engine = recommend(&hardware.gpus);

    let mut facts = facts(&hardware);
    facts.push(("Engine", format!("{engine}, because {}", reason(&hardware.gpus))));
    print_facts(&facts)?;
    for note in &hardware.notes {
        output::note(note);
    }
    write_new(path, &template(engine, Some(&hardware)), overwrite)?;
    output::line(format_args!("\n{GOOD}✓{GOOD:#} Wrote {}", path.display()))?;
    output::line(format_args!("\n{STRONG}Next{STRONG:#}"))?;
    for step in next_steps(engine, &found) {
        output::line(format_args!("  {step}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The machine in a few lines.
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
        EngineKey::Vllm if has(GpuVendor::Nvidia) => "it makes the most of a data-centre card",
        EngineKey::Vllm => "it makes the most of an AMD card",
        EngineKey::Ollama if has(GpuVendor::Nvidia) => "it is the easiest on an NVIDIA card",
        EngineKey::Ollama => "it is the easiest on an Apple chip",
        _ if gpus.is_empty() => "it is the fastest without a GPU",
        _ => "it runs on graphics cards of any maker",
    }
}

fn next_steps(engine: EngineKey, found: &[Surveyed]) -> Vec<String> {
    let answers = |surveyed: &&Surveyed| matches!(surveyed.state, State::Answers { .. });
    let is_recommended = |surveyed: &&Surveyed| surveyed.engine.key() == engine.as_str();
    let mut steps = Vec::new();
    if !found.iter().filter(answers).any(|surveyed| is_recommended(&surveyed)) {
        let address = found.iter().find(is_recommended).map_or("", |surveyed| surveyed.engine.address());
        steps.push(format!("{}.", advice::how_to_start(engine.as_str(), address)));
        let inside = |surveyed: &Surveyed| surveyed.engine.key() == EngineKey::Embedded.as_str();
        if !found.iter().any(|surveyed| answers(&surveyed)) && found.iter().any(inside) {
            steps.push("Or let Hob answer by itself: hob model pull smollm2-135m-instruct".to_owned());
        }
        if let Some(other) = found.iter().find(answers) {
            let (key, address) = (other.engine.key(), other.engine.address());
            steps.push(match address {
                "" => format!("Until then {key} answers, which is part of Hob."),
                address => format!("Until then {key} answers, which runs at {address}."),
            });
        }
    }
    steps.push("hob doctor    see whether everything is ready".to_owned());
    steps.push("hob serve     start the server".to_owned());
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(vendor: GpuVendor, model: &str) -> Gpu {
        Gpu { vendor, model: model.to_owned(), vram_gb: Some(24.0), count: 1 }
    }

    #[test]
    fn the_reason_goes_with_the_card() {
        for (gpus, expected) in [
            (vec![], "it is the fastest without a GPU"),
            (vec![gpu(GpuVendor::Nvidia, "NVIDIA H100 NVL")], "it makes the most of a data-centre card"),
            (vec![gpu(GpuVendor::Nvidia, "GeForce RTX 4090")], "it is the easiest on an NVIDIA card"),
            (vec![gpu(GpuVendor::Apple, "Apple M2")], "it is the easiest on an Apple chip"),
            (vec![gpu(GpuVendor::Amd, "MI300X")], "it makes the most of an AMD card"),
            (vec![gpu(GpuVendor::Other("Intel".into()), "Arc")], "it runs on graphics cards of any maker"),
        ] {
            assert_eq!(reason(&gpus), expected, "{gpus:?}");
        }
    }
}
