//! The store in SQLite.
//!
//! | file | content |
//! |---|---|
//! | `decisions` | choices, stored until their outcome is known |
//! | `knowledge` | knowledge, by class of questions and by model |
//! | `ratings` | ratings, also of answers whose model the router did not choose |

mod decisions;
mod knowledge;
mod ratings;

use std::time::SystemTime;

use hob_core::{Moment, RequestSource};
use hob_db::{Database, DbResult, Durability, Migrations};
use rusqlite::Connection;

use super::{LearnFn, NewRating, Ratings, RoutingStore, StoredDecision};
use crate::records::{Knowledge, RoutingDecision};

/// The migrations of its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "routing",
    steps: &[
        include_str!("../../../migrations/1_routing.sql"),
        include_str!("../../../migrations/2_outcomes.sql"),
    ],
    legacy_versions: &[4, 9],
};

#[derive(Clone)]
pub struct SqliteRoutingStore {
    database: Database,
}

impl SqliteRoutingStore {
    pub fn new(database: Database) -> Self {
        SqliteRoutingStore { database }
    }
}

impl RoutingStore for SqliteRoutingStore {
    fn save(&self, decision: &RoutingDecision) -> DbResult<()> {
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            knowledge::count_try(transaction, decision.class, &decision.model)?;
            decisions::insert(transaction, decision)?;
            decisions::prune(transaction)
        })
    }

    fn withdraw(&self, run: &str) -> DbResult<()> {
        self.database.write_with(Durability::ProcessEnd, |transaction| decisions::delete(transaction, run))
    }

    fn asked_before(&self, decision: &RoutingDecision, since: SystemTime) -> DbResult<Option<String>> {
        self.database.read(|connection| decisions::asked_before(connection, decision, since))
    }

    fn find(&self, run: &str) -> DbResult<Option<StoredDecision>> {
        self.database.read(|connection| decisions::find(connection, run))
    }

    fn last_answered(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<StoredDecision>> {
        self.database
            .read(|connection| decisions::last_answered(connection, since, except_sources, except_runs))
    }

    fn learn(&self, run: &str, learn_fn: LearnFn<'_>) -> DbResult<bool> {
        self.database.write_with(Durability::ProcessEnd, |transaction| learn(transaction, run, learn_fn))
    }

    fn rate(&self, new: &NewRating<'_>, learn_fn: LearnFn<'_>) -> DbResult<bool> {
        self.database.write(|transaction| {
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
            let forgotten = transaction.execute("DELETE FROM router_decision", [])?;
            transaction.execute_batch("DELETE FROM router_class; DELETE FROM router_model")?;
            Ok(forgotten as u64)
        })
    }
}

fn learn(transaction: &Connection, run: &str, learn_fn: LearnFn<'_>) -> rusqlite::Result<bool> {
    let Some(mut stored) = decisions::find(transaction, run)? else { return Ok(false) };
    let mut record = knowledge::read_class(transaction, stored.decision.class)?;
    learn_fn(&mut stored, &mut record);
    decisions::update(transaction, &stored)?;
    knowledge::write_class(transaction, stored.decision.class, &record)?;
    Ok(true)
}

#[cfg(test)]
mod migrations_tests;
