//! What named keys cost: the same load on a Hob without keys, on one where every request has a key, and on one where the key has every
//! kind of limit. All are the same build, run all the time, and are asked in turns.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask};
use crate::turns::{Ratio, middle, rounds};

/// Processor time of a request with a key may be so many times that without keys.
const MOST: f64 = 1.1;

/// Every kind of limit, and none that the load reaches.
const LIMITS: [&str; 10] = [
    "--requests-per-minute",
    "1000000000",
    "--tokens-per-minute",
    "1000000000000",
    "--parallel",
    "100000",
    "--budget",
    "1000000M tokens/month",
    "--budget",
    "1000000 USD/month",
];

/// A wider spread of the rounds says more about the machine than about keys.
const MOST_SPREAD: f64 = 0.1;

pub async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let plain = Gateway::start(hob(options), engine.port).await;
    let unlimited = with_key(options, engine.port, &[]).await;
    let limited = with_key(options, engine.port, &LIMITS).await;
    let mut lines = Vec::new();
    let mut worst = f64::MIN;
    println!(
        "{:<16}{:>18}{:>24}{:>24}",
        "processor time", "without keys, us", "key, ratio", "key and limits, ratio"
    );
    for (name, ask) in
        [("request", Ask::Whole), ("paced stream", Ask::Paced), ("burst stream", Ask::Streamed)]
    {
        let asked = [&plain, &unlimited, &limited].map(|gateway| (gateway, Api::Chat));
        let each = rounds(&asked, ask, options.time).await;
        let without = middle(&each[0]);
        let (of_key, of_limits) = (Ratio::of(&each[1], &each[0]), Ratio::of(&each[2], &each[0]));
        worst = worst.max(of_limits.middle);
        println!("{name:<16}{without:>18.1}{:>24}{:>24}", shown(&of_key), shown(&of_limits));
        if of_limits.spread() > MOST_SPREAD {
            eprintln!(
                "{name}: the rounds differ much. Run it again on a quieter machine, or with more seconds"
            );
        }
        lines.push(format!(
            "  {{\"ask\": \"{name}\", \"without_us\": {without:.3}, \"key\": {}, \"key_and_limits\": {}}}",
            json(&of_key),
            json(&of_limits)
        ));
    }
    if let Some(path) = &options.json {
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the file can be written");
        eprintln!("written to {}", path.display());
    }
    assert!(worst <= MOST, "a request with a key and limits takes {worst:.2} times the processor time");
}

/// The middle of the rounds, and the range in which half of them lie.
fn shown(Ratio { middle, low, high }: &Ratio) -> String {
    format!("{middle:.3} ({low:.3} to {high:.3})")
}

fn json(Ratio { middle, low, high }: &Ratio) -> String {
    format!("{{\"ratio\": {middle:.4}, \"low\": {low:.4}, \"high\": {high:.4}}}")
}

fn hob(options: &Options) -> Kind {
    Kind::Hob { binary: options.hob.clone(), agent: "", watch: Watch::Usual, database_url: None }
}

/// A Hob that is asked with a key with these limits.
async fn with_key(options: &Options, engine: u16, limits: &[&str]) -> Gateway {
    let directory = tempfile::tempdir().expect("a directory");
    let key = create_key(&options.hob, directory.path(), limits);
    Gateway::start_in(directory, hob(options), engine).await.asked_with(key)
}

/// The secret of a member's key with these limits, in this home directory.
fn create_key(hob: &Path, home: &Path, limits: &[&str]) -> String {
    let mut command = Command::new(hob);
    command.args(["key", "create", "bench"]).args(limits).env("HOB_HOME", home).env_remove("HOB_CONFIG");
    command.env_remove("HOB_DATABASE_URL").stdin(Stdio::null());
    let ran = command.output().expect("hob starts");
    let secret = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    assert!(ran.status.success() && !secret.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    secret
}
