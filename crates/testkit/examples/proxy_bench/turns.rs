//! Processor time of several gateways that are asked in turns, so that whatever else the machine does falls on all of them. What
//! counts is the middle of the rounds.

use std::time::Duration;

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask, load};
use crate::report::with_cpu;
use crate::stand_in::TOKENS;

/// How often each is asked.
const ROUNDS: usize = 9;

/// The least time for the first requests, which open connections, start threads and fill caches.
const LEAST_WARM_UP: Duration = Duration::from_secs(1);

/// Microseconds of processor time of a request, for each gateway and API.
pub async fn in_turns(asked: &[(&Gateway, Api)], ask: Ask, time: Duration) -> Vec<f64> {
    rounds(asked, ask, time).await.into_iter().map(|each| middle(&each)).collect()
}

/// The same for each round.
pub async fn rounds(asked: &[(&Gateway, Api)], ask: Ask, time: Duration) -> Vec<Vec<f64>> {
    let mut rounds = vec![Vec::new(); asked.len()];
    for (gateway, api) in asked {
        load(gateway, *api, ask, 32, (time / 5).max(LEAST_WARM_UP)).await;
    }
    for round in 0..ROUNDS {
        // Another one is the first in each round.
        for turn in 0..asked.len() {
            let turn = (turn + round) % asked.len();
            let (gateway, api) = asked[turn];
            rounds[turn].push(with_cpu(gateway, api, ask, time).await.1);
        }
    }
    rounds
}

pub fn middle(each: &[f64]) -> f64 {
    quantile(each, 0.5)
}

fn quantile(each: &[f64], share: f64) -> f64 {
    let mut sorted = each.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
}

/// How many times as much one takes as another. Compared within each round, so that what the machine does in a round falls on both.
pub struct Ratio {
    /// The middle of the rounds.
    pub middle: f64,
    /// Half of the rounds lie between these.
    pub low: f64,
    pub high: f64,
}

impl Ratio {
    pub fn of(each: &[f64], base: &[f64]) -> Self {
        let ratios: Vec<f64> = each.iter().zip(base).map(|(each, base)| each / base).collect();
        Ratio { middle: middle(&ratios), low: quantile(&ratios, 0.25), high: quantile(&ratios, 0.75) }
    }

    pub fn spread(&self) -> f64 {
        self.high - self.low
    }
}

/// Compares nginx, Hob and the peers.
pub async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let mut kinds = vec![
        Kind::Nginx(options.nginx.clone()),
        Kind::Hob { binary: options.hob.clone(), agent: "", watch: Watch::Usual, database_url: None },
    ];
    kinds.extend(options.peers.iter().map(|(name, command)| Kind::Peer(name.clone(), command.clone())));
    let mut gateways = Vec::new();
    for kind in kinds {
        gateways.push(Gateway::start(kind, engine.port).await);
    }
    let asked: Vec<_> = gateways.iter().map(|gateway| (gateway, Api::Chat)).collect();
    let mut lines = Vec::new();
    println!("{:<16}{:<14}{:>10}{:>14}{:>10}", "", "", "cpu us", "us an event", "x nginx");
    for (name, ask) in
        [("request", Ask::Whole), ("paced stream", Ask::Paced), ("burst stream", Ask::Streamed)]
    {
        let each = in_turns(&asked, ask, options.time).await;
        let events = if ask == Ask::Whole { 1.0 } else { (TOKENS + 2) as f64 };
        for (gateway, us) in gateways.iter().zip(&each) {
            let (gateway, of_event, ratio) = (&gateway.name, us / events, us / each[0]);
            println!("{name:<16}{gateway:<14}{us:>10.1}{of_event:>14.2}{ratio:>10.2}");
            lines.push(format!(
                "  {{\"ask\": \"{name}\", \"gateway\": {gateway:?}, \"us\": {us:.3}, \"x_nginx\": {ratio:.4}}}"
            ));
        }
    }
    if let Some(path) = &options.json {
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the file can be written");
        eprintln!("written to {}", path.display());
    }
}
