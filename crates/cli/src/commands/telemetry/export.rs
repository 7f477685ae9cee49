//! `hob telemetry export`: every recorded call, streamed row by row, so that memory use does not grow with their number.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use hob_db::DbResult;
use hob_telemetry::{CallExport, CallRecord, TelemetryStore};

use super::note_empty;
use crate::args::ExportFormat;

pub fn run(
    telemetry: Option<Arc<dyn TelemetryStore>>,
    format: ExportFormat,
    output: Option<&Path>,
) -> Result<()> {
    if telemetry.is_none() {
        note_empty();
    }
    let rows = telemetry.into_iter().flat_map(|telemetry| CallExport::new(telemetry, None));
    match output {
        None => write(rows, format, BufWriter::new(io::stdout().lock())),
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            write(rows, format, BufWriter::new(file))
                .with_context(|| format!("{} is incomplete", path.display()))
        }
    }
}

fn write(
    rows: impl Iterator<Item = DbResult<CallRecord>>,
    format: ExportFormat,
    out: impl Write,
) -> Result<()> {
    match format {
        ExportFormat::Json => write_json(rows, out),
        ExportFormat::Csv => write_csv(rows, out),
    }
}

/// One array, with a row on each line.
fn write_json(rows: impl Iterator<Item = DbResult<CallRecord>>, mut out: impl Write) -> Result<()> {
    let mut separator = "";
    out.write_all(b"[")?;
    for row in rows {
        writeln!(out, "{separator}")?;
        // As an I/O error, a closed pipe stays recognisable.
        serde_json::to_writer(&mut out, &row?).map_err(io::Error::from)?;
        separator = ",";
    }
    out.write_all(b"\n]\n")?;
    Ok(out.flush()?)
}

/// With a header, unless there is not a single row.
fn write_csv(rows: impl Iterator<Item = DbResult<CallRecord>>, out: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for row in rows {
        writer.serialize(row?).map_err(as_io)?;
    }
    Ok(writer.flush()?)
}

/// As an I/O error, a closed pipe stays recognisable.
fn as_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
