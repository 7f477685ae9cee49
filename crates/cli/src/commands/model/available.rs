//! `hob model list --available`: the built-in list, with what fits this machine and how fast it is expected to be.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::local_models::LocalModels;
use hob_config::Config;
use hob_models::catalogue::ModelAbility;
use hob_models::{CatalogueEntry, MachineRoom, catalogue};
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
    let models = LocalModels::new(config, &settings::home()?);
    let room = {
        let _waiting = Spinner::start("measuring the memory's speed");
        models.machine_room().await
    };
    let stored = models.list()?;
    let mut rows: Vec<AvailableModel> = catalogue()
        .map(|entry| AvailableModel {
            entry,
            is_here: stored.iter().any(|model| model.id == entry.name && model.problem.is_none()),
            needs: models.entry_footprint(entry).map(|footprint| footprint.usual.total()),
            room,
        })
        .collect();
    rows.sort_by_key(|row| row.entry.size);
    match format {
        OutputFormat::Json => output::json(&rows.iter().map(AvailableModel::as_json).collect::<Vec<_>>())?,
        OutputFormat::Text => {
            table::print(&COLUMNS, &rows.iter().map(AvailableModel::row).collect::<Vec<_>>())?;
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

/// A line of the list.
struct AvailableModel {
    entry: &'static CatalogueEntry,
    /// Whether it was downloaded.
    is_here: bool,
    /// About the bytes of memory, with its conversations.
    needs: Option<u64>,
    room: Option<MachineRoom>,
}

impl AvailableModel {
    fn fits(&self) -> Option<bool> {
        Some(self.needs? <= self.room?.memory)
    }

    /// About how fast it answers here; `None` for a model that does not answer or does not fit.
    fn tokens_per_second(&self) -> Option<f64> {
        let answers = self.entry.can(ModelAbility::Chat) && self.fits()?;
        answers.then(|| self.room.map(|room| room.speed.tokens_per_second(self.entry.bytes_per_token())))?
    }

    fn row(&self) -> Vec<String> {
        let unknown = || "-".to_owned();
        let entry = self.entry;
        vec![
            match self.is_here {
                true => format!("{} (downloaded)", entry.short_name),
                false => entry.short_name.to_owned(),
            },
            format!("~{}", memory(entry.total_size())),
            entry.license.to_owned(),
            tokens(entry.context),
            abilities(entry),
            match (self.fits(), self.needs) {
                (Some(true), _) => "yes".to_owned(),
                (Some(false), Some(needs)) => format!("no, needs {}", memory(needs)),
                _ => unknown(),
            },
            self.tokens_per_second().map_or_else(unknown, |rate| format!("about {}", speed(rate))),
        ]
    }

    fn as_json(&self) -> Value {
        let entry = self.entry;
        json!({
            "name": entry.short_name,
            "id": entry.name,
            "about": entry.about,
            "size": entry.total_size(),
            "license": entry.license,
            "parameters": entry.parameters,
            "context": entry.context,
            "capabilities": entry.can.iter().map(|ability| ability.as_str()).collect::<Vec<_>>(),
            "memory": self.needs,
            "fits": self.fits(),
            "tokens_per_second": self.tokens_per_second(),
            "downloaded": self.is_here,
        })
    }
}

/// What a model can do with the embedded engine, which does not read images yet.
pub fn abilities(entry: &CatalogueEntry) -> String {
    entry.can.iter().map(|ability| ability.as_str()).collect::<Vec<_>>().join(", ")
}
