//! Requests that begin, end and fail at the same time, in many orders.

use async_trait::async_trait;
use hob_core::{EngineError, GenerateRequest, Generation, GenerationStream};
use hob_sync::{explore, thread};

use super::*;

/// A host that no test asks.
struct Silent(&'static str);

#[async_trait]
impl Engine for Silent {
    fn key(&self) -> &str {
        "vllm"
    }

    fn address(&self) -> &str {
        self.0
    }

    fn lists_every_model(&self) -> bool {
        false
    }

    async fn generate(&self, _: &GenerateRequest) -> Result<Generation, EngineError> {
        unreachable!("no test asks")
    }

    async fn stream(&self, _: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        unreachable!("no test asks")
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        unreachable!("no test asks")
    }

    async fn health(&self) -> bool {
        unreachable!("no test asks")
    }
}

const NEED: HostRequest<'static> = HostRequest { model: "m", conversation: 1, loyalty: CacheAffinity::None };

fn table(now: Instant) -> Arc<HostTable> {
    let host = |address| Arc::new(Silent(address)) as Arc<dyn Engine>;
    let hosts = ["http://a", "http://b"].map(host).to_vec();
    Arc::new(HostTable::new(hosts, BreakerOptions::default(), now))
}

fn address(slot: &HostSlot) -> String {
    slot.host().address().to_owned()
}

#[test]
fn a_host_on_trial_gets_one_request_while_another_host_works() {
    explore(|| {
        let now = Instant::now();
        let table = table(now);
        let mut first = table.take(NEED, &[], now).expect("a host");
        first.succeeded();
        let works = address(&first);
        drop(first);
        let take = |_| {
            let table = Arc::clone(&table);
            thread::spawn(move || table.take(NEED, &[], now).expect("a host"))
        };
        let threads: Vec<_> = (0..4).map(take).collect();
        // Collected first, because a slot that is dropped passes the trial on.
        let slots: Vec<HostSlot> =
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        assert!(slots.iter().filter(|slot| address(slot) != works).count() <= 1);
        drop(slots);
        assert_eq!(table.in_flight(), [0, 0]);
    });
}

/// How a request of these tests ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Complete,
    Unreachable,
    /// The first part of the answer arrives, and then the connection breaks.
    Broken,
    /// The caller leaves.
    Left,
}

fn finish(mut slot: HostSlot, end: End, now: Instant) {
    match end {
        End::Complete => {
            slot.responded();
            slot.succeeded();
        }
        End::Unreachable => slot.failed(Failure::Hard, now),
        End::Broken => {
            slot.responded();
            slot.failed(Failure::Soft, now);
        }
        End::Left => {}
    }
}

#[test]
fn slots_return_and_breakers_close_again_however_requests_end() {
    explore(|| {
        let now = Instant::now();
        let table = table(now);
        let ask = |ends: [End; 2]| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                for end in ends {
                    finish(table.take(NEED, &[], now).expect("a host"), end, now);
                }
            })
        };
        let threads = [
            ask([End::Unreachable, End::Complete]),
            ask([End::Left, End::Broken]),
            ask([End::Broken, End::Unreachable]),
        ];
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(table.in_flight(), [0, 0]);
        // Longer than any pause after so few failures.
        let later = Instant::now() + Duration::from_secs(60);
        for _ in 0..2 {
            for mut slot in table.take_all(later) {
                slot.succeeded();
            }
        }
        let slots = table.take_all(later);
        assert_eq!(slots.len(), 2);
        assert!(slots.iter().all(HostSlot::is_trusted), "both hosts are used as before");
    });
}

#[test]
fn a_host_that_is_removed_and_listed_again_keeps_the_count_of_its_requests() {
    explore(|| {
        let now = Instant::now();
        let table = table(now);
        let held: Vec<HostSlot> = table.take_all(now);
        assert_eq!(table.in_flight(), [1, 1]);
        let relist = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let known =
                    ["http://a", "http://b"].map(|address| table.known(address).expect("it is known"));
                table.replace(vec![Arc::clone(&known[0])]);
                table.replace(known.to_vec());
            })
        };
        let ask = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                for end in [End::Complete, End::Left] {
                    finish(table.take(NEED, &[], now).expect("a host"), end, now);
                }
            })
        };
        relist.join().expect("no panic");
        ask.join().expect("no panic");
        assert_eq!(table.in_flight(), [1, 1], "only the requests that are still active");
        drop(held);
        assert_eq!(table.in_flight(), [0, 0]);
    });
}
