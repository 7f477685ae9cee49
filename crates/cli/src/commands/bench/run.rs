//! `hob bench run`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use hob_app::{AppOptions, AskService};
use indicatif::{ProgressBar, ProgressStyle};

use super::figures::{BenchMachine, BenchRecord, BenchResult, time};
use super::measure::Bench;
use crate::args::{BenchRunArgs, Benchmark};
use crate::commands::open_app;
use crate::output;
use crate::output::progress::Spinner;
use crate::output::screen::ActiveBar;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::settings;

/// The concurrency levels.
const CONCURRENCY: [usize; 3] = [1, 4, 16];

pub fn run(args: &BenchRunArgs) -> Result<ExitCode> {
    let mut config = settings::load()?;
    if let Some(model) = &args.model {
        config.use_model(model);
    }
    let wishes = AppOptions { engine: args.engine, ..AppOptions::default() };
    open_app::with_app(&config, &wishes, async |app, signals| {
        tokio::select! {
            lines = measure(&app.system, args) => lines.and_then(|lines| tell(&lines, args)),
            stop = signals.next() => Ok(stop.exit_code()),
        }
    })
}

async fn measure(system: &AskService, args: &BenchRunArgs) -> Result<Vec<BenchRecord>> {
    // 'auto' chooses another model for each question, so it cannot be measured.
    let Some(model) = system.steady_model().await? else {
        bail!("{} has no model to benchmark; see 'hob model list'", system.engine().key());
    };
    let engine = system.pool().engine_of(&model).await?.key().to_owned();
    let bench = Bench { system, model: &model };
    {
        let _waiting = Spinner::start(format!("loading {}", one_line(&model)));
        bench.warm_up().await?;
    }
    let machine = BenchMachine::from(&hob_config::hardware::detect().await);
    let found = ask(&bench, args).await?;
    let date = jiff::Timestamp::now().to_string();
    let line = |found| BenchRecord {
        date: date.clone(),
        hob: env!("CARGO_PKG_VERSION").to_owned(),
        engine: engine.clone(),
        model: model.clone(),
        machine: machine.clone(),
        found,
    };
    Ok(found.into_iter().map(line).collect())
}

async fn ask(bench: &Bench<'_>, args: &BenchRunArgs) -> Result<Vec<BenchResult>> {
    let wants = |benchmark| args.benchmark.is_none_or(|wanted| wanted == benchmark);
    // At least as many requests as the concurrency level: fewer would not reach it.
    let levels: Vec<(usize, usize)> = if wants(Benchmark::Throughput) {
        CONCURRENCY.map(|at_once| (at_once, args.samples.max(at_once))).into()
    } else {
        Vec::new()
    };
    let alone = if wants(Benchmark::Latency) { args.samples } else { 0 };
    let progress = bar(alone + levels.iter().map(|(_, samples)| samples).sum::<usize>());
    let answered = || progress.inc(1);

    let mut found = Vec::new();
    if alone > 0 {
        progress.set_message("latency");
        found.extend(BenchResult::latency(&bench.rush(alone, 1, &answered).await?));
    }
    for (at_once, samples) in levels {
        progress.set_message(format!("throughput, {at_once} concurrent"));
        found.push(BenchResult::throughput(&bench.rush(samples, at_once, &answered).await?, at_once));
    }
    Ok(found)
}

/// A bar on a terminal; nothing when piped.
fn bar(questions: usize) -> ActiveBar {
    let bar = ActiveBar::new(ProgressBar::new(questions as u64));
    if let Ok(style) = ProgressStyle::with_template("{msg:.cyan} [{bar:24}] {pos}/{len} {eta:.dim}") {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}

fn tell(lines: &[BenchRecord], args: &BenchRunArgs) -> Result<ExitCode> {
    // The file first: a closed pipe must not lose the results.
    if let Some(path) = &args.output {
        append(lines, path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        output::json(&lines)?
    } else {
        print(lines)?
    }
    Ok(ExitCode::SUCCESS)
}

fn append(lines: &[BenchRecord], path: &Path) -> Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str(&serde_json::to_string(line)?);
        text.push('\n');
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    Ok(file.write_all(text.as_bytes())?)
}

fn print(lines: &[BenchRecord]) -> Result<()> {
    let Some(BenchRecord { engine, model, machine, .. }) = lines.first() else { return Ok(()) };
    table::print_facts(&[
        ("Engine", one_line(engine)),
        ("Model", one_line(model)),
        ("Machine", format!("{}, {:.1} GB", one_line(&machine.cpu), machine.memory_gb)),
    ])?;
    let times: Vec<Vec<String>> = lines.iter().flat_map(|line| time_rows(&line.found)).collect();
    if !times.is_empty() {
        let columns = ["MEAN", "P50", "P95", "MIN", "MAX"].map(Column::Numbers);
        output::line("")?;
        table::print(
            &[&[Column::Words("LATENCY"), Column::Numbers("SAMPLES")][..], &columns].concat(),
            &times,
        )?;
    }
    let rates: Vec<Vec<String>> = lines.iter().filter_map(|line| rate_row(&line.found)).collect();
    if !rates.is_empty() {
        let columns = ["CONCURRENCY", "SAMPLES", "TOKENS", "TIME", "TOKENS/S"].map(Column::Numbers);
        output::line("")?;
        table::print(&columns, &rates)?;
    }
    Ok(())
}

fn time_rows(found: &BenchResult) -> Vec<Vec<String>> {
    let BenchResult::Latency { samples, latency, first_token } = found else { return Vec::new() };
    [("full answer", latency), ("first token", first_token)]
        .map(|(what, times)| {
            let times = [times.mean, times.p50, times.p95, times.min, times.max].map(time);
            [what.to_owned(), samples.to_string()].into_iter().chain(times).collect()
        })
        .into()
}

fn rate_row(found: &BenchResult) -> Option<Vec<String>> {
    let BenchResult::Throughput { concurrency, samples, tokens, seconds, tokens_per_second } = found else {
        return None;
    };
    Some(vec![
        concurrency.to_string(),
        samples.to_string(),
        tokens.to_string(),
        time(*seconds),
        format!("{tokens_per_second:.1}"),
    ])
}
