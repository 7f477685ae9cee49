//! Chooses the model that answers a question: what is known of the models, what the question is like, and the policies that
//! match the two. Pure: the caller passes in models, measurements and random numbers. Knows no engine and no database.
//!
//! | file | content |
//! |---|---|
//! | `types` | the contract of a policy, and what a policy sees |
//! | `question_class` | classes of questions that are alike |
//! | `records` | what is saved of choices, and what was learnt from them |
//! | `model_facts` | what the list of an engine, or a name, says of a model |
//! | `question_features` | what a question is like, and its class |
//! | `question_hash` | recognises a question that is asked again |
//! | `choose` | which models can take a question, and the choice among them |
//! | `heuristic` | the policy that follows rules |
//! | `grpo` | the policy that learns |
//! | `reward` | how good an answer was, as far as one can tell without reading it |

mod choose;
pub mod grpo;
mod heuristic;
mod model_facts;
mod question_class;
mod question_features;
mod question_hash;
mod records;
pub mod reward;
mod types;

pub use choose::{ModelChoice, choose};
pub use grpo::Grpo;
pub use heuristic::Heuristic;
pub use model_facts::model_candidate;
pub use question_class::{QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic};
pub use question_features::question_profile;
pub use question_hash::question_hash;
pub use records::{ClassRecord, Knowledge, ModelRecord, Rating, RoutingDecision};
pub use types::{ModelCandidate, ModelSpecialty, PolicyChoice, QuestionProfile, RandomDraw, RouterPolicy};
