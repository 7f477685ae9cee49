//! What named keys cost: the same load on a Hob without keys, and on one where every request has a key with every kind of limit. Both run
//! all the time and are asked in turns.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask};
use crate::turns::in_turns;

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

pub async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let hob =
        || Kind::Hob { binary: options.hob.clone(), agent: "", watch: Watch::Usual, database_url: None };
    let plain = Gateway::start(hob(), engine.port).await;
    let directory = tempfile::tempdir().expect("a directory");
    let key = create_key(&options.hob, directory.path());
    let keyed = Gateway::start_in(directory, hob(), engine.port).await.asked_with(key);
    let mut lines = Vec::new();
    let mut worst = f64::MIN;
    println!("{:<16}{:>18}{:>18}{:>10}", "", "without keys, us", "with a key, us", "ratio");
    for (name, ask) in
        [("request", Ask::Whole), ("paced stream", Ask::Paced), ("burst stream", Ask::Streamed)]
    {
        let both = in_turns(&[(&plain, Api::Chat), (&keyed, Api::Chat)], ask, options.time).await;
        let (without, with) = (both[0], both[1]);
        let ratio = with / without;
        worst = worst.max(ratio);
        println!("{name:<16}{without:>18.1}{with:>18.1}{ratio:>10.3}");
        lines.push(format!(
            "  {{\"ask\": \"{name}\", \"without_us\": {without:.3}, \"with_us\": {with:.3}, \"ratio\": {ratio:.4}}}"
        ));
    }
    if let Some(path) = &options.json {
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).expect("the file can be written");
        eprintln!("written to {}", path.display());
    }
    assert!(worst <= MOST, "a request with a key takes {worst:.2} times the processor time");
}

/// The secret of a member's key with limits, in this home directory.
fn create_key(hob: &Path, home: &Path) -> String {
    let mut command = Command::new(hob);
    command.args(["key", "create", "bench"]).args(LIMITS).env("HOB_HOME", home).env_remove("HOB_CONFIG");
    command.env_remove("HOB_DATABASE_URL").stdin(Stdio::null());
    let ran = command.output().expect("hob starts");
    let secret = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    assert!(ran.status.success() && !secret.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    secret
}
