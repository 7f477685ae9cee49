//! How long reports take when the record is long: `hob telemetry stats`, and `GET /v1/savings` over HTTP.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Connection, percentile};

/// How often the command is run. Each time is that of a whole process.
const RUNS: usize = 20;

/// How often the report is asked for.
const REQUESTS: usize = 100;

/// One kind of report: how long it took, sorted, and how long 99 of 100 may take.
struct Timed {
    name: &'static str,
    times: Vec<Duration>,
    bound: Duration,
}

impl Timed {
    fn new(name: &'static str, mut times: Vec<Duration>, bound: Duration) -> Self {
        times.sort_unstable();
        Timed { name, times, bound }
    }

    fn milliseconds(&self, share: f64) -> f64 {
        percentile(&self.times, share).as_secs_f64() * 1e3
    }
}

pub async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::copy(&options.record, directory.path().join("hob.db")).expect("a record that can be copied");
    let kind = Kind::Hob { binary: options.hob.clone(), agent: "", watch: Watch::Usual, database_url: None };
    let hob = Gateway::start_in(directory, kind, engine.port).await;

    let all = [
        Timed::new("telemetry stats", stats(&options.hob, hob.home()), Duration::from_secs(1)),
        Timed::new("GET /v1/savings", savings(hob.port).await, Duration::from_millis(10)),
    ];
    println!("{:<18}{:>12}{:>12}{:>12}", "", "p50 ms", "p99 ms", "bound ms");
    for timed in &all {
        let bound = timed.bound.as_millis();
        let Timed { name, .. } = timed;
        println!("{name:<18}{:>12.2}{:>12.2}{bound:>12}", timed.milliseconds(0.5), timed.milliseconds(0.99));
    }
    if let Some(path) = &options.json {
        let line = |timed: &Timed| {
            let (p50, p99) = (timed.milliseconds(0.5), timed.milliseconds(0.99));
            let bound = timed.bound.as_millis();
            format!(
                "  {{\"report\": {:?}, \"p50_ms\": {p50:.3}, \"p99_ms\": {p99:.3}, \"bound_ms\": {bound}}}",
                timed.name
            )
        };
        let lines: Vec<String> = all.iter().map(line).collect();
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the file can be written");
        eprintln!("written to {}", path.display());
    }
    for timed in &all {
        let good = percentile(&timed.times, 0.99) < timed.bound;
        assert!(good, "{} takes {:.1} ms, which is too long", timed.name, timed.milliseconds(0.99));
    }
}

/// The command as a user runs it, beside the server that has the record open.
fn stats(hob: &Path, home: &Path) -> Vec<Duration> {
    let run = |_| {
        let mut command = Command::new(hob);
        command.args(["telemetry", "stats"]).env("HOB_HOME", home).env_remove("HOB_CONFIG");
        let began = Instant::now();
        let status = command.stdout(Stdio::null()).status().expect("it starts");
        assert!(status.success(), "telemetry stats failed");
        began.elapsed()
    };
    (0..RUNS).map(run).collect()
}

async fn savings(port: u16) -> Vec<Duration> {
    let request = format!("GET /v1/savings HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\r\n").into_bytes();
    let mut connection = Connection::open(port).await;
    // The first opens the database for reading.
    connection.fetch(&request).await;
    let mut times = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        times.push(connection.fetch(&request).await);
    }
    times
}
