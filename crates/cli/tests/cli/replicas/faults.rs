//! Replicas that are killed and a database that restarts, at random moments of the load.

use std::time::Instant;

use fastrand::Rng;

use super::cluster::{Cluster, REPLICAS};
use super::load::Load;

#[derive(Debug, Clone, Copy)]
enum Fault {
    KillReplica,
    /// The database is stopped as by an operator.
    RestartDatabase,
    /// The database crashes, and a replica while it is away.
    CrashDatabase,
}

/// Chats between two steps.
const PAUSE: std::ops::Range<usize> = 8..25;

/// When the database was away.
pub type Outage = (Instant, Instant);

/// At most one replica is down at a time, so that the others can answer.
pub async fn inject(cluster: &mut Cluster, load: &Load, rounds: usize, rng: &mut Rng) -> Vec<Outage> {
    let mut outages = Vec::new();
    for _ in 0..rounds {
        let mut faults = [
            Fault::KillReplica,
            Fault::KillReplica,
            Fault::KillReplica,
            Fault::RestartDatabase,
            Fault::CrashDatabase,
        ];
        rng.shuffle(&mut faults);
        for fault in faults {
            chats(load, rng).await;
            let replica = rng.usize(..REPLICAS);
            eprintln!("fault: {fault:?}, replica {replica}");
            match fault {
                Fault::KillReplica => {
                    cluster.kill_replica(replica).await;
                    chats(load, rng).await;
                    cluster.start_replica(replica).await;
                }
                Fault::RestartDatabase => {
                    let began = Instant::now();
                    tokio::task::block_in_place(|| cluster.postgres.stop());
                    chats(load, rng).await;
                    tokio::task::block_in_place(|| cluster.postgres.start_again());
                    outages.push((began, Instant::now()));
                }
                Fault::CrashDatabase => {
                    let began = Instant::now();
                    tokio::task::block_in_place(|| cluster.postgres.kill());
                    chats(load, rng).await;
                    cluster.kill_replica(replica).await;
                    chats(load, rng).await;
                    tokio::task::block_in_place(|| cluster.postgres.start_again());
                    outages.push((began, Instant::now()));
                    cluster.start_replica(replica).await;
                }
            }
        }
    }
    chats(load, rng).await;
    outages
}

/// Waits for some more chats.
async fn chats(load: &Load, rng: &mut Rng) {
    let mut chats = load.chats.subscribe();
    let enough = *chats.borrow() + rng.usize(PAUSE);
    chats.wait_for(|count| *count >= enough).await.expect("the load lasts");
}
