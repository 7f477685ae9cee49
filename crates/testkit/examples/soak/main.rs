//! Mixed load on one `hob serve` for hours: does it need more and more of something?
//!
//! `soak --hob PATH [--minutes N] [--out DIRECTORY]`, best called by `./dev soak`. It prints a table of what was measured every ten
//! seconds, and how much each figure grows in an hour after the warm-up. It fails if a request fails, if none ends between two samples,
//! or if a figure surely grows by more than its bound.

#![expect(clippy::expect_used, reason = "a soak that cannot set itself up should fail loudly")]

mod engine;
mod figures;
mod http;
mod load;
mod server;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hob_testkit::{Gateway, GatewayScript};

use figures::{Figures, Sample};
use load::Load;
use server::Server;

/// Between two samples.
const STEP: Duration = Duration::from_secs(10);

struct Options {
    hob: PathBuf,
    time: Duration,
    out: PathBuf,
}

fn parse(arguments: &[String]) -> Options {
    let usage = "soak --hob PATH [--minutes N] [--out DIRECTORY]";
    let mut options = Options {
        hob: PathBuf::new(),
        time: Duration::from_secs(7200),
        out: PathBuf::from("target/reliability"),
    };
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { panic!("{usage}") };
        match flag.as_str() {
            "--hob" => options.hob = value.into(),
            "--minutes" => {
                options.time = Duration::from_secs_f64(60.0 * value.parse::<f64>().expect("--minutes N"));
            }
            "--out" => options.out = value.into(),
            _ => panic!("{usage}"),
        }
    }
    options
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = parse(&arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let is_good = runtime.expect("a runtime").block_on(soak(&options));
    std::process::exit(i32::from(!is_good));
}

async fn soak(options: &Options) -> bool {
    let engine = engine::start().await;
    let gateway = Gateway::start(GatewayScript::default()).await;
    let mut server = Server::start(&options.hob, &engine.url(), &gateway.url());
    let load = Load::start(server.port, gateway);
    let began = Instant::now();
    let mut figures = Figures::default();
    println!("{}", Sample::HEAD);
    while began.elapsed() < options.time && server.is_running() {
        tokio::time::sleep(STEP).await;
        // What the stand-ins remember is no part of the figures, but would fill this machine.
        engine.forget();
        let (done, latencies) = load.take();
        let sample = Sample::of(&server, began.elapsed(), done, latencies);
        println!("{sample}");
        figures.add(sample);
    }
    let is_running = server.is_running();
    let failures = load.stop().await;
    for failure in failures.iter().take(20) {
        eprintln!("failed: {failure}");
    }
    let grown = figures.grown();
    let idle = figures.idle();
    figures.write(&options.out, failures.len() + idle);
    println!("\n{}", figures.table());
    println!("{} requests failed", failures.len());
    if idle > 0 {
        eprintln!("in {idle} of the samples, no request ended");
    }
    if !is_running {
        eprintln!("the server has ended:\n{}", server.log());
    }
    for figure in &grown {
        eprintln!("{figure} grows by more than its bound");
    }
    is_running && failures.is_empty() && grown.is_empty() && idle == 0
}
