//! `hob model rm`: deletes a model of the embedded engine, and asks first if it is the default model.

use std::process::ExitCode;

use anyhow::Result;
use hob_config::Config;

use crate::change_notice::{ChangedPart, tell_servers};
use crate::commands::audit;
use crate::commands::confirm::Confirmation;
use crate::output;
use crate::output::question::{is_interactive, yes_or_no};
use crate::settings;
use crate::stored_models;

pub fn run(config: &Config, name: &str, confirmation: Confirmation) -> Result<ExitCode> {
    let is_default = stored_models::is_default(config, name)?;
    // A model can be downloaded again, so a script that names it needs no flag.
    let asks = is_default && confirmation == Confirmation::Ask && is_interactive();
    if asks && !yes_or_no(&format!("{name} is the default model. Delete it?"))? {
        output::note("Nothing was deleted.");
        return Ok(ExitCode::SUCCESS);
    }
    let code = stored_models::remove(config, name)?;
    if is_default {
        output::note(format_args!("{name} was the default model. Choose another one: hob model use NAME"));
    }
    audit::note(&settings::databases(config)?, "model.delete", name);
    tell_servers(ChangedPart::Models);
    Ok(code)
}
