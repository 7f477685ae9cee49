//! `hob restore`.

use std::process::ExitCode;

use anyhow::Result;
use hob_app::backup_service;
use hob_backup::Replace;

use super::copy_bar::CopyBar;
use super::{configured, load, refuse_running_server};
use crate::args::RestoreArgs;
use crate::output;
use crate::output::progress::Spinner;

pub fn run(args: &RestoreArgs) -> Result<ExitCode> {
    let (config, home) = load()?;
    let to = configured(&config, &home)?;
    refuse_running_server(&to)?;
    let (created, restored) = {
        let _spinner = Spinner::start("Checking the backup");
        let service = backup_service();
        let backup = service.open(&args.file, &home)?;
        let created = backup.manifest.created.clone();
        let bar = CopyBar::default();
        let replace = if args.force { Replace::KeepingOld } else { Replace::Never };
        (created, service.restore(backup, &to, &home, replace, &|progress| bar.show(progress))?)
    };
    output::line(format_args!("Restored the backup of {created} to {}.", to.name()))?;
    for path in &restored.aside {
        output::note(format_args!("The old data is in {}.", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}
