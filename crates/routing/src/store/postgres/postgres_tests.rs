//! Several processes that learn on one server.

use std::thread;

use hob_testkit::PostgresServer;

use super::*;
use crate::records::{ModelRecord, Rating};
use crate::store::tests::{connect, decision, rating_of};

#[test]
fn what_several_processes_learn_adds_up() {
    const THREADS: u64 = 8;
    const EACH: u64 = 20;
    let created = PostgresServer::shared().create_database();
    let pools = [(); 2].map(|()| PostgresRoutingStore::new(connect(&created)));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let routing = &pools[thread as usize % 2];
            scope.spawn(move || {
                for number in 0..EACH {
                    // Every second choice is for another model, so that rows are also inserted at the same time.
                    let model = if number.is_multiple_of(2) { "a" } else { "b" };
                    let run = format!("{thread}-{number}");
                    let chosen = RoutingDecision { model: model.into(), ..decision(&run, number) };
                    routing.save(&chosen).expect("saved");
                    let found = routing.learn(&run, &mut |_, record| {
                        let known = record.models.entry(model.to_owned()).or_default();
                        known.samples += 1;
                        known.rewards += 1.0;
                        record.recent.push(1.0);
                    });
                    assert!(found.expect("learnt"));
                }
            });
        }
    });
    let knowledge = pools[0].knowledge().expect("read");
    let class = &knowledge[&decision("r", 0).class];
    let half = THREADS * EACH / 2;
    let learnt = ModelRecord { tries: half, samples: half, rewards: half as f64, ..ModelRecord::default() };
    assert_eq!(class.models, [("a".to_owned(), learnt), ("b".to_owned(), learnt)].into());
    assert_eq!(class.recent.len() as u64, THREADS * EACH);
    assert_eq!(pools[1].count().expect("counted"), THREADS * EACH);
}

#[test]
fn one_answer_that_several_processes_rate_alike_counts_once() {
    let created = PostgresServer::shared().create_database();
    let pools = [(); 2].map(|()| PostgresRoutingStore::new(connect(&created)));
    pools[0].save(&decision("r", 0)).expect("saved");
    thread::scope(|scope| {
        for thread in 0..8 {
            let routing = &pools[thread % 2];
            scope.spawn(move || {
                let new = rating_of("r", Rating::Good, 1);
                let learn = &mut |stored: &mut StoredDecision, record: &mut crate::ClassRecord| {
                    assert!(stored.rated);
                    record.recent.push(1.0);
                };
                assert!(routing.rate(&new, learn).expect("rated"));
            });
        }
    });
    let knowledge = pools[0].knowledge().expect("read");
    assert_eq!(knowledge[&decision("r", 0).class].recent, [1.0]);
    assert_eq!(pools[0].ratings().expect("counted"), Ratings { good: 1, bad: 0 });
}

#[test]
fn a_name_with_a_null_character_is_saved_and_found() {
    let created = PostgresServer::shared().create_database();
    let routing = PostgresRoutingStore::new(connect(&created));
    routing.save(&RoutingDecision { model: "m\0".into(), ..decision("r\0", 0) }).expect("saved");
    let found = routing.learn("r\0", &mut |_, record| {
        record.models.insert("other\0".into(), ModelRecord::default());
    });
    assert!(found.expect("learnt"));
    assert!(routing.rate(&rating_of("r\0", Rating::Bad, 1), &mut |_, _| {}).expect("rated"));
    let stored = routing.find("r\0").expect("looked").expect("found");
    assert_eq!((&*stored.decision.run, stored.decision.model.as_str(), stored.rated), ("r\0", "m\0", true));
    let knowledge = routing.knowledge().expect("read");
    assert!(knowledge[&decision("r", 0).class].models.contains_key("other\0"), "{knowledge:?}");
    routing.withdraw("r\0").expect("withdrawn");
    assert_eq!(routing.count().expect("counted"), 0);
}
