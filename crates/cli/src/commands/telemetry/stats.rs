//! `hob telemetry stats`.

use std::time::SystemTime;

use anyhow::Result;
use hob_db::DbResult;
use hob_telemetry::TelemetryStore;
use hob_telemetry::{
    AgentFigures, CallFigures, CallOverview, DayFigures, EngineFigures, KeyFigures, ModelFigures,
};
use serde::Serialize;

use super::figures::{COLUMNS, ENERGY, cells, cost, energy, measured, sparkline, timing};
use super::note_empty;
use crate::output;
use crate::output::OutputFormat;
use crate::output::number::counted;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::output::time::to_the_second;

/// The days of the sparkline.
const DAYS: u32 = 14;

/// The content of the report.
#[derive(Serialize)]
struct StatsReport {
    overview: CallOverview,
    models: Vec<ModelFigures>,
    engines: Vec<EngineFigures>,
    agents: Vec<AgentFigures>,
    keys: Vec<KeyFigures>,
    days: Vec<DayFigures>,
}

impl StatsReport {
    fn read(telemetry: &dyn TelemetryStore, top: usize, now: SystemTime) -> DbResult<Self> {
        Ok(StatsReport {
            overview: telemetry.overview(None)?,
            models: telemetry.top_models(None, top)?,
            engines: telemetry.engines(None)?,
            agents: telemetry.agents(None)?,
            keys: telemetry.keys(None)?,
            days: telemetry.per_day(DAYS, now)?,
        })
    }

    fn empty() -> Self {
        StatsReport {
            overview: CallOverview { recorded_since: None, figures: CallFigures::default() },
            models: Vec::new(),
            engines: Vec::new(),
            agents: Vec::new(),
            keys: Vec::new(),
            days: Vec::new(),
        }
    }
}

pub fn run(telemetry: Option<&dyn TelemetryStore>, top: usize, format: OutputFormat) -> Result<()> {
    let report = match telemetry {
        Some(telemetry) => StatsReport::read(telemetry, top, SystemTime::now())?,
        None => StatsReport::empty(),
    };
    match format {
        OutputFormat::Json => output::json(&report)?,
        OutputFormat::Text if report.overview.figures.calls == 0 => note_empty(),
        OutputFormat::Text => print(&report)?,
    }
    Ok(())
}

fn print(report: &StatsReport) -> Result<()> {
    table::print_facts(&overview(report))?;
    // The energy column is omitted if nothing was measured.
    let figures = if report.overview.figures.measured > 0 { Tables::WithEnergy } else { Tables::Plain };
    let models =
        report.models.iter().map(|of| (vec![one_line(&of.model), one_line(&of.engine)], &of.figures));
    figures.print(&[Column::Words("MODEL"), Column::Words("ENGINE")], models)?;
    let engines = report.engines.iter().map(|of| (vec![one_line(&of.engine)], &of.figures));
    figures.print(&[Column::Words("ENGINE")], engines)?;
    let agents = report.agents.iter().map(|of| {
        let agent = of.agent.as_deref().map_or_else(|| "none".to_owned(), one_line);
        (vec![agent], &of.figures)
    });
    figures.print(&[Column::Words("AGENT")], agents)?;
    // Without keys the table would only repeat the total.
    if report.keys.iter().all(|of| of.key.is_none()) {
        return Ok(());
    }
    let keys = report.keys.iter().map(|of| {
        let key = of.key.as_deref().map_or_else(|| "none".to_owned(), one_line);
        (vec![key], &of.figures)
    });
    figures.print(&[Column::Words("KEY")], keys)
}

/// Which columns the tables have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tables {
    Plain,
    WithEnergy,
}

impl Tables {
    fn print<'a>(
        self,
        names: &[Column],
        groups: impl Iterator<Item = (Vec<String>, &'a CallFigures)>,
    ) -> Result<()> {
        let energy_column = (self == Tables::WithEnergy).then_some(ENERGY);
        let row = |(names, figures): (Vec<String>, &CallFigures)| {
            let energy = energy_column.map(|_| energy(figures));
            names.into_iter().chain(cells(figures)).chain(energy).collect()
        };
        let rows: Vec<Vec<String>> = groups.map(row).collect();
        if rows.is_empty() {
            return Ok(());
        }
        output::line("")?;
        let columns: Vec<Column> = names.iter().copied().chain(COLUMNS).chain(energy_column).collect();
        Ok(table::print(&columns, &rows)?)
    }
}

fn overview(report: &StatsReport) -> Vec<(&'static str, String)> {
    let CallOverview { recorded_since, figures } = &report.overview;
    let tokens = format!(
        "{} in ({} cached), {} out",
        figures.prompt_tokens, figures.cached_tokens, figures.completion_tokens
    );
    let calls = format!("{}, {} failed, {} cancelled", figures.calls, figures.failures, figures.cancelled);
    let estimated =
        format!("the token counts of {} are Hob's own estimates", counted(figures.estimated, "call"));
    let facts = [
        ("Calls", Some(calls)),
        ("Tokens", Some(tokens)),
        ("Estimated", (figures.estimated > 0).then_some(estimated)),
        ("Latency", figures.latency.map(timing)),
        ("First token", figures.first_token.map(timing)),
        ("Cost", Some(cost(figures)).filter(|cost| cost != "-")),
        ("Energy", measured(figures)),
        ("Since", recorded_since.map(|since| to_the_second(since.timestamp()))),
        ("Per day", Some(per_day(&report.days))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// The chart of the last days, and the value of its highest bar.
fn per_day(days: &[DayFigures]) -> String {
    let calls: Vec<u64> = days.iter().map(|day| day.figures.calls).collect();
    let most = calls.iter().copied().max().unwrap_or(0);
    let (Some(first), Some(last)) = (days.first(), days.last()) else { return String::new() };
    format!("{} {} to {}, at most {}", sparkline(&calls), first.day, last.day, counted(most, "call"))
}
