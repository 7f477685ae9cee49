//! The store in PostgreSQL. Several processes learn at once.
//!
//! | file | content |
//! |---|---|
//! | `decisions` | choices, stored until their outcome is known |
//! | `knowledge` | knowledge, by class of questions and by model |
//! | `ratings` | ratings, also of answers whose model the router did not choose |
//!
//! A transaction locks the choice first and then its class, so that what several processes learn adds up and none waits for the
//! other in a circle.

mod decisions;
mod knowledge;
#[cfg(test)]
mod postgres_tests;
mod ratings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use hob_core::{Moment, RequestSource};
use hob_db::postgres::{PostgresDatabase, PostgresMigrations, PostgresTransaction, QueryResult};
use hob_db::{DbResult, Durability};

use super::{LearnFn, NewRating, Ratings, RoutingStore, StoredDecision};
use crate::records::{Knowledge, RoutingDecision};

/// The migrations of its tables.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "routing",
    steps: &[include_str!("../../../migrations/postgres/1_routing.sql")],
    usable_from: 0,
};

/// Choices between two deletions of old ones, which count all that are stored. So there may be this many more for each process.
const PRUNE_INTERVAL: u32 = 100;

#[derive(Clone)]
pub struct PostgresRoutingStore {
    database: PostgresDatabase,
    saved: Arc<AtomicU32>,
}

impl PostgresRoutingStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresRoutingStore { database, saved: Arc::default() }
    }
}

impl RoutingStore for PostgresRoutingStore {
    fn save(&self, decision: &RoutingDecision) -> DbResult<()> {
        let prunes = self.saved.fetch_add(1, Ordering::Relaxed).is_multiple_of(PRUNE_INTERVAL);
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            decisions::insert(transaction, decision)?;
            knowledge::lock_class(transaction, decision.class)?;
            knowledge::count_try(transaction, decision.class, &decision.model)?;
            if prunes { decisions::prune(transaction) } else { Ok(()) }
        })
    }

    fn withdraw(&self, run: &str) -> DbResult<()> {
        self.database.write_with(Durability::ProcessEnd, |transaction| decisions::delete(transaction, run))
    }

    fn asked_before(&self, decision: &RoutingDecision, since: SystemTime) -> DbResult<Option<String>> {
        self.database.read(|transaction| decisions::asked_before(transaction, decision, since))
    }

    fn find(&self, run: &str) -> DbResult<Option<StoredDecision>> {
        self.database.read(|transaction| decisions::find(transaction, run))
    }

    fn last_answered(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<StoredDecision>> {
        self.database
            .read(|transaction| decisions::last_answered(transaction, since, except_sources, except_runs))
    }

    fn learn(&self, run: &str, learn_fn: LearnFn<'_>) -> DbResult<bool> {
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            decisions::lock(transaction, run)?;
            learn(transaction, run, learn_fn)
        })
    }

    fn rate(&self, new: &NewRating<'_>, learn_fn: LearnFn<'_>) -> DbResult<bool> {
        self.database.write(|transaction| {
            // Two ratings of one choice at the same time: the second one replaces the first.
            decisions::lock(transaction, new.run)?;
            let before = ratings::replace(transaction, new)?;
            ratings::prune(transaction)?;
            // A repeated rating counts once.
            let is_news = before.as_deref() != Some(new.rating.as_str());
            learn(transaction, new.run, &mut |stored, record| {
                if is_news {
                    learn_fn(stored, record);
                }
            })
        })
    }

    fn ratings(&self) -> DbResult<Ratings> {
        self.database.read(ratings::count)
    }

    fn knowledge(&self) -> DbResult<Knowledge> {
        self.database.read(knowledge::read)
    }

    fn count(&self) -> DbResult<u64> {
        self.database.read(decisions::count)
    }

    fn reset(&self) -> DbResult<u64> {
        self.database.write(|transaction| {
            let forgotten = transaction.execute("DELETE FROM router_decision", &[])?;
            transaction.run_script("DELETE FROM router_class; DELETE FROM router_model")?;
            Ok(forgotten)
        })
    }
}

/// The choice must be locked.
fn learn(transaction: &mut PostgresTransaction<'_>, run: &str, learn_fn: LearnFn<'_>) -> QueryResult<bool> {
    let Some(mut stored) = decisions::find(transaction, run)? else { return Ok(false) };
    let mut record = knowledge::read_class(transaction, stored.decision.class)?;
    learn_fn(&mut stored, &mut record);
    decisions::update(transaction, &stored)?;
    knowledge::write_class(transaction, stored.decision.class, &record)?;
    Ok(true)
}
