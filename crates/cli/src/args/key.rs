//! Arguments of `hob key`.

use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use hob_config::EngineName;
use hob_core::Reach;
use hob_keys::{Budget, KeyRole};

use super::values::{engines, whole};

#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    Create(KeyCreateArgs),
    Change(KeyChangeArgs),
    /// List the keys
    ///
    /// Disabled, expired and revoked keys are listed too.
    #[command(after_help = examples! {
        "hob key list"
        "hob key list --json | jq -r '.[].name'"
    })]
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Show what a key may use, and what it has used
    #[command(after_help = examples! {
        "hob key show ana"
    })]
    Show {
        /// Name from 'hob key list'
        name: String,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Make a key invalid until it is enabled again
    #[command(after_help = examples! {
        "hob key disable ana"
    })]
    Disable(KeyNameArgs),
    /// Make a disabled key valid again
    #[command(after_help = examples! {
        "hob key enable ana"
    })]
    Enable(KeyNameArgs),
    /// Make a key invalid for good
    ///
    /// The key stays in the list, so that its records and the audit log stay clear. Its name cannot be used again.
    #[command(after_help = examples! {
        "hob key revoke ana"
    })]
    Revoke(KeyNameArgs),
    /// Give a key a new secret
    ///
    /// The old secret stays valid for a while, so that clients can be changed one after the other.
    #[command(after_help = examples! {
        "hob key rotate ana"
        "hob key rotate ana --overlap 0"
    })]
    Rotate {
        /// Name from 'hob key list'
        name: String,
        /// Seconds for which the old secret stays valid
        #[arg(long, value_name = "SECONDS", default_value_t = 86_400, value_parser = whole::<u64>)]
        overlap: u64,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Parser)]
pub struct KeyNameArgs {
    /// Name from 'hob key list'
    pub name: String,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Create a key, and show its secret once
///
/// A member sees its own responses, conversations and tasks, and uses what the key allows. An owner's key allows
/// everything that its options do not limit. A running server accepts a new key within a second.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob key create ana"
    "hob key create ci --models 'qwen*,auto' --requests-per-minute 60 --parallel 4"
    "hob key create ben --cloud --budget '5 USD/month' --expires 90d"
    "hob key create eva --memory team,handbook"
})]
pub struct KeyCreateArgs {
    /// Name of the key, for lists and records
    pub name: String,
    /// Role: owner or member
    #[arg(long, default_value = "member", value_parser = roles(), hide_possible_values = true)]
    pub role: KeyRole,
    /// Models that may be used, separated by commas, with * for any text; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub models: Option<Vec<String>>,
    /// Engines that may answer, separated by commas; all by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = engines(), hide_possible_values = true)]
    pub engines: Option<Vec<EngineName>>,
    /// Allow cloud providers, which cost money; an owner's key always may
    #[arg(long)]
    pub cloud: bool,
    /// How far tools may reach: pure, read or act; pure for a member
    #[arg(long, value_parser = reaches(), hide_possible_values = true)]
    pub reach: Option<Reach>,
    /// Tools that may be used, separated by commas; all within the reach by default
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,
    /// Collections of documents that may be read, separated by commas; none for a member, all for an owner
    #[arg(long, value_name = "COLLECTIONS", value_delimiter = ',')]
    pub memory: Option<Vec<String>>,
    /// Requests in each minute
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>)]
    pub requests_per_minute: Option<u64>,
    /// Tokens in each minute
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>)]
    pub tokens_per_minute: Option<u64>,
    /// Requests at the same time
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u32>)]
    pub parallel: Option<u32>,
    /// Budget for each day or month, such as '5 USD/month' or '200k tokens/day'; may be repeated
    #[arg(long, value_parser = Budget::parse)]
    pub budget: Vec<Budget>,
    /// When the key expires: a date, or a time from now such as 90d or 12h
    #[arg(long, value_name = "WHEN")]
    pub expires: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Change what a key may use
///
/// Only what is given changes; the secret stays the same. 'all', 'none' and 'never' remove a limit. A running server applies the
/// change within a second.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob key change ana --expires 90d"
    "hob key change ci --models all --requests-per-minute 120 --parallel none"
    "hob key change ben --cloud no --budget none --expires never"
})]
pub struct KeyChangeArgs {
    /// Name from 'hob key list'
    pub name: String,
    /// Models that may be used, separated by commas, with * for any text; or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub models: Option<Vec<String>>,
    /// Engines that may answer, separated by commas; or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = engines_or_all(), hide_possible_values = true)]
    pub engines: Option<Vec<String>>,
    /// Whether cloud providers, which cost money, are allowed: yes or no
    #[arg(long, value_name = "YES|NO", num_args = 0..=1, default_missing_value = "yes", value_parser = yes_or_no(), hide_possible_values = true)]
    pub cloud: Option<bool>,
    /// How far tools may reach: pure, read or act
    #[arg(long, value_parser = reaches(), hide_possible_values = true)]
    pub reach: Option<Reach>,
    /// Tools that may be used, separated by commas; or all within the reach
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub tools: Option<Vec<String>>,
    /// Collections of documents that may be read, separated by commas; or none for a member, all for an owner
    #[arg(long, value_name = "COLLECTIONS", value_delimiter = ',')]
    pub memory: Option<Vec<String>>,
    /// Requests in each minute; or none for no limit
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none::<u64>)]
    pub requests_per_minute: Option<ChangedLimit<u64>>,
    /// Tokens in each minute; or none for no limit
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none::<u64>)]
    pub tokens_per_minute: Option<ChangedLimit<u64>>,
    /// Requests at the same time; or none for no limit
    #[arg(long, value_name = "NUMBER", value_parser = number_or_none::<u32>)]
    pub parallel: Option<ChangedLimit<u32>>,
    /// Budget for each day or month, such as '5 USD/month'; may be repeated, and replaces all budgets; or none
    #[arg(long, value_parser = budget_or_none)]
    pub budget: Vec<ChangedLimit<Budget>>,
    /// When the key expires: a date, or a time from now such as 90d or 12h; or never
    #[arg(long, value_name = "WHEN")]
    pub expires: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// A new limit; `None` removes it. Clap gives an `Option` in an `Option` another meaning.
#[derive(Debug, Clone)]
pub struct ChangedLimit<T>(pub Option<T>);

fn number_or_none<N: FromStr>(text: &str) -> Result<ChangedLimit<N>, String> {
    match text {
        "none" => Ok(ChangedLimit(None)),
        text => text
            .parse()
            .map(|number| ChangedLimit(Some(number)))
            .map_err(|_| "expected a whole number, or none".to_owned()),
    }
}

fn budget_or_none(text: &str) -> Result<ChangedLimit<Budget>, String> {
    match text {
        "none" => Ok(ChangedLimit(None)),
        text => Budget::parse(text).map(|budget| ChangedLimit(Some(budget))),
    }
}

fn engines_or_all() -> PossibleValuesParser {
    PossibleValuesParser::new(EngineName::ALL.map(EngineName::as_str).into_iter().chain(["all"]))
}

fn yes_or_no() -> impl TypedValueParser<Value = bool> {
    PossibleValuesParser::new(["yes", "no"]).map(|word| word == "yes")
}

fn roles() -> impl TypedValueParser<Value = KeyRole> {
    PossibleValuesParser::new(["owner", "member"]).try_map(|word| KeyRole::parse(&word))
}

fn reaches() -> impl TypedValueParser<Value = Reach> {
    PossibleValuesParser::new(["pure", "read", "act"])
        .try_map(|word| Reach::parse(&word).ok_or("expected pure, read or act"))
}
