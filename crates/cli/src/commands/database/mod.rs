//! `hob database`, `hob backup` and `hob restore`: all data at once. Uses the databases directly, so no server needs to run.

mod backup;
mod copy;
mod copy_bar;
mod restore;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_app::{POSTGRES_MIGRATIONS, postgres_options};
use hob_backup::StateLocation;
use hob_config::Config;
use hob_db::postgres::PostgresDatabase;

use crate::args::{DatabaseAddress, DatabaseCommand};
use crate::commands::block_on;
use crate::output;
use crate::running_server::{ServerProbe, known_addresses, probe, url};
use crate::settings;

pub use backup::run as run_backup;
pub use restore::run as run_restore;

pub fn run(command: DatabaseCommand) -> Result<ExitCode> {
    match command {
        DatabaseCommand::Copy(args) => copy::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The database that an address names.
fn locate(address: DatabaseAddress, config: &Config, home: &Path) -> Result<StateLocation> {
    match address {
        DatabaseAddress::Files(directory) => {
            Ok(StateLocation::Files(directory.unwrap_or_else(|| home.to_owned())))
        }
        DatabaseAddress::Postgres(None) => match postgres(config)? {
            Some(database) => Ok(StateLocation::Postgres(database)),
            None => bail!(
                "no PostgreSQL is configured. Set 'url' in the section [database] of config.toml, or HOB_DATABASE_URL."
            ),
        },
        DatabaseAddress::Postgres(Some(url)) => {
            let mut config = config.clone();
            config.database.url = Some(url.into());
            if postgres_options(&config)?.is_some_and(|options| options.has_password()) {
                output::warning(
                    "other users of this machine can read the password on the command line. Use HOB_DATABASE_URL, PGPASSFILE or \
                     database.password_file instead.",
                );
            }
            match postgres(&config)? {
                Some(database) => Ok(StateLocation::Postgres(database)),
                None => bail!("the URL of the database is empty"),
            }
        }
    }
}

/// The database that the configuration names.
fn configured(config: &Config, home: &Path) -> Result<StateLocation> {
    Ok(match postgres(config)? {
        Some(database) => StateLocation::Postgres(database),
        None => StateLocation::Files(home.to_owned()),
    })
}

fn postgres(config: &Config) -> Result<Option<PostgresDatabase>> {
    let Some(mut options) = postgres_options(config)? else { return Ok(None) };
    // One statement of a copy has many rows.
    options.statement_timeout = options.statement_timeout.max(COPY_TIMEOUT);
    Ok(Some(PostgresDatabase::new(options, POSTGRES_MIGRATIONS)?))
}

const COPY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

/// Fails if a server of this home runs: it would write to files that are replaced.
fn refuse_running_server(place: &StateLocation) -> Result<()> {
    let StateLocation::Files(home) = place else { return Ok(()) };
    let home: PathBuf = home.clone();
    block_on(async move {
        for address in known_addresses(&home) {
            let host = address.ip().to_string();
            if let ServerProbe::Hob { scheme, .. } = probe(&host, address.port()).await {
                bail!(
                    "the Hob server at {} uses {}. Stop it, and try again.",
                    url(scheme, &host, address.port()),
                    home.display()
                );
            }
        }
        Ok(())
    })
}

/// The configuration and Hob's directory.
fn load() -> Result<(Config, PathBuf)> {
    Ok((settings::load()?, settings::home()?))
}
