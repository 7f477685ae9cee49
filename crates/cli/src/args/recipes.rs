//! Arguments of `hob recipes`.

use clap::{Parser, Subcommand};

/// List and add ready tasks, such as a morning briefing
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true, after_help = examples! {
    "hob recipes                           list the recipes and what they need"
    "hob recipes add briefing              answer a few questions, and get a briefing every morning"
    "hob recipes add briefing --every 'daily 6:30' --set place=52.52,13.41,Berlin --yes"
    "hob recipes add briefing --channel telegram --yes"
})]
pub struct RecipesArgs {
    /// `None` lists the recipes.
    #[command(subcommand)]
    pub command: Option<RecipesCommand>,

    /// Print a JSON array
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum RecipesCommand {
    Add(Box<RecipeAddArgs>),
}

/// Create the task of a recipe
///
/// Asks for what the recipe reads, writes it to the configuration file, creates the task, and offers a trial run. What is not
/// configured is skipped.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob recipes add briefing"
    "hob recipes add briefing --set calendar=https://example.org/me.ics --yes"
    "hob recipes add briefing --set feeds=https://example.org/feed.xml --channel telegram --yes"
    "hob recipes add watch-page --set page=https://example.org/times --every hourly --yes"
})]
pub struct RecipeAddArgs {
    /// Name of a recipe from 'hob recipes'
    pub name: String,

    /// When to run, as for 'hob scheduler create' [default: as the recipe says]
    #[arg(long, value_name = "WHEN")]
    pub every: Option<String>,

    /// Channel to send the answers to, as for 'hob scheduler create' [default: none, only the log]
    #[arg(long)]
    pub channel: Option<String>,

    /// Time zone, e.g. Europe/Berlin [default: the zone of this machine]
    #[arg(long, value_name = "ZONE")]
    pub timezone: Option<String>,

    /// Model to use [default: the default model]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Answer to a question of the recipe, such as calendar=ADDRESS; can be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,

    /// Ask nothing: use the defaults where no option gives a value
    #[arg(short, long)]
    pub yes: bool,

    /// Run the task once after it was created
    #[arg(long)]
    pub run: bool,

    /// Print one JSON object
    #[arg(long, requires = "yes")]
    pub json: bool,
}
