//! One gateway's figures, and the table of all.

use std::time::Duration;

use crate::gateway::Gateway;
use crate::load::{Api, Ask, Connection, Outcome, load, percentile, request};
use crate::stand_in::{SLOW_MODEL, TOKENS};

/// Streams that are open at once when memory is looked at.
const OPEN_STREAMS: usize = 1000;

/// How long after its start a gateway counts as idle.
const SETTLED: Duration = Duration::from_secs(1);

pub struct Measured {
    name: String,
    ready_after: Duration,
    resident_idle: f64,
    resident_streams: f64,
    resident_after: f64,
    alone: Outcome,
    some: Outcome,
    /// Processor time per request with 32 in flight, in microseconds.
    cpu_whole: f64,
    many: Outcome,
    alone_streamed: Outcome,
    streamed: Outcome,
    cpu_stream: f64,
    cpu_paced: f64,
}

impl Measured {
    pub async fn of(gateway: &Gateway, time: Duration) -> Self {
        tokio::time::sleep(SETTLED).await;
        let resident_idle = gateway.resident_mb();
        // The first requests open connections and fill caches.
        load(gateway, Api::Chat, Ask::Whole, 32, time / 5).await;
        let alone = load(gateway, Api::Chat, Ask::Whole, 1, time).await;
        let (some, cpu_whole) = with_cpu(gateway, Api::Chat, Ask::Whole, time).await;
        let many = load(gateway, Api::Chat, Ask::Whole, 256, time).await;
        let alone_streamed = load(gateway, Api::Chat, Ask::Streamed, 1, time).await;
        let (streamed, cpu_stream) = with_cpu(gateway, Api::Chat, Ask::Streamed, time).await;
        let (_, cpu_paced) = with_cpu(gateway, Api::Chat, Ask::Paced, time).await;
        let resident_streams = with_open_streams(gateway).await;
        Measured {
            name: gateway.name.clone(),
            ready_after: gateway.ready_after,
            resident_idle,
            resident_streams,
            resident_after: gateway.resident_mb(),
            alone,
            some,
            cpu_whole,
            many,
            alone_streamed,
            streamed,
            cpu_stream,
            cpu_paced,
        }
    }
}

/// The load, and the processor time of a request in microseconds.
pub async fn with_cpu(gateway: &Gateway, api: Api, ask: Ask, time: Duration) -> (Outcome, f64) {
    let before = gateway.thread_times();
    let outcome = load(gateway, api, ask, 32, time).await;
    let used = gateway.thread_times().since(&before);
    let each = used.as_secs_f64() * 1e6 / outcome.requests as f64;
    (outcome, each)
}

/// Memory during a thousand slow streams.
async fn with_open_streams(gateway: &Gateway) -> f64 {
    let request = request(gateway, Api::Chat, SLOW_MODEL, Ask::Streamed);
    let mut connections = Vec::new();
    for _ in 0..OPEN_STREAMS {
        let mut connection = Connection::open(gateway.port).await;
        connection.send(&request).await;
        connections.push(connection);
    }
    for connection in &mut connections {
        connection.read().await;
    }
    gateway.resident_mb()
}

/// All figures; the first is the engine without a gateway, the second nginx.
pub struct Report {
    direct: Measured,
    gateways: Vec<Measured>,
}

/// A column: its name, and its figure.
type Column = (&'static str, fn(&Measured, &Report) -> f64);

const COLUMNS: [Column; 20] = [
    ("cpu us/request", |measured, _| measured.cpu_whole),
    ("x nginx (request)", |measured, report| measured.cpu_whole / report.nginx().cpu_whole),
    ("requests/s 1", |measured, _| measured.alone.per_second()),
    ("requests/s 32", |measured, _| measured.some.per_second()),
    ("requests/s 256", |measured, _| measured.many.per_second()),
    ("x nginx (32 in flight)", |measured, report| {
        measured.some.per_second() / report.nginx().some.per_second()
    }),
    ("added p50 us", |measured, report| {
        added(&measured.alone.latencies, &report.direct.alone.latencies, 0.5)
    }),
    ("added p99 us", |measured, report| {
        added(&measured.alone.latencies, &report.direct.alone.latencies, 0.99)
    }),
    ("cpu us/paced stream", |measured, _| measured.cpu_paced),
    ("cpu us/paced event", |measured, _| measured.cpu_paced / (TOKENS + 2) as f64),
    ("x nginx (paced stream)", |measured, report| measured.cpu_paced / report.nginx().cpu_paced),
    ("cpu us/burst stream", |measured, _| measured.cpu_stream),
    ("cpu us/burst event", |measured, _| measured.cpu_stream / (TOKENS + 2) as f64),
    ("x nginx (burst stream)", |measured, report| measured.cpu_stream / report.nginx().cpu_stream),
    ("streams/s 32", |measured, _| measured.streamed.per_second()),
    ("first word added us", |measured, report| {
        added(&measured.alone_streamed.first_words, &report.direct.alone_streamed.first_words, 0.5)
    }),
    ("MB idle", |measured, _| measured.resident_idle),
    ("MB 1000 streams", |measured, _| measured.resident_streams),
    ("MB after", |measured, _| measured.resident_after),
    ("ms to listen", |measured, _| measured.ready_after.as_secs_f64() * 1e3),
];

fn added(measured: &[Duration], direct: &[Duration], share: f64) -> f64 {
    (percentile(measured, share).as_secs_f64() - percentile(direct, share).as_secs_f64()) * 1e6
}

impl Report {
    pub fn new(direct: Measured) -> Self {
        Report { direct, gateways: Vec::new() }
    }

    pub fn add(&mut self, gateway: Measured) {
        self.gateways.push(gateway);
    }

    fn nginx(&self) -> &Measured {
        self.gateways.first().unwrap_or(&self.direct)
    }

    fn all(&self) -> impl Iterator<Item = &Measured> {
        std::iter::once(&self.direct).chain(&self.gateways)
    }

    /// A line per figure, a column per gateway.
    pub fn table(&self) -> String {
        let mut table = format!("{:<24}", "");
        for measured in self.all() {
            table.push_str(&format!("{:>20}", measured.name));
        }
        for (name, figure) in COLUMNS {
            table.push_str(&format!("\n{name:<24}"));
            for measured in self.all() {
                table.push_str(&format!("{:>20}", short(figure(measured, self))));
            }
        }
        table
    }

    pub fn json(&self) -> String {
        let figures = |measured: &Measured| {
            let figures: Vec<String> = COLUMNS
                .iter()
                .map(|(name, figure)| format!("{name:?}: {:.3}", figure(measured, self)))
                .collect();
            format!("  {{\"gateway\": {:?}, {}}}", measured.name, figures.join(", "))
        };
        format!("[\n{}\n]\n", self.all().map(figures).collect::<Vec<_>>().join(",\n"))
    }
}

fn short(figure: f64) -> String {
    match figure.abs() {
        large if large >= 100.0 => format!("{figure:.0}"),
        middling if middling >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}
