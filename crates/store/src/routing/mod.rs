//! What the routing of questions to models has learnt, and what people say of answers.
//!
//! | file | what |
//! |---|---|
//! | `decisions` | choices that were made, kept until it is known what came of them |
//! | `knowledge` | what was learnt, by class of questions and by model |
//! | `feedback` | what people say of answers, whoever chose the model |
//!
//! How learning works is not known here: whoever learns changes what was read, and it is written back in the same transaction.

mod decisions;
mod feedback;
mod knowledge;

use std::time::SystemTime;

use hob_core::RequestSource;
use hob_core::time::Moment;
use hob_db::{Database, DatabaseError, Durability, Migrations};
use hob_routing::{ClassRecord, Knowledge, RoutingDecision};
use rusqlite::Connection;
use rusqlite::types::Type;

pub use decisions::Kept;
pub use feedback::{NewRating, Ratings};

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "routing",
    steps: &[
        include_str!("../../migrations/routing/1_routing.sql"),
        include_str!("../../migrations/routing/2_outcomes.sql"),
    ],
    legacy_versions: &[4, 9],
};

/// What routing keeps in a database. Cheap to clone. Everything blocks.
#[derive(Clone)]
pub struct Routing {
    database: Database,
}

impl Routing {
    pub fn new(database: Database) -> Self {
        Routing { database }
    }

    /// Keeps a choice, and counts it as a try of the model. Only the last ten thousand are kept.
    pub fn keep(&self, decision: &RoutingDecision) -> Result<(), DatabaseError> {
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            knowledge::count_try(transaction, decision.class, &decision.model)?;
            decisions::insert(transaction, decision)?;
            decisions::prune(transaction)
        })
    }

    /// Keeps a choice no longer, because another model has answered. It stays a try.
    pub fn withdraw(&self, run: &str) -> Result<(), DatabaseError> {
        self.database.write_with(Durability::ProcessEnd, |transaction| decisions::delete(transaction, run))
    }

    /// The last choice since a moment for the question of another one, asked by the same way; `None` where it was not asked.
    pub fn asked_before(
        &self,
        decision: &RoutingDecision,
        since: SystemTime,
    ) -> Result<Option<String>, DatabaseError> {
        self.database.read(|connection| decisions::asked_before(connection, decision, since))
    }

    /// The choice that was made for a run; `None` where there was none, or it is kept no longer.
    pub fn find(&self, run: &str) -> Result<Option<Kept>, DatabaseError> {
        self.database.read(|connection| decisions::find(connection, run))
    }

    /// The last choice since a moment whose answer came to its end, without those of some sources and of some runs.
    pub fn last_answered(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> Result<Option<Kept>, DatabaseError> {
        self.database
            .read(|connection| decisions::last_answered(connection, since, except_sources, except_runs))
    }

    /// Has `lesson` change what is kept of a choice and of its class; says whether there is such a choice.
    pub fn learn(
        &self,
        run: &str,
        lesson: impl FnOnce(&mut Kept, &mut ClassRecord),
    ) -> Result<bool, DatabaseError> {
        self.database.write_with(Durability::ProcessEnd, |transaction| learn(transaction, run, lesson))
    }

    /// Everything that was learnt.
    pub fn knowledge(&self) -> Result<Knowledge, DatabaseError> {
        self.database.read(knowledge::read)
    }

    /// How many choices are kept.
    pub fn decisions(&self) -> Result<u64, DatabaseError> {
        self.database.read(decisions::count)
    }

    /// Forgets what was learnt and the choices it was learnt from, and says how many of those there were. What people said
    /// stays.
    pub fn reset(&self) -> Result<u64, DatabaseError> {
        self.database.write(|transaction| {
            let forgotten = transaction.execute("DELETE FROM router_decision", [])?;
            transaction.execute_batch("DELETE FROM router_class; DELETE FROM router_model")?;
            Ok(forgotten as u64)
        })
    }
}

fn learn(
    transaction: &Connection,
    run: &str,
    lesson: impl FnOnce(&mut Kept, &mut ClassRecord),
) -> rusqlite::Result<bool> {
    let Some(mut kept) = decisions::find(transaction, run)? else { return Ok(false) };
    let mut record = knowledge::read_class(transaction, kept.decision.class)?;
    lesson(&mut kept, &mut record);
    decisions::update(transaction, &kept)?;
    knowledge::write_class(transaction, kept.decision.class, &record)?;
    Ok(true)
}

/// A value in a row that this Hob cannot have written.
fn odd(column: usize, kind: Type) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, kind, "not as Hob writes it".into())
}

#[cfg(test)]
mod migrations_tests;
#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;
