//! Chooses the model for a question if the caller leaves it to Hob, and learns from the outcomes.
//!
//! The policies are pure functions of models, measurements and a random number. The [`Router`] supplies those and records every
//! choice. [`RoutingService`] stores choices, outcomes and ratings, and learns from each in one transaction, so that all
//! processes with one database learn together. No answer waits for the database: a thread writes, and a policy uses what
//! was read last.
//!
//! | file | content |
//! |---|---|
//! | `router` | chooses a model for a request |
//! | `choose` | which models can answer a question, and the choice among them |
//! | `types` | the contract of a policy, and its input |
//! | `records` | stored choices, and the knowledge learned from them |
//! | `heuristic` | the policy that follows rules |
//! | `grpo` | the policy that learns |
//! | `model_facts` | properties of a model, from the list of its engine or from its name |
//! | `question_features`, `question_class` | features of a question, and its class |
//! | `question_hash` | recognises a repeated question |
//! | `in_flight` | questions that models are answering |
//! | `outcome` | reports how an answer ended |
//! | `reward` | how good an answer was, without reading it |
//! | `reward_updates` | learns from an outcome, a repeated question, and a rating |
//! | `feedback` | rates answers, also those whose model the router did not choose |
//! | `service`, `cache`, `writer` | the service, what was read last, and the thread that writes |
//! | `store` | the tables |
//!
//! Knows no engine, no agent, no configuration file and no HTTP server. [`Measurements`] supplies speeds and prices, and
//! [`RecordedAnswers`] the answers of other models.

mod cache;
mod choose;
mod feedback;
mod grpo;
mod heuristic;
mod in_flight;
mod measurements;
mod model_facts;
mod outcome;
mod question_class;
mod question_features;
mod question_hash;
mod records;
mod reward;
mod reward_updates;
mod router;
mod service;
pub mod store;
mod types;
mod writer;

pub use choose::{ModelChoice, choose};
pub use feedback::{FeedbackService, RatableAnswer, RateError, RatingResult, RecordedAnswers};
pub use grpo::{ENOUGH_TRIES, Grpo, probabilities};
pub use heuristic::Heuristic;
pub use measurements::{MeasuredSpeed, Measurements};
pub use model_facts::model_candidate;
pub use outcome::OutcomeReporter;
pub use question_class::{QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic};
pub use question_features::question_profile;
pub use question_hash::question_hash;
pub use records::{ClassRecord, Knowledge, ModelRecord, Rating, RoutingDecision};
pub use router::{DrawFn, PolicyName, RoutedModel, Router};
pub use service::RoutingService;
pub use store::{
    COPY_TABLES, MIGRATIONS, NewRating, POSTGRES_MIGRATIONS, PostgresRoutingStore, Ratings, RoutingStore,
    SqliteRoutingStore, StoredDecision,
};
pub use types::{ModelCandidate, ModelSpecialty, PolicyChoice, QuestionProfile, RandomDraw, RouterPolicy};
