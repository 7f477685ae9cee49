//! What the other APIs cost beside chat completions: the same question in the form of each, to one Hob.
//!
//! Each is asked in turns with chat completions. The engine answers at once.

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask};
use crate::turns::in_turns;

/// Processor time of a request may be so many times that of chat completions.
const MOST: f64 = 1.2;

pub async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let kind = Kind::Hob { binary: options.hob.clone(), agent: "", watch: Watch::Usual, database_url: None };
    let hob = Gateway::start(kind, engine.port).await;
    let mut lines = Vec::new();
    let mut too_slow = Vec::new();
    println!("{:<14}{:<10}{:>14}{:>18}{:>10}", "", "", "us/request", "chat us/request", "x chat");
    for api in &options.apis {
        for (name, ask) in [("whole", Ask::Whole), ("streamed", Ask::Streamed)] {
            let both = in_turns(&[(&hob, Api::Chat), (&hob, *api)], ask, options.time).await;
            let (chat, other) = (both[0], both[1]);
            let ratio = other / chat;
            let api = api.name();
            println!("{api:<14}{name:<10}{other:>14.1}{chat:>18.1}{ratio:>10.2}");
            lines.push(format!(
                "  {{\"api\": \"{api}\", \"ask\": \"{name}\", \"us\": {other:.3}, \"chat_us\": {chat:.3}, \"ratio\": {ratio:.4}}}"
            ));
            if ratio > MOST {
                too_slow.push(format!("{api} {name}"));
            }
        }
    }
    if let Some(path) = &options.json {
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the file can be written");
        eprintln!("written to {}", path.display());
    }
    assert!(
        too_slow.is_empty(),
        "more than {MOST} times the cost of chat completions: {}",
        too_slow.join(", ")
    );
}
