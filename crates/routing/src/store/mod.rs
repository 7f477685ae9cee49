//! Where choices, what was learnt from them, and ratings are stored. Does not know how learning works: the caller changes what was
//! read, and the store writes it back in the same transaction.

mod sqlite;

use std::sync::Arc;
use std::time::SystemTime;

use hob_core::{Moment, RequestSource};
use hob_db::{DatabaseError, LazyDatabase};
use serde::Serialize;

use crate::records::{ClassRecord, Knowledge, Rating, RoutingDecision};

pub use sqlite::{MIGRATIONS, SqliteRoutingStore};

/// Changes what is stored of a choice and of its class.
pub type LearnFn<'a> = &'a mut dyn FnMut(&mut StoredDecision, &mut ClassRecord);

/// A choice, and what came of it so far.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredDecision {
    pub decision: RoutingDecision,
    /// Whether the model's answer came to its end.
    pub answered: bool,
    /// Whether the same question was asked again soon after.
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

/// How many answers were rated, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Ratings {
    pub good: u64,
    pub bad: u64,
}

/// Stores what routing decides and learns. Everything blocks.
pub trait RoutingStore: Send + Sync {
    /// Saves a choice, and counts it as a try of the model. Only the last ten thousand are stored.
    fn save(&self, decision: &RoutingDecision) -> Result<(), DatabaseError>;

    /// Deletes a choice, because another model has answered. It stays a try.
    fn withdraw(&self, run: &str) -> Result<(), DatabaseError>;

    /// The run of the last choice since a moment for the same question from the same source; `None` where there is none.
    fn asked_before(
        &self,
        decision: &RoutingDecision,
        since: SystemTime,
    ) -> Result<Option<String>, DatabaseError>;

    /// The choice that was made for a run; `None` where there was none, or it is no longer stored.
    fn find(&self, run: &str) -> Result<Option<StoredDecision>, DatabaseError>;

    /// The last choice since a moment whose answer came to its end, without those of some sources and of some runs.
    fn last_answered(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> Result<Option<StoredDecision>, DatabaseError>;

    /// Has `learn` change what is stored of a choice and of its class, in one transaction. Returns whether there is such a choice.
    fn learn(&self, run: &str, learn: LearnFn<'_>) -> Result<bool, DatabaseError>;

    /// Saves a rating in the place of an earlier one of the same answer. Where it differs from that, `learn` changes what is stored
    /// of the choice and of its class, in the same transaction. Returns whether there is such a choice. Only the last ten thousand
    /// ratings are stored.
    fn rate(&self, new: &NewRating<'_>, learn: LearnFn<'_>) -> Result<bool, DatabaseError>;

    /// The number of good and of bad ratings.
    fn ratings(&self) -> Result<Ratings, DatabaseError>;

    /// Everything that was learnt.
    fn knowledge(&self) -> Result<Knowledge, DatabaseError>;

    /// The number of choices that are stored.
    fn count(&self) -> Result<u64, DatabaseError>;

    /// Deletes what was learnt and the choices it was learnt from, and returns how many of those there were. Ratings stay.
    fn reset(&self) -> Result<u64, DatabaseError>;
}

/// The store in a database, which is created where there is none.
pub(crate) fn open(database: &LazyDatabase) -> Result<Arc<dyn RoutingStore>, DatabaseError> {
    Ok(Arc::new(SqliteRoutingStore::new(database.open()?)))
}

/// The same where there is a database; `None` where there is none. Creates nothing.
pub(crate) fn find(database: &LazyDatabase) -> Result<Option<Arc<dyn RoutingStore>>, DatabaseError> {
    let found = database.find()?;
    Ok(found.map(|database| Arc::new(SqliteRoutingStore::new(database)) as Arc<dyn RoutingStore>))
}

#[cfg(test)]
mod tests;
