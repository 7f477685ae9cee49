//! Arguments of `hob database`, `hob backup` and `hob restore`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum DatabaseCommand {
    /// Copy all data between SQLite files and PostgreSQL
    ///
    /// Copies calls, tasks, conversations, stored responses, channel messages, learned routing, named keys, the audit log and the
    /// memory, and compares both sides at the end. Nothing else may use the databases meanwhile. The target must be empty. A copy that was stopped
    /// continues if you run the same command again.
    ///
    /// An address is 'sqlite' (the files in Hob's directory), 'sqlite:DIRECTORY', 'postgres' (the setting database.url, or
    /// HOB_DATABASE_URL) or a URL 'postgres://...'. Do not write a password on the command line, because other users of the machine
    /// can read it: use database.password_file, PGPASSFILE or HOB_DATABASE_URL.
    #[command(after_help = examples! {
        "hob database copy --from sqlite --to postgres"
        "hob database copy --from sqlite --to postgres://hob@db.example.org/hob?sslmode=verify-full"
        "hob database copy --from postgres --to sqlite:/srv/hob"
    })]
    Copy(DatabaseCopyArgs),
}

#[derive(Debug, Args)]
pub struct DatabaseCopyArgs {
    /// Where the data is: sqlite, sqlite:DIRECTORY, postgres or postgres://...
    #[arg(long, value_name = "ADDRESS")]
    pub from: DatabaseAddress,
    /// Where to copy it: sqlite, sqlite:DIRECTORY, postgres or postgres://...
    #[arg(long, value_name = "ADDRESS")]
    pub to: DatabaseAddress,
    /// Delete what an unfinished copy has written to the target, and begin again
    #[arg(long)]
    pub restart: bool,
}

/// Save all data to one file, while Hob may run
///
/// The file is a ZIP archive with the databases, as SQLite files, and their checksums. It is the same for SQLite and PostgreSQL, so
/// it can be restored to either. It does not contain config.toml with its keys, the WhatsApp login, uploaded documents and models.
#[derive(Debug, Args)]
#[command(after_help = examples! {
    "hob backup hob-backup.zip"
    "hob backup /backup/hob-$(date +%F).zip"
})]
pub struct BackupArgs {
    /// The new file; an existing file is not overwritten
    pub file: PathBuf,
}

/// Restore the data of a backup
///
/// Checks the checksums first. The data goes to the configured database: the files in Hob's directory, or PostgreSQL. Stop Hob
/// first.
#[derive(Debug, Args)]
#[command(after_help = examples! {
    "hob restore hob-backup.zip"
    "hob restore hob-backup.zip --force    replace the data; the old data is moved aside"
})]
pub struct RestoreArgs {
    /// A file that 'hob backup' has written
    pub file: PathBuf,
    /// Replace existing data, and keep the old data beside it
    #[arg(long)]
    pub force: bool,
}

/// A database on the command line.
#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseAddress {
    /// The files in a directory, or in Hob's.
    Files(Option<PathBuf>),
    /// The server at a URL, or the configured one.
    Postgres(Option<String>),
}

impl std::fmt::Debug for DatabaseAddress {
    /// Without the URL, which may contain a password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            DatabaseAddress::Files(_) => "sqlite",
            DatabaseAddress::Postgres(_) => "postgres",
        })
    }
}

impl FromStr for DatabaseAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None if text == "sqlite" => Ok(DatabaseAddress::Files(None)),
            None if text == "postgres" => Ok(DatabaseAddress::Postgres(None)),
            Some(("sqlite", directory)) if !directory.is_empty() => {
                Ok(DatabaseAddress::Files(Some(directory.into())))
            }
            Some(("postgres" | "postgresql", _)) => Ok(DatabaseAddress::Postgres(Some(text.to_owned()))),
            _ => Err("expected sqlite, sqlite:DIRECTORY, postgres or postgres://user@host/database"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_files_or_a_server() {
        let files = |directory: Option<&str>| Ok(DatabaseAddress::Files(directory.map(PathBuf::from)));
        assert_eq!("sqlite".parse(), files(None));
        assert_eq!("sqlite:/srv/hob".parse(), files(Some("/srv/hob")));
        assert_eq!("postgres".parse(), Ok(DatabaseAddress::Postgres(None)));
        let url = "postgres://ann:secret@db/hob";
        let address: DatabaseAddress = url.parse().expect("an address");
        assert_eq!(address, DatabaseAddress::Postgres(Some(url.to_owned())));
        assert!(!format!("{address:?}").contains("secret"));
        for wrong in ["mysql://db", "sqlite:", ""] {
            assert!(wrong.parse::<DatabaseAddress>().is_err(), "{wrong}");
        }
    }
}
