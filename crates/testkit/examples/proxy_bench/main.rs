//! The cost of a gateway: the same load directly to an engine, through nginx, through Hob, and through other given gateways.
//!
//! `proxy_bench --hob PATH --nginx PATH [--peer NAME=COMMAND]… [--seconds N] [--json FILE]`, best called by `./dev bench proxy`.
//! `proxy_bench turns --hob PATH --nginx PATH [--peer NAME=COMMAND]…` measures only processor time, in turns; `./dev bench proxy --cpu` calls it.
//! `proxy_bench watching --hob PATH` measures instead what telemetry, metrics and logs cost; `./dev bench telemetry` calls it.
//! `proxy_bench reports --hob PATH --record FILE` measures how long reports over a long record take; `./dev bench telemetry` calls it too.
//! `proxy_bench apis --hob PATH --api NAME|all` compares the cost of other APIs with that of chat completions; `./dev bench proxy --api NAME` calls it.
//! `proxy_bench keys --hob PATH` compares the cost with a named key that has limits to that without keys; `./dev bench proxy --keys` calls it.
//! `proxy_bench databases --hob PATH [--url URL]` compares the cost with PostgreSQL to that with SQLite; `./dev bench database cost` calls it.
//! `proxy_bench replicas --hob PATH --nginx PATH [--url URL]` compares three Hobs on one PostgreSQL to one of them; `./dev bench database
//! replicas` calls it.
//! The engine is a stand-in that answers at once, so all that is measured is the way. Everything runs on this machine, one
//! gateway at a time; a number counts as a ratio to nginx's in the same run.

#![expect(clippy::disallowed_methods, reason = "a bench starts programs with the environment it was given")]
#![expect(clippy::expect_used, reason = "a bench that cannot set itself up should fail loudly")]

mod apis;
mod databases;
mod gateway;
mod keys;
mod load;
mod replicas;
mod report;
mod reports;
mod stand_in;
mod turns;
mod watching;

use std::path::PathBuf;
use std::time::Duration;

use gateway::{Gateway, Kind, Watch};
use load::Api;
use report::{Measured, Report};

/// What was asked for on the command line.
pub struct Options {
    hob: PathBuf,
    nginx: PathBuf,
    /// Further gateways: a name and a shell command in which `{port}` and `{engine}` are filled in.
    peers: Vec<(String, String)>,
    /// How long each load runs.
    time: Duration,
    json: Option<PathBuf>,
    /// A database for `reports`.
    record: PathBuf,
    /// A database for `databases` and `replicas`.
    database_url: Option<String>,
    /// For `apis`: those to compare with chat completions.
    apis: Vec<Api>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("a runtime")
    };
    match arguments.split_first() {
        Some((first, _)) if first == "stand-in" => stand_in::run(),
        Some((first, rest)) if first == "watching" => runtime().block_on(watching::measure(&parse(rest))),
        Some((first, rest)) if first == "turns" => runtime().block_on(turns::measure(&parse(rest))),
        Some((first, rest)) if first == "apis" => runtime().block_on(apis::measure(&parse(rest))),
        Some((first, rest)) if first == "keys" => runtime().block_on(keys::measure(&parse(rest))),
        Some((first, rest)) if first == "databases" => runtime().block_on(databases::measure(&parse(rest))),
        Some((first, rest)) if first == "replicas" => runtime().block_on(replicas::measure(&parse(rest))),
        Some((first, rest)) if first == "reports" => runtime().block_on(reports::measure(&parse(rest))),
        _ => runtime().block_on(measure(&parse(&arguments))),
    }
}

fn parse(arguments: &[String]) -> Options {
    let usage = "proxy_bench --hob PATH --nginx PATH [--peer NAME=COMMAND]… [--seconds N] [--json FILE]";
    let mut options = Options {
        hob: PathBuf::new(),
        nginx: PathBuf::new(),
        peers: Vec::new(),
        time: Duration::from_secs(5),
        json: None,
        record: PathBuf::new(),
        database_url: None,
        apis: Vec::new(),
    };
    for pair in arguments.chunks(2) {
        let [flag, value] = pair else { panic!("{usage}") };
        match flag.as_str() {
            "--hob" => options.hob = value.into(),
            "--nginx" => options.nginx = value.into(),
            "--peer" => {
                let (name, command) = value.split_once('=').expect("--peer NAME=COMMAND");
                options.peers.push((name.to_owned(), command.to_owned()));
            }
            "--seconds" => options.time = Duration::from_secs_f64(value.parse().expect("--seconds N")),
            "--json" => options.json = Some(value.into()),
            "--api" => options.apis.extend(apis_named(value)),
            "--url" => options.database_url = Some(value.clone()),
            "--record" => options.record = value.into(),
            _ => panic!("{usage}"),
        }
    }
    options
}

/// The API of this name, or all of them but the one that they are compared with.
fn apis_named(name: &str) -> Vec<Api> {
    match Api::ALL.into_iter().find(|api| api.name() == name) {
        Some(api) => vec![api],
        None if name == "all" => Api::ALL.into_iter().filter(|api| *api != Api::Chat).collect(),
        None => panic!("--api is one of {} and all, not '{name}'", Api::ALL.map(Api::name).join(", ")),
    }
}

async fn measure(options: &Options) {
    let engine = Gateway::start(Kind::StandIn, 0).await;
    load::meant_for(engine.port);
    let mut report = Report::new(Measured::of(&engine, options.time).await);
    let mut kinds = vec![
        Kind::Nginx(options.nginx.clone()),
        Kind::Hob { binary: options.hob.clone(), agent: "", watch: Watch::Usual, database_url: None },
        Kind::Hob { binary: options.hob.clone(), agent: "simple", watch: Watch::Usual, database_url: None },
    ];
    kinds.extend(options.peers.iter().map(|(name, command)| Kind::Peer(name.clone(), command.clone())));
    for kind in kinds {
        let (is_peer, time) = (matches!(kind, Kind::Peer(..)), options.time);
        let gateway = Gateway::start(kind, engine.port).await;
        let name = gateway.name.clone();
        eprintln!("measuring {name}");
        // In a task, so that a peer that cannot stand the load does not end the bench for all.
        match tokio::spawn(async move { Measured::of(&gateway, time).await }).await {
            Ok(measured) => report.add(measured),
            Err(_) if is_peer => eprintln!("{name} did not get through (see above) and is left out"),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
    println!("{}", report.table());
    if let Some(path) = &options.json {
        std::fs::write(path, report.json()).expect("the file can be written");
        eprintln!("written to {}", path.display());
    }
}
