//! Subscribers come and go while events are published, in many orders.

use std::sync::atomic::AtomicUsize as Count;

use hob_sync::{explore, thread};

use super::*;

fn turn(turn: u32) -> Event {
    Event::AgentTurnStart { agent: String::new(), turn }
}

/// Counts the events of one turn.
fn counter(number: u32) -> (Arc<Count>, impl Fn(&PublishedEvent) + Send + Sync + 'static) {
    let heard = Arc::new(Count::new(0));
    let handler = {
        let heard = Arc::clone(&heard);
        move |published: &PublishedEvent| {
            if published.event == turn(number) {
                heard.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    (heard, handler)
}

#[test]
fn a_subscriber_hears_what_is_published_while_it_is_subscribed_and_nothing_later() {
    explore(|| {
        let bus = EventBus::new();
        let run: Arc<str> = "run".into();
        let start = |number: u32| {
            let (bus, run) = (bus.clone(), Arc::clone(&run));
            thread::spawn(move || {
                let (heard, handler) = counter(number);
                let subscription = match number {
                    0 => bus.subscribe(handler),
                    _ => bus.subscribe_run(Arc::clone(&run), handler),
                };
                assert!(bus.is_heard(&run));
                bus.publish(&run, turn(number));
                assert_eq!(heard.load(Ordering::Relaxed), 1, "it is subscribed");
                drop(subscription);
                bus.publish(&run, turn(number));
                assert_eq!(heard.load(Ordering::Relaxed), 1, "it is no longer subscribed");
            })
        };
        let threads: Vec<_> = (0..4).map(start).collect();
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert!(!bus.is_heard(&run), "no subscriber is left");
    });
}

/// Publishes an event when it is dropped.
struct Farewell(EventBus, Arc<str>);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.publish(&self.1, turn(99));
    }
}

#[test]
fn a_subscriber_that_publishes_while_it_leaves_blocks_nobody() {
    explore(|| {
        let bus = EventBus::new();
        let run: Arc<str> = "run".into();
        let (heard, handler) = counter(99);
        let listener = bus.subscribe(handler);
        let leave = {
            let (bus, run) = (bus.clone(), Arc::clone(&run));
            thread::spawn(move || {
                let farewell = Farewell(bus.clone(), Arc::clone(&run));
                drop(bus.subscribe_run(run, move |_| _ = &farewell));
            })
        };
        let publish = {
            let (bus, run) = (bus.clone(), Arc::clone(&run));
            thread::spawn(move || bus.publish(&run, turn(1)))
        };
        leave.join().expect("no panic");
        publish.join().expect("no panic");
        assert_eq!(heard.load(Ordering::Relaxed), 1, "the event of the one that left");
        drop(listener);
    });
}
