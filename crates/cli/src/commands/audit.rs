//! `hob audit`: the log of changes of keys, models, tasks and settings.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Error, Result, bail};
use hob_app::Databases;
use hob_core::Zone;
use hob_keys::{AuditActor, AuditEntry, AuditFault, AuditService, key_store};
use serde_json::json;

use crate::args::AuditCommand;
use crate::output;
use crate::output::OutputFormat;
use crate::output::number::counted;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::output::time;
use crate::settings;

const COLUMNS: [Column; 6] = [
    Column::Numbers("NUMBER"),
    Column::Words("TIME"),
    Column::Words("WHO"),
    Column::Words("FROM"),
    Column::Words("CHANGE"),
    Column::Words("SUBJECT"),
];

pub fn run(command: AuditCommand) -> Result<ExitCode> {
    let audit = audit_log(&settings::databases(&settings::load()?)?);
    match command {
        AuditCommand::List { lines, json } => list(&audit, lines, json.into())?,
        AuditCommand::Export { output } => export(&audit, output.as_deref())?,
        AuditCommand::Verify => verify(&audit)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn audit_log(databases: &Databases) -> AuditService {
    AuditService::new(key_store(databases.hob.clone()))
}

/// Notes a change that a command has made. Blocks.
pub fn note(databases: &Databases, action: &str, subject: &str) {
    audit_log(databases).note(AuditActor::terminal(), action, subject, &json!({}));
}

fn list(audit: &AuditService, lines: usize, format: OutputFormat) -> Result<()> {
    let entries = audit.latest(lines)?;
    if format == OutputFormat::Json {
        return Ok(output::json(&entries)?);
    }
    if entries.is_empty() {
        output::note("The audit log is empty: no key, task or model was changed yet.");
        return Ok(());
    }
    Ok(table::print(&COLUMNS, &entries.iter().map(row).collect::<Vec<_>>())?)
}

fn row(entry: &AuditEntry) -> Vec<String> {
    let event = &entry.event;
    vec![
        entry.number.to_string(),
        time::in_full(event.at, &Zone::system()),
        one_line(&event.actor.name),
        one_line(&event.actor.origin),
        one_line(&event.action),
        one_line(&event.subject),
    ]
}

fn export(audit: &AuditService, output: Option<&Path>) -> Result<()> {
    match output {
        None => write(audit, BufWriter::new(io::stdout().lock())),
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            write(audit, BufWriter::new(file)).with_context(|| format!("{} is incomplete", path.display()))
        }
    }
}

fn write(audit: &AuditService, mut out: impl Write) -> Result<()> {
    audit.export::<Error>(|entry| {
        // As an I/O error, a closed pipe stays recognisable.
        serde_json::to_writer(&mut out, entry).map_err(io::Error::from)?;
        Ok(writeln!(out)?)
    })?;
    Ok(out.flush()?)
}

fn verify(audit: &AuditService) -> Result<()> {
    match audit.verify()? {
        Ok(chain) if chain.last == 0 => Ok(output::line("The audit log is empty.")?),
        Ok(chain) => {
            let changes = counted(u64::try_from(chain.last).unwrap_or(0), "change");
            output::line(format_args!(
                "The audit log is unbroken: {changes}, the last with the hash {}.",
                chain.hash
            ))?;
            Ok(())
        }
        Err(AuditFault::Gap { number }) => {
            bail!("the audit log is broken: a change is missing before number {number}.")
        }
        Err(AuditFault::Unlinked { number }) => bail!(
            "the audit log is broken: number {number} does not follow the change before it. A change was removed or inserted."
        ),
        Err(AuditFault::Changed { number }) => {
            bail!("the audit log is broken: number {number} was altered.")
        }
    }
}
