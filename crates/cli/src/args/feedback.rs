//! Arguments of `hob feedback`.

use clap::Parser;
use hob_routing::Rating;

use super::values::ratings;

/// Rate an answer as good or bad
///
/// If Hob chose the model (--router, or the model 'auto'), the router learns from the rating.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob feedback good                     rate the last answer"
    "hob feedback bad chatcmpl-4fJ2n8      rate the answer with this ID"
    "hob router show                       show what the router has learned"
})]
pub struct FeedbackArgs {
    /// Your rating
    #[arg(value_parser = ratings())]
    pub rating: Rating,

    /// ID of the answer, as returned by the server [default: the last answer]
    pub id: Option<String>,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
