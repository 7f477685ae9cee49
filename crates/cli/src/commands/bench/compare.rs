//! `hob bench compare`: compares two result files, and warns about other differences between them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::figures::{BenchRecord, Figure};
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::{self, Column};
use crate::output::text::one_line;

/// A longer file is not a result file.
const LONGEST: u64 = 16 << 20;

/// A metric in both files.
#[derive(Debug, PartialEq, Serialize)]
struct Compared {
    engine: String,
    model: String,
    figure: String,
    before: f64,
    after: f64,
    /// How many times as fast; below one it is slower.
    speed_up: Option<f64>,
    #[serde(skip)]
    shown: [String; 2],
}

#[derive(Debug, PartialEq, Serialize)]
struct Comparison {
    figures: Vec<Compared>,
    /// Differences that make the comparison less meaningful.
    warnings: Vec<String>,
}

pub fn run(before: &Path, after: &Path, format: OutputFormat) -> Result<ExitCode> {
    let comparison = compare(&read(before)?, &read(after)?);
    if comparison.figures.is_empty() {
        bail!(
            "{} and {} have no benchmark in common; run the same benchmark on the same model twice",
            before.display(),
            after.display()
        );
    }
    match format {
        OutputFormat::Json => output::json(&comparison)?,
        OutputFormat::Text => print(&comparison)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Vec<BenchRecord>> {
    let mut text = String::new();
    let reading = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
    reading.with_context(|| format!("cannot read {}", path.display()))?;
    if text.len() as u64 > LONGEST {
        bail!(
            "{} is longer than {} MiB, so it was not written by 'hob bench run -o'",
            path.display(),
            LONGEST >> 20
        );
    }
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let line = serde_json::from_str(line).with_context(|| {
            format!("line {number} of {} is not a result of 'hob bench run -o'", path.display())
        })?;
        lines.push(line);
    }
    if lines.is_empty() {
        bail!("{} has no results; create some with 'hob bench run -o {0}'", path.display());
    }
    Ok(lines)
}

/// The engine, the model and the name of a metric.
type Key = (String, String, String);

/// If a metric was measured more than once, the last value counts.
fn figures(lines: &[BenchRecord]) -> BTreeMap<Key, Figure> {
    let mut figures = BTreeMap::new();
    for line in lines {
        for (name, figure) in line.found.compared() {
            figures.insert((line.engine.clone(), line.model.clone(), name), figure);
        }
    }
    figures
}

/// Compares metrics of the same engine and model. If each file has exactly one engine and model, they are compared even if
/// they differ.
fn compare(before: &[BenchRecord], after: &[BenchRecord]) -> Comparison {
    let mut warnings = Vec::new();
    let (mut old, new) = (figures(before), figures(after));
    if let (Some(left), Some(right)) = (subject(before), subject(after))
        && left != right
    {
        warnings.push(format!("different models: {} on {}, {} on {}", left.1, left.0, right.1, right.0));
        old = old
            .into_iter()
            .map(|((_, _, name), figure)| ((right.0.to_owned(), right.1.to_owned(), name), figure))
            .collect();
    }
    let mut differ = |what: &str, left: Vec<String>, right: Vec<String>| {
        if left != right {
            warnings.push(format!("different {what}: {}, {}", left.join(" and "), right.join(" and ")));
        }
    };
    differ("machines", machines(before), machines(after));
    differ("versions of Hob", versions(before), versions(after));
    let in_both = new.into_iter().filter_map(|(key, after)| Some((old.get(&key).copied()?, key, after)));
    let figures = in_both.map(|(before, (engine, model, figure), after)| Compared {
        engine,
        model,
        figure,
        before: before.value(),
        after: after.value(),
        speed_up: before.speed_up(after),
        shown: [before.shown(), after.shown()],
    });
    Comparison { figures: figures.collect(), warnings }
}

/// The engine and model of all records, if they are the same.
fn subject(lines: &[BenchRecord]) -> Option<(&str, &str)> {
    let of = |line: &'_ BenchRecord| (line.engine.clone(), line.model.clone());
    let first = lines.first()?;
    lines.iter().all(|line| of(line) == of(first)).then_some((&first.engine, &first.model))
}

fn machines(lines: &[BenchRecord]) -> Vec<String> {
    distinct(lines.iter().map(|line| {
        let machine = &line.machine;
        let gpus = if machine.gpus.is_empty() { "no GPU".to_owned() } else { machine.gpus.join(", ") };
        format!("{} {}, {}, {:.1} GB, {gpus}", machine.os, machine.arch, machine.cpu, machine.memory_gb)
    }))
}

fn versions(lines: &[BenchRecord]) -> Vec<String> {
    distinct(lines.iter().map(|line| line.hob.clone()))
}

fn distinct(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = words.collect();
    words.sort();
    words.dedup();
    words
}

fn print(comparison: &Comparison) -> Result<()> {
    for warning in &comparison.warnings {
        output::warning(one_line(warning));
    }
    let columns = [
        Column::Words("ENGINE"),
        Column::Words("MODEL"),
        Column::Words("METRIC"),
        Column::Numbers("BEFORE"),
        Column::Numbers("AFTER"),
        Column::Numbers("SPEEDUP"),
    ];
    let rows: Vec<Vec<String>> = comparison
        .figures
        .iter()
        .map(|compared| {
            let [before, after] = compared.shown.clone();
            let speed = compared.speed_up.map_or_else(|| "?".to_owned(), |ratio| format!("{ratio:.2}x"));
            vec![
                one_line(&compared.engine),
                one_line(&compared.model),
                compared.figure.clone(),
                before,
                after,
                speed,
            ]
        })
        .collect();
    Ok(table::print(&columns, &rows)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::figures::{BenchMachine, BenchResult};

    fn rate(model: &str, cpu: &str, tokens_per_second: f64) -> BenchRecord {
        BenchRecord {
            date: "2026-11-15T09:00:00Z".into(),
            hob: "0.1.0".into(),
            engine: "ollama".into(),
            model: model.into(),
            machine: BenchMachine {
                os: "linux".into(),
                arch: "x86_64".into(),
                cpu: cpu.into(),
                memory_gb: 8.0,
                gpus: Vec::new(),
            },
            found: BenchResult::Throughput {
                concurrency: 4,
                samples: 10,
                tokens: 100,
                seconds: 1.0,
                tokens_per_second,
            },
        }
    }

    #[test]
    fn the_same_model_is_compared_by_its_last_measurement() {
        let before = [rate("a", "fast", 1.0), rate("a", "fast", 50.0), rate("b", "fast", 7.0)];
        let Comparison { figures, warnings } = compare(&before, &[rate("a", "fast", 100.0)]);
        assert_eq!(warnings, Vec::<String>::new());
        let [figure] = figures.as_slice() else { panic!("one figure: {figures:?}") };
        assert_eq!((figure.before, figure.after, figure.speed_up), (50.0, 100.0, Some(2.0)));
        assert_eq!(figure.shown, ["50.0 tokens/s", "100.0 tokens/s"]);
    }

    #[test]
    fn other_differences_are_warnings() {
        let comparison = compare(&[rate("a", "fast", 100.0)], &[rate("b", "slow", 50.0)]);
        assert_eq!(comparison.figures[0].speed_up, Some(0.5));
        assert_eq!(comparison.warnings.len(), 2, "{:?}", comparison.warnings);
        assert_eq!(comparison.warnings[0], "different models: a on ollama, b on ollama");
        assert!(comparison.warnings[1].starts_with("different machines: "), "{:?}", comparison.warnings);
    }

    #[test]
    fn less_time_and_more_tokens_are_both_faster() {
        assert_eq!(Figure::Seconds(2.0).speed_up(Figure::Seconds(1.0)), Some(2.0));
        assert_eq!(Figure::TokensPerSecond(2.0).speed_up(Figure::TokensPerSecond(1.0)), Some(0.5));
        assert_eq!(Figure::Seconds(2.0).speed_up(Figure::Seconds(0.0)), None);
        assert_eq!(Figure::TokensPerSecond(0.0).speed_up(Figure::TokensPerSecond(1.0)), None);
    }

    #[test]
    fn a_record_survives_a_round_trip() {
        let line = rate("a", "fast", 12.5);
        let text = serde_json::to_string(&line).unwrap();
        assert!(text.contains(r#""benchmark":"throughput","concurrency":4"#), "{text}");
        assert_eq!(serde_json::from_str::<BenchRecord>(&text).unwrap(), line);
    }
}
