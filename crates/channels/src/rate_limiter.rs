//! How fast somebody writes. Plain values: the time is passed in.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Senders whose pace is known. More are people who have not written for long, or somebody who makes up names.
const MOST_SENDERS: usize = 4_096;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Fine,
    /// The first message that is too fast: worth a word.
    JustTooFast,
    TooFast,
}

/// The paces of all senders: each has room for so many messages, which is filled up evenly within a minute.
pub(crate) struct Paces {
    per_minute: f64,
    senders: HashMap<String, Sender>,
}

struct Sender {
    /// Messages there is room for.
    room: f64,
    last: Instant,
    was_told: bool,
}

impl Paces {
    pub fn new(per_minute: usize) -> Self {
        Paces { per_minute: per_minute as f64, senders: HashMap::new() }
    }

    /// Takes note of a message.
    pub fn note(&mut self, sender: &str, now: Instant) -> Pace {
        if self.senders.len() >= MOST_SENDERS && !self.senders.contains_key(sender) {
            self.make_room(now);
        }
        let per_minute = self.per_minute;
        let known = self.senders.entry(sender.to_owned()).or_insert(Sender {
            room: per_minute,
            last: now,
            was_told: false,
        });
        let waited = now.saturating_duration_since(known.last).as_secs_f64() / MINUTE.as_secs_f64();
        known.room = (known.room + waited * per_minute).min(per_minute);
        known.last = now;
        if known.room >= 1.0 {
            known.room -= 1.0;
            known.was_told = false;
            return Pace::Fine;
        }
        if std::mem::replace(&mut known.was_told, true) { Pace::TooFast } else { Pace::JustTooFast }
    }

    /// Forgets those who have all their room again and, if there is nobody like that, whoever wrote the longest time ago.
    fn make_room(&mut self, now: Instant) {
        self.senders.retain(|_, sender| now.saturating_duration_since(sender.last) < MINUTE);
        if self.senders.len() >= MOST_SENDERS {
            let oldest =
                self.senders.iter().min_by_key(|(_, sender)| sender.last).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                self.senders.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn somebody_too_fast_is_told_once_and_others_are_not_concerned() {
        let now = Instant::now();
        let mut paces = Paces::new(3);
        let course: Vec<Pace> = (0..6).map(|_| paces.note("ann", now)).collect();
        assert_eq!(
            course,
            [Pace::Fine, Pace::Fine, Pace::Fine, Pace::JustTooFast, Pace::TooFast, Pace::TooFast]
        );
        assert_eq!(paces.note("bob", now), Pace::Fine);
        let later = now + Duration::from_secs(20);
        assert_eq!(paces.note("ann", later), Pace::Fine, "a third of a minute is room for one");
        assert_eq!(paces.note("ann", later), Pace::JustTooFast, "told again, because it was fine in between");
        let long_after = now + Duration::from_secs(3_600);
        let course: Vec<Pace> = (0..4).map(|_| paces.note("ann", long_after)).collect();
        assert_eq!(course[2..], [Pace::Fine, Pace::JustTooFast], "no more room than for a minute");
    }

    #[tokio::test]
    async fn made_up_names_take_no_more_than_their_share_of_memory() {
        let now = Instant::now();
        let mut paces = Paces::new(1);
        for number in 0..2 * MOST_SENDERS as u64 {
            paces.note(&number.to_string(), now + Duration::from_millis(number));
        }
        assert_eq!(paces.senders.len(), MOST_SENDERS);
        assert_eq!(paces.note("new", now + 2 * MINUTE), Pace::Fine);
        assert!(paces.senders.len() < MOST_SENDERS, "those who rested are forgotten together");
    }
}
