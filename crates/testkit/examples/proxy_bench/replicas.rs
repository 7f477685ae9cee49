//! Three Hobs on one PostgreSQL against one of them: the same load through nginx, in turns. Everything shares the cores of this machine, so
//! requests per second grow only where a single Hob leaves cores unused. Processor time of a request shows what sharing costs.

use std::time::Duration;

use hob_testkit::{PostgresServer, TestDatabase};

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask, load, percentile};

const REPLICAS: usize = 3;

/// How often each side is asked. What counts is the middle.
const ROUNDS: usize = 5;

/// Clients that ask at the same time.
const CONNECTIONS: usize = 96;

/// One load.
struct Round {
    per_second: f64,
    /// Processor time of all Hobs for a request, in microseconds.
    cpu: f64,
    /// In milliseconds.
    median: f64,
    slowest: f64,
}

pub async fn measure(options: &Options) {
    // Without a URL, a database of the server of the tests.
    let test_database = match options.database_url {
        Some(_) => None,
        None => Some(PostgresServer::shared().create_database()),
    };
    let url = options.database_url.clone().or_else(|| test_database.as_ref().map(TestDatabase::url));
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let mut hobs = Vec::new();
    for _ in 0..REPLICAS {
        let hob = Kind::Hob {
            binary: options.hob.clone(),
            agent: "",
            watch: Watch::Usual,
            database_url: url.clone(),
        };
        hobs.push(Gateway::start(hob, engine.port).await);
    }
    let ports: Vec<u16> = hobs.iter().map(|hob| hob.port).collect();
    let one = Gateway::start(Kind::Balancer(options.nginx.clone(), ports[..1].to_vec()), engine.port).await;
    let all = Gateway::start(Kind::Balancer(options.nginx.clone(), ports), engine.port).await;
    println!("| request | Hobs | requests/s | ratio | processor time, µs | ratio | p50 | p99 |");
    println!("|---|---|---|---|---|---|---|---|");
    for (name, ask) in [("whole", Ask::Whole), ("streamed", Ask::Streamed), ("paced stream", Ask::Paced)] {
        let mut rounds = [Vec::new(), Vec::new()];
        for balancer in [&one, &all] {
            // The first requests open connections and fill caches.
            load(balancer, Api::Chat, ask, CONNECTIONS, options.time / 5).await;
        }
        for round in 0..ROUNDS {
            // Another one is the first in each round.
            for turn in 0..2 {
                let side = (turn + round) % 2;
                rounds[side].push(ask_once([&one, &all][side], &hobs, ask, options.time).await);
            }
        }
        let [alone, together] = rounds.map(middle);
        for (count, figures) in [(1, &alone), (REPLICAS, &together)] {
            println!(
                "| {name} | {count} | {:.0} | {:.2} | {:.1} | {:.2} | {:.1} ms | {:.1} ms |",
                figures.per_second,
                figures.per_second / alone.per_second,
                figures.cpu,
                figures.cpu / alone.cpu,
                figures.median,
                figures.slowest,
            );
        }
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    println!(
        "\n{cores} cores for the load, nginx, the Hobs, PostgreSQL and the engine; {CONNECTIONS} clients at once."
    );
    // The Hobs end before their database is dropped.
    drop((one, all, hobs));
}

async fn ask_once(balancer: &Gateway, hobs: &[Gateway], ask: Ask, time: Duration) -> Round {
    let before: Vec<_> = hobs.iter().map(Gateway::thread_times).collect();
    let outcome = load(balancer, Api::Chat, ask, CONNECTIONS, time).await;
    let used: Duration = hobs.iter().zip(&before).map(|(hob, before)| hob.thread_times().since(before)).sum();
    let milliseconds = |share| percentile(&outcome.latencies, share).as_secs_f64() * 1e3;
    Round {
        per_second: outcome.per_second(),
        cpu: used.as_secs_f64() * 1e6 / outcome.requests as f64,
        median: milliseconds(0.5),
        slowest: milliseconds(0.99),
    }
}

/// The middle of each figure.
fn middle(rounds: Vec<Round>) -> Round {
    let of = |figure: fn(&Round) -> f64| {
        let mut each: Vec<f64> = rounds.iter().map(figure).collect();
        each.sort_unstable_by(f64::total_cmp);
        each[each.len() / 2]
    };
    Round {
        per_second: of(|round| round.per_second),
        cpu: of(|round| round.cpu),
        median: of(|round| round.median),
        slowest: of(|round| round.slowest),
    }
}
