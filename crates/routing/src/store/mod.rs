//! Stores choices, knowledge and ratings. Does not know how learning works: the caller changes what was read, and the store
//! writes it back in the same transaction.

mod copy;
mod postgres;
mod sqlite;

use std::sync::Arc;
use std::time::SystemTime;

use hob_core::{Moment, RequestSource};
use hob_db::{DbResult, Storage};
use serde::Serialize;

use crate::records::{ClassRecord, Knowledge, Rating, RoutingDecision};

pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresRoutingStore};
pub use sqlite::{MIGRATIONS, SqliteRoutingStore};

/// Choices that are stored.
const MAX_DECISIONS: i64 = 10_000;

/// Ratings that are stored.
const MAX_RATINGS: i64 = 10_000;

/// Changes a stored choice and the record of its class.
pub type LearnFn<'a> = &'a mut dyn FnMut(&mut StoredDecision, &mut ClassRecord);

/// A choice, and its outcome so far.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDecision {
    pub decision: RoutingDecision,
    /// Whether the answer was complete.
    pub answered: bool,
    /// Whether the question was repeated soon.
    pub retried: bool,
    /// Whether a person rated the answer.
    pub rated: bool,
    /// The reward without the rating.
    pub implicit: Option<f64>,
    pub reward: Option<f64>,
}

/// A rating of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRating<'a> {
    pub run: &'a str,
    pub engine: &'a str,
    pub model: &'a str,
    pub rating: Rating,
    pub rated: SystemTime,
}

/// The number of ratings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Ratings {
    pub good: u64,
    pub bad: u64,
}

/// Every call blocks.
pub trait RoutingStore: Send + Sync {
    /// Saves a choice, and counts it as a try of the model. Only the last ten thousand are stored; old ones may be deleted later.
    fn save(&self, decision: &RoutingDecision) -> DbResult<()>;

    /// Deletes a choice, because another model has answered. It stays a try.
    fn withdraw(&self, run: &str) -> DbResult<()>;

    /// The run of the last choice for the same question from the same source since a moment.
    fn asked_before(&self, decision: &RoutingDecision, since: SystemTime) -> DbResult<Option<String>>;

    /// The stored choice of a run, if any.
    fn find(&self, run: &str) -> DbResult<Option<StoredDecision>>;

    /// The last choice with a complete answer since a moment, except some sources and runs.
    fn last_answered(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<StoredDecision>>;

    /// Changes a choice and the record of its class with `learn`, in one transaction. Returns whether there is such a choice.
    fn learn(&self, run: &str, learn: LearnFn<'_>) -> DbResult<bool>;

    /// Saves a rating, which replaces an earlier one of the same answer. If it differs, `learn` changes the choice and the record
    /// of its class in the same transaction. Returns whether there is such a choice. Only the last ten thousand ratings are
    /// stored.
    fn rate(&self, new: &NewRating<'_>, learn: LearnFn<'_>) -> DbResult<bool>;

    fn ratings(&self) -> DbResult<Ratings>;

    fn knowledge(&self) -> DbResult<Knowledge>;

    fn count(&self) -> DbResult<u64>;

    /// Deletes the knowledge and the choices, and returns the number of choices. Ratings stay.
    fn reset(&self) -> DbResult<u64>;
}

/// The store in a database, which is created if necessary.
pub(crate) fn open(storage: &Storage) -> DbResult<Arc<dyn RoutingStore>> {
    Ok(match storage {
        Storage::Sqlite(database) => Arc::new(SqliteRoutingStore::new(database.open()?)),
        Storage::Postgres(database) => Arc::new(PostgresRoutingStore::new(database.clone())),
    })
}

#[cfg(test)]
mod tests;
