//! `hob backup`.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::backup_service;

use super::copy_bar::CopyBar;
use super::{configured, load};
use crate::args::BackupArgs;
use crate::output;
use crate::output::number::{counted, memory};
use crate::output::progress::Spinner;

pub fn run(args: &BackupArgs) -> Result<ExitCode> {
    let (config, home) = load()?;
    let from = configured(&config, &home)?;
    let manifest = {
        let _spinner = Spinner::start("Writing the backup");
        let bar = CopyBar::default();
        backup_service().back_up(&from, &args.file, &|progress| bar.show(progress))?
    };
    let rows: u64 = manifest.files.iter().flat_map(|file| file.rows.values()).sum();
    let bytes = args.file.metadata().map_or(0, |file| file.len());
    output::line(format_args!(
        "Saved {} of {} to {} ({}).",
        counted(rows, "row"),
        from.name(),
        args.file.display(),
        memory(bytes)
    ))?;
    output::note(
        "config.toml with its keys, the WhatsApp login, uploaded documents and models are not in the backup.",
    );
    Ok(ExitCode::SUCCESS)
}
