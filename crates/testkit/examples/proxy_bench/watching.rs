//! What it costs that a Hob watches itself: the same load on one that records, counts and logs, and on one that does nothing of it.
//!
//! Both run all the time and are asked in turns, so that whatever else the machine does falls on both; what counts is the middle
//! of the rounds.

use std::time::Duration;

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask, load};
use crate::report::with_cpu;

/// How often each is asked.
const ROUNDS: usize = 9;

/// Processor time of a request may grow by so much.
const MOST: f64 = 0.05;

pub async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let hob = |watch| Kind::Hob { binary: options.hob.clone(), agent: "", watch };
    let gateways = [
        Gateway::start(hob(Watch::Nothing), engine.port).await,
        Gateway::start(hob(Watch::Closely), engine.port).await,
    ];
    let mut lines = Vec::new();
    let mut worst = f64::MIN;
    println!("{:<10}{:>22}{:>22}{:>12}", "", "unwatched us/request", "watched us/request", "growth");
    for (name, ask) in [("whole", Ask::Whole), ("streamed", Ask::Streamed)] {
        let [without, with] = in_turns(&gateways, ask, options.time).await;
        let growth = with / without - 1.0;
        worst = worst.max(growth);
        println!("{name:<10}{without:>22.1}{with:>22.1}{:>11.1}%", growth * 100.0);
        lines.push(format!(
            "  {{\"ask\": \"{name}\", \"unwatched_us\": {without:.3}, \"watched_us\": {with:.3}, \"growth\": {growth:.4}}}"
        ));
    }
    if let Some(path) = &options.json {
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the file can be written");
        eprintln!("written to {}", path.display());
    }
    assert!(worst < MOST, "processor time of a request grows by {:.1} %, which is too much", worst * 100.0);
}

/// The middle of the rounds of both.
async fn in_turns(gateways: &[Gateway; 2], ask: Ask, time: Duration) -> [f64; 2] {
    let mut rounds = [Vec::new(), Vec::new()];
    for gateway in gateways {
        // The first requests open connections and fill caches.
        load(gateway.port, Api::Chat, ask, 32, time / 5).await;
    }
    for round in 0..ROUNDS {
        // Each is first as often as the other, nearly.
        for turn in [round % 2, 1 - round % 2] {
            rounds[turn].push(with_cpu(&gateways[turn], Api::Chat, ask, time).await.1);
        }
    }
    rounds.map(|mut each| {
        each.sort_unstable_by(f64::total_cmp);
        each[each.len() / 2]
    })
}
