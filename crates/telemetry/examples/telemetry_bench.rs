//! Measures reports over a million rows: `cargo run -p hob-telemetry --example telemetry_bench [rows]`. `telemetry_bench fill
//! FILE [rows]` only writes them, for other measurements such as `./dev bench telemetry`. `telemetry_bench postgres URL [rows]`
//! measures with an empty database of PostgreSQL.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hob_core::{FinishReason, RequestSource, Usage};
use hob_core::{Moment, UtcDay, Zone};
use hob_db::postgres::PostgresDatabase;
use hob_db::{Database, DatabaseError};
use hob_telemetry::store::{
    MIGRATIONS, POSTGRES_MIGRATIONS, PostgresTelemetryStore, SqliteTelemetryStore, TelemetryStore,
};
use hob_telemetry::{CallExport, Inference, InferenceEnd, Prices, savings};

const DAYS: u64 = 365;
const BATCH: u64 = 2048;
const MODELS: [(&str, &str); 6] = [
    ("ollama", "qwen3:8b"),
    ("ollama", "llama3.2:3b"),
    ("vllm", "Qwen/Qwen3-32B"),
    ("llamacpp", "gpt-oss-20b"),
    ("cloud", "gpt-5.2"),
    ("cloud", "claude-opus-4-6"),
];
const AGENTS: [Option<&str>; 3] = [None, Some("orchestrator"), Some("react")];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rows = |at: usize| arguments.get(at).map_or(Ok(1_000_000), |rows| rows.parse::<u64>());
    match arguments.first().map(String::as_str) {
        Some("fill") => {
            let path = arguments.get(1).ok_or("say which file: telemetry_bench fill FILE [rows]")?;
            fill_file(Path::new(path), rows(2)?, SystemTime::now()).map(drop)
        }
        Some("postgres") => {
            let url = arguments.get(1).ok_or("say which database: telemetry_bench postgres URL [rows]")?;
            let database = PostgresDatabase::new(url.parse()?, &[POSTGRES_MIGRATIONS])?;
            let (telemetry, now) = (Arc::new(PostgresTelemetryStore::new(database)), SystemTime::now());
            fill(telemetry.as_ref(), rows(2)?, now)?;
            measure(telemetry, now)
        }
        _ => {
            let (directory, now) = (tempfile::tempdir()?, SystemTime::now());
            measure(fill_file(&directory.path().join("hob.db"), rows(0)?, now)?, now)
        }
    }
}

fn fill_file(path: &Path, rows: u64, now: SystemTime) -> Result<Arc<dyn TelemetryStore>, Box<dyn Error>> {
    let telemetry = Arc::new(SqliteTelemetryStore::new(Database::open(path, &[MIGRATIONS])?));
    fill(telemetry.as_ref(), rows, now)?;
    println!("{} MB", std::fs::metadata(path)?.len() / 1_000_000);
    Ok(telemetry)
}

fn fill(telemetry: &dyn TelemetryStore, rows: u64, now: SystemTime) -> Result<(), DatabaseError> {
    let prices = Prices::standard();
    let filling = Instant::now();
    let mut next = 0;
    while next < rows {
        let end = (next + BATCH).min(rows);
        let batch: Vec<Inference> = (next..end).map(|number| call(number, rows, now)).collect();
        telemetry.record_batch(&batch, &prices)?;
        next = end;
    }
    let filled = filling.elapsed();
    println!("{rows} rows over {DAYS} days: {filled:.1?} to write ({:.1?} each)", filled / rows as u32);
    Ok(())
}

fn measure(telemetry: Arc<dyn TelemetryStore>, now: SystemTime) -> Result<(), Box<dyn Error>> {
    let month = Some(UtcDay::of(now).minus(30));
    time("overview", || telemetry.overview(None))?;
    time("overview of 30 days", || telemetry.overview(month))?;
    time("top_models(10)", || telemetry.top_models(None, 10))?;
    time("engines", || telemetry.engines(None))?;
    time("agents", || telemetry.agents(None))?;
    time("per_day(30)", || telemetry.per_day(30, now))?;
    time("recent(10)", || telemetry.recent(10))?;
    time("find_run", || telemetry.find_run("chatcmpl-7", Moment::of(now - Duration::from_secs(86_400))))?;
    time("savings", || {
        let served = telemetry.served(UtcDay::of(now))?;
        Ok::<_, DatabaseError>(savings(served, &Prices::standard(), Moment::of(now), &Zone::UTC))
    })?;
    time("export", || {
        CallExport::new(Arc::clone(&telemetry), None).try_fold(0u64, |count, row| row.map(|_| count + 1))
    })?;
    Ok(())
}

/// Prints the best of five.
fn time<T, E>(what: &str, mut work: impl FnMut() -> Result<T, E>) -> Result<(), E> {
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed());
    }
    println!("{what:<20} {best:>10.1?}");
    Ok(())
}

/// The call with this number, spread evenly over days, models and agents.
fn call(number: u64, rows: u64, now: SystemTime) -> Inference {
    let (engine, model) = MODELS[(number * 7 % 6) as usize];
    let scattered = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let latency = Duration::from_micros(50_000 + scattered % 8_000_000);
    Inference {
        started: now - Duration::from_secs(DAYS * 86_400 * (rows - number) / rows),
        run: Arc::from(format!("chatcmpl-{number:024}")),
        source: RequestSource::ALL[(number % 4) as usize],
        engine: engine.to_owned(),
        model: model.to_owned(),
        agent: AGENTS[(number % 3) as usize].map(str::to_owned),
        key: None,
        end_user: None,
        details: Default::default(),
        streamed: number.is_multiple_of(2),
        usage: Usage {
            prompt_tokens: scattered % 4000,
            completion_tokens: scattered % 700,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        },
        estimated: false,
        latency,
        first_token: number.is_multiple_of(2).then_some(latency / 9),
        energy: None,
        ending: InferenceEnd::Complete(FinishReason::Stop),
    }
}
