//! Chooses the model that answers a question where the caller leaves that to Hob, and learns from how the answers end.
//!
//! The policies are pure: they see models, measurements and a random number, and ask nothing. The [`Router`] supplies those and
//! records every choice. [`RoutingService`] stores choices, outcomes and ratings, and learns from them in one transaction each, so
//! that all processes of one home learn together. No answer waits for the database: a thread writes, and a policy uses what was
//! read last.
//!
//! | file | content |
//! |---|---|
//! | `router` | chooses a model for a request |
//! | `choose` | which models can take a question, and the choice among them |
//! | `types` | the contract of a policy, and what a policy sees |
//! | `records` | what is stored of choices, and what was learnt from them |
//! | `heuristic` | the policy that follows rules |
//! | `grpo` | the policy that learns |
//! | `model_facts` | what the list of an engine, or a name, says of a model |
//! | `question_features`, `question_class` | what a question is like, and its class |
//! | `question_hash` | recognises a question that is asked again |
//! | `in_flight` | questions that models are still answering |
//! | `outcome` | reports how an answer ended |
//! | `learning` | what is learnt from an outcome, a question asked again, and a rating |
//! | `reward` | how good an answer was, as far as one can tell without reading it |
//! | `service`, `cache`, `writer` | what is stored, what was read last, and the thread that writes |
//! | `store` | the tables |
//!
//! Knows no engine, no agent, no configuration file and no HTTP server. [`Measurements`] says how fast models are and what they
//! cost.

mod cache;
mod choose;
mod grpo;
mod heuristic;
mod in_flight;
mod learning;
mod measurements;
mod model_facts;
mod outcome;
mod question_class;
mod question_features;
mod question_hash;
mod records;
mod reward;
mod router;
mod service;
pub mod store;
mod types;
mod writer;

pub use choose::{ModelChoice, choose};
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
pub use store::{MIGRATIONS, NewRating, Ratings, RoutingStore, SqliteRoutingStore, StoredDecision};
pub use types::{ModelCandidate, ModelSpecialty, PolicyChoice, QuestionProfile, RandomDraw, RouterPolicy};
