//! `hob model info` of a model that can be downloaded, and the memory of models on this machine's disk.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::local_models::local_models;
use hob_config::Config;
use hob_models::catalogue::ModelSource;
use hob_models::{CatalogueEntry, ModelFootprint};
use serde_json::{Value, json};

use super::available::abilities;
use crate::output::number::{memory, tokens, weights};
use crate::output::table::print_facts;
use crate::output::{self, OutputFormat};
use crate::settings;

/// Shows a model of the built-in list that no engine has.
pub fn run(config: &Config, entry: &CatalogueEntry, format: OutputFormat) -> Result<ExitCode> {
    let models = local_models(config, &settings::home()?);
    let footprint = models.entry_footprint(entry);
    match format {
        OutputFormat::Json => output::json(&[as_json(entry, footprint.as_ref())])?,
        OutputFormat::Text => print_facts(&facts(entry, footprint.as_ref()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn facts(entry: &CatalogueEntry, footprint: Option<&ModelFootprint>) -> Vec<(&'static str, String)> {
    let name = entry.short_name;
    let mut facts = vec![
        ("Model", name.to_owned()),
        (
            "Engine",
            format!("none yet: 'hob model pull {name}' downloads it (about {})", memory(entry.total_size())),
        ),
        ("Use", entry.about.to_owned()),
        ("Parameters", weights(entry.parameters)),
    ];
    if let ModelSource::Hub { repo, wanted } = entry.source {
        facts.push(("Source", format!("hf:{repo}:{wanted}")));
    }
    match footprint {
        Some(footprint) => facts.extend(memory_facts(footprint, Some(entry.context))),
        None => facts.push(("Context", format!("{} tokens", tokens(entry.context)))),
    }
    facts.push(("Capabilities", abilities(entry)));
    facts.push(("Licence", entry.license.to_owned()));
    facts
}

/// The memory of a model on the embedded engine.
pub fn memory_facts(footprint: &ModelFootprint, trained: Option<u64>) -> Vec<(&'static str, String)> {
    let ModelFootprint { at_start, at_most, memory: needs, kv_per_slot, plan, .. } = footprint;
    let context = match trained {
        Some(trained) if trained != plan.context => {
            format!("{} tokens; the model is trained for {}", tokens(plan.context), tokens(trained))
        }
        _ => format!("{} tokens, as it is trained for", tokens(plan.context)),
    };
    let cache = match kv_per_slot {
        0 => "none".to_owned(),
        slot => format!(
            "{} for a conversation of {} tokens, in {}",
            memory(*slot),
            tokens(plan.context),
            plan.kv.as_str()
        ),
    };
    let slots = match (plan.slots, needs.kv_cache) {
        (slots, 0) => format!("{slots} texts at a time"),
        (slots, _) => format!("{slots} conversations at a time, {} tokens together", tokens(plan.cells)),
    };
    vec![
        ("Context", context),
        ("Weights", memory(needs.weights)),
        ("KV cache", cache),
        ("Compute buffer", memory(needs.compute)),
        ("Slots", slots),
        (
            "Memory",
            format!(
                "about {} at the start, {} with one full conversation, {} at most",
                memory(at_start.total()),
                memory(needs.total()),
                memory(at_most.total())
            ),
        ),
    ]
}

fn as_json(entry: &CatalogueEntry, footprint: Option<&ModelFootprint>) -> Value {
    json!({
        "engine": null,
        "model": entry.short_name,
        "parameters": entry.parameters,
        "context": entry.context,
        "size": entry.total_size(),
        "license": entry.license,
        "capabilities": entry.can.iter().map(|ability| ability.as_str()).collect::<Vec<_>>(),
        "memory": footprint.map(memory_json),
    })
}

/// The same for another program.
pub fn memory_json(footprint: &ModelFootprint) -> Value {
    json!({
        "weights": footprint.memory.weights,
        "kv_per_slot": footprint.kv_per_slot,
        "kv_type": footprint.plan.kv.as_str(),
        "compute": footprint.memory.compute,
        "library": footprint.memory.library,
        "total": footprint.memory.total(),
        "at_start": footprint.at_start.total(),
        "at_most": footprint.at_most.total(),
        "slots": footprint.plan.slots,
        "context": footprint.plan.context,
        "cells": footprint.plan.cells,
    })
}
