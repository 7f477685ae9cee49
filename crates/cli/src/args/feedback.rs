//! `hob feedback` as it is typed.

use clap::Parser;
use hob_routing::Rating;

use super::values::ratings;

/// Say whether an answer was good
///
/// Where Hob chose the model (--router, or the model 'auto'), it learns from that which model suits such questions.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob feedback good                     of the last answer"
    "hob feedback bad chatcmpl-4fJ2n8      of the answer with this id"
    "hob router show                       what was learnt so far"
})]
pub struct FeedbackArgs {
    /// What you think of it
    #[arg(value_parser = ratings())]
    pub rating: Rating,

    /// The answer's id, as a server gives it [default: the last answer]
    pub id: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
