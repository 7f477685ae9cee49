//! `hob database copy`.

use anyhow::Result;
use hob_app::backup_service;
use hob_backup::StateLocation;
use hob_db::copy::ExistingRows;

use super::copy_bar::CopyBar;
use super::{load, locate, refuse_running_server};
use crate::args::DatabaseCopyArgs;
use crate::output;
use crate::output::number::counted;

pub fn run(args: DatabaseCopyArgs) -> Result<()> {
    let (config, home) = load()?;
    let from = locate(args.from, &config, &home)?;
    let to = locate(args.to, &config, &home)?;
    for place in [&from, &to] {
        refuse_running_server(place)?;
    }
    let existing = if args.restart { ExistingRows::Restart } else { ExistingRows::Continue };
    let report = {
        let bar = CopyBar::default();
        backup_service().copy(&from, &to, existing, &|progress| bar.show(progress))?
    };
    let (source, target) = (from.name(), to.name());
    if report.was_complete {
        output::line(format_args!(
            "Nothing was copied: an earlier copy from {source} to {target} is complete. To copy again, use an empty database."
        ))?;
        return Ok(());
    }
    for (table, rows) in report.tables.iter().filter(|(_, rows)| *rows > 0) {
        output::line(format_args!("{table:<20} {rows:>12}"))?;
    }
    output::line(format_args!(
        "Copied {} from {source} to {target}. Both have the same {}.",
        counted(report.copied, "row"),
        counted(report.tables.iter().map(|(_, rows)| rows).sum::<u64>(), "row"),
    ))?;
    output::note(match to {
        StateLocation::Postgres(_) => "To use it, set 'url' in the section [database] of config.toml.",
        StateLocation::Files(_) => "To use it, remove 'url' from the section [database] of config.toml.",
    });
    Ok(())
}
