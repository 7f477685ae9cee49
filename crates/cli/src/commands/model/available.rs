//! `hob model list --available`: the built-in list, with what fits this machine and how fast it is expected to be.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::local_models::local_models;
use hob_config::Config;
use hob_models::{BuiltInModel, CatalogueEntry, MachineRoom};
use serde_json::{Value, json};

use crate::output::number::{memory, speed, tokens};
use crate::output::progress::Spinner;
use crate::output::table::{self, Column};
use crate::output::{self, OutputFormat};
use crate::settings;

const COLUMNS: [Column; 7] = [
    Column::Words("NAME"),
    Column::Numbers("SIZE"),
    Column::Words("LICENCE"),
    Column::Numbers("CONTEXT"),
    Column::Words("CAN"),
    Column::Words("FITS"),
    Column::Words("SPEED"),
];

pub async fn run(config: &Config, format: OutputFormat) -> Result<ExitCode> {
    let models = local_models(config, &settings::home()?);
    let room = {
        let _waiting = Spinner::start("measuring the memory's speed");
        models.machine_room().await
    };
    let found = models.built_in("", &models.files.list()?, room);
    match format {
        OutputFormat::Json => output::json(&found.iter().map(as_json).collect::<Vec<_>>())?,
        OutputFormat::Text => {
            table::print(&COLUMNS, &found.iter().map(row).collect::<Vec<_>>())?;
            note_estimates(room);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn note_estimates(room: Option<MachineRoom>) {
    let Some(room) = room else {
        output::note("This build of hob has no embedded engine, so it does not know what fits.");
        return;
    };
    output::note(format_args!(
        "All figures are estimates. This machine has {} of memory for models. A speed is that of one answer on the processor, from \
         {:.0} GB/s of measured memory bandwidth and the number of cores ({}).",
        memory(room.memory),
        room.speed.bandwidth as f64 / 1e9,
        room.speed.cores
    ));
    output::note("'hob model pull NAME' downloads a model.");
}

fn row(model: &BuiltInModel) -> Vec<String> {
    let unknown = || "-".to_owned();
    let BuiltInModel { entry, is_here, memory: needs, fits, tokens_per_second } = model;
    vec![
        match is_here {
            true => format!("{} (downloaded)", entry.short_name),
            false => entry.short_name.to_owned(),
        },
        format!("~{}", memory(entry.total_size())),
        entry.license.to_owned(),
        tokens(entry.context),
        abilities(entry),
        match (fits, needs) {
            (Some(true), _) => "yes".to_owned(),
            (Some(false), Some(needs)) => format!("no, needs {}", memory(*needs)),
            _ => unknown(),
        },
        tokens_per_second.map_or_else(unknown, |rate| format!("about {}", speed(rate))),
    ]
}

fn as_json(model: &BuiltInModel) -> Value {
    let BuiltInModel { entry, is_here, memory, fits, tokens_per_second } = model;
    json!({
        "name": entry.short_name,
        "id": entry.name,
        "about": entry.about,
        "size": entry.total_size(),
        "license": entry.license,
        "parameters": entry.parameters,
        "context": entry.context,
        "capabilities": entry.can.iter().map(|ability| ability.as_str()).collect::<Vec<_>>(),
        "memory": memory,
        "fits": fits,
        "tokens_per_second": tokens_per_second,
        "downloaded": is_here,
    })
}

/// What a model can do with the embedded engine, which does not read images yet.
pub fn abilities(entry: &CatalogueEntry) -> String {
    entry.can.iter().map(|ability| ability.as_str()).collect::<Vec<_>>().join(", ")
}
