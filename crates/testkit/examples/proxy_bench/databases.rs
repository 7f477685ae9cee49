//! The cost of a request with PostgreSQL against SQLite: the same load on two Hobs that differ in nothing else, asked in turns.

use hob_testkit::{PostgresServer, TestDatabase};

use crate::Options;
use crate::gateway::{Gateway, Kind, Watch};
use crate::load::{Api, Ask};
use crate::turns::in_turns;

/// Processor time of a request with PostgreSQL may be so many times that with SQLite.
const MOST: f64 = 1.1;

pub async fn measure(options: &Options) {
    // Without a URL, a database of the server of the tests.
    let test_database = match options.database_url {
        Some(_) => None,
        None => Some(PostgresServer::shared().create_database()),
    };
    let url = options.database_url.clone().or_else(|| test_database.as_ref().map(TestDatabase::url));
    let engine = Gateway::start(Kind::StandIn, 0).await;
    let hob = |database_url| Kind::Hob {
        binary: options.hob.clone(),
        agent: "",
        watch: Watch::Usual,
        database_url,
    };
    let sqlite = Gateway::start(hob(None), engine.port).await;
    let postgres = Gateway::start(hob(url), engine.port).await;
    let mut worst = f64::MIN;
    println!("| request | SQLite, µs | PostgreSQL, µs | ratio |");
    println!("|---|---|---|---|");
    for (name, ask) in [("whole", Ask::Whole), ("streamed", Ask::Streamed)] {
        let both = in_turns(&[(&sqlite, Api::Chat), (&postgres, Api::Chat)], ask, options.time).await;
        let ratio = both[1] / both[0];
        worst = worst.max(ratio);
        println!("| {name} | {:.1} | {:.1} | {ratio:.3} |", both[0], both[1]);
    }
    // The Hobs end before their database is dropped.
    drop((sqlite, postgres));
    assert!(worst <= MOST, "a request with PostgreSQL takes {worst:.2} times the processor time");
}
