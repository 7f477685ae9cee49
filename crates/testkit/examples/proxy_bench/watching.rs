//! What it costs that a Hob watches itself: the same load on one that records, counts and logs, and on one that does nothing of it.
//! Both run all the time and are asked in turns.

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask};
use crate::turns::in_turns;

/// Processor time of a request may grow by so much.
const MOST: f64 = 0.05;

pub async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let hob = |watch| Kind::Hob { binary: options.hob.clone(), agent: "", watch, database_url: None };
    let unwatched = Gateway::start(hob(Watch::Nothing), engine.port).await;
    let watched = Gateway::start(hob(Watch::Closely), engine.port).await;
    let mut lines = Vec::new();
    let mut worst = f64::MIN;
    println!("{:<10}{:>22}{:>22}{:>12}", "", "unwatched us/request", "watched us/request", "growth");
    for (name, ask) in [("whole", Ask::Whole), ("streamed", Ask::Streamed)] {
        let both = in_turns(&[(&unwatched, Api::Chat), (&watched, Api::Chat)], ask, options.time).await;
        let (without, with) = (both[0], both[1]);
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
