//! `hob recipes`: lists ready tasks, and creates one with its sources.

mod catalog;
mod source_settings;

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{Result, bail};
use hob_app::{Databases, ToolRegistry};
use hob_config::{Config, Environment, LocalSetting, write_local_settings};
use hob_core::{Permit, Reach};
use hob_tasks::{DeliverTo, FirstCall, NewTask, PlainSchedule, parse_zone};
use serde_json::{Value, json};

use self::catalog::{RECIPES, Recipe, RecipePart, RecipeSource};
use self::source_settings::settings_for;
use crate::args::{RecipeAddArgs, RecipesArgs, RecipesCommand};
use crate::commands::reload::reload_running;
use crate::commands::{block_on, memory, scheduler};
use crate::failure;
use crate::output;
use crate::output::question;
use crate::output::table::{self, Column};
use crate::output::text::one_line;
use crate::settings;

const COLUMNS: [Column; 4] =
    [Column::Words("RECIPE"), Column::Words("WHEN"), Column::Words("READS"), Column::Words("DESCRIPTION")];

/// How often a question is asked before a wrong answer is an error.
const MOST_TRIES: u32 = 3;

pub fn run(args: RecipesArgs) -> Result<ExitCode> {
    match args.command {
        None => list(args.json),
        Some(RecipesCommand::Add(args)) => add(*args),
    }
}

fn list(json: bool) -> Result<ExitCode> {
    if json {
        output::json(&RECIPES.iter().map(described).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let tools = |recipe: &Recipe| recipe.parts.iter().map(|part| part.tool).collect::<Vec<_>>().join(", ");
    let rows: Vec<Vec<String>> = RECIPES
        .iter()
        .map(|recipe| {
            vec![recipe.name.to_owned(), recipe.every.to_owned(), tools(recipe), recipe.about.to_owned()]
        })
        .collect();
    table::print(&COLUMNS, &rows)?;
    output::note("Add one with 'hob recipes add RECIPE'.");
    Ok(ExitCode::SUCCESS)
}

fn described(recipe: &Recipe) -> Value {
    json!({
        "name": recipe.name,
        "description": recipe.about,
        "every": recipe.every,
        "prompt": recipe.prompt,
        "tools": recipe.parts.iter().map(|part| part.tool).collect::<Vec<_>>(),
        "settings": keys(recipe),
    })
}

/// What `--set` of a recipe takes.
fn keys(recipe: &Recipe) -> Vec<&'static str> {
    recipe.parts.iter().filter_map(|part| part.source).filter_map(RecipeSource::key).collect()
}

/// Whether questions are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Questions {
    Asked,
    /// The defaults are used.
    Skipped,
}

impl Questions {
    fn new(yes: bool) -> Result<Self> {
        match yes {
            true => Ok(Questions::Skipped),
            false if question::is_interactive() => Ok(Questions::Asked),
            false => bail!(
                "there is no terminal to ask questions on. Use --yes, and --every, --channel and --set for what you want \
                 to choose."
            ),
        }
    }

    /// The given answer, else that of the user, else the default.
    fn answer(self, given: Option<&str>, question: &str, default: &str) -> Result<String> {
        match (given, self) {
            (Some(given), _) => Ok(given.to_owned()),
            (None, Questions::Asked) => block_on(question::text(question, default)),
            (None, Questions::Skipped) => Ok(default.to_owned()),
        }
    }

    /// The same, as `read` understands it. The user may correct a wrong answer.
    fn read_answer<T>(
        self,
        given: Option<&str>,
        (question, default): (&str, &str),
        read: impl Fn(&str) -> Result<T>,
    ) -> Result<T> {
        let mut tries = if self == Questions::Asked && given.is_none() { MOST_TRIES } else { 1 };
        loop {
            tries -= 1;
            match read(&self.answer(given, question, default)?) {
                Err(error) if tries > 0 => output::warning(failure::explain(&error)),
                read => return read,
            }
        }
    }
}

fn add(args: RecipeAddArgs) -> Result<ExitCode> {
    let recipe = find(&args.name)?;
    let given = given_answers(recipe, &args.set)?;
    let questions = Questions::new(args.yes)?;
    // Before the other questions, which would be lost.
    let PlainSchedule { kind, value } =
        questions.read_answer(args.every.as_deref(), ("When", recipe.every), |every| {
            Ok(PlainSchedule::parse(every)?)
        })?;
    let config = settings::load()?;
    let databases = settings::databases(&config)?;
    let available = available_tools(&config, databases.clone())?;
    let wanted = wanted_settings(recipe, &available, &given, questions, &config)?;
    let config = match wanted.as_slice() {
        [] => config,
        wanted => {
            let file = write_local_settings(&Environment::from_process(), wanted)?;
            output::note(format_args!("Wrote the sources to {file}."));
            block_on(async {
                reload_running().await;
                Ok(())
            })?;
            settings::load()?
        }
    };
    let available = if wanted.is_empty() { available } else { available_tools(&config, databases.clone())? };
    let first_calls = first_calls(recipe, &available)?;
    let asked = ("Channel to send it to; empty for the log only", "");
    let channel = questions.read_answer(args.channel.as_deref(), asked, |channel| {
        // A channel of the command line is checked with the task.
        if args.channel.is_none() && !channel.is_empty() {
            block_on(scheduler::check_channel(&config, &databases, channel))?;
        }
        Ok(channel.to_owned())
    })?;
    let usual = NewTask::new(recipe.prompt, kind, value, Permit::up_to(Reach::Act));
    let task = NewTask {
        timezone: args.timezone.as_deref().map(parse_zone).transpose()?,
        model: args.model.clone(),
        // The model writes from the results alone.
        tools: Some(Vec::new()),
        first_calls,
        deliver_to: (!channel.is_empty()).then_some(DeliverTo { channel, conversation: None }),
        ..usual.named(recipe.name).showing_results()
    };
    let task = block_on(scheduler::save(&config, &databases, task, args.json.into()))?;
    // The run opens them again.
    drop(databases);
    if questions == Questions::Skipped && !args.run && !args.json {
        output::note(format_args!("Try it with 'hob scheduler run {}'.", task.id));
    }
    let wants_run = match questions {
        _ if args.run => true,
        Questions::Asked => question::yes_or_no("Run it once now?")?,
        Questions::Skipped => false,
    };
    if wants_run { scheduler::run_once(task.id.as_str(), args.model) } else { Ok(ExitCode::SUCCESS) }
}

fn find(name: &str) -> Result<&'static Recipe> {
    match RECIPES.iter().find(|recipe| recipe.name == name) {
        Some(recipe) => Ok(recipe),
        None => {
            let names: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
            bail!("there is no recipe '{}'; there are {}.", one_line(name), names.join(", "))
        }
    }
}

/// The answers in `--set`, by their keys.
fn given_answers<'a>(recipe: &Recipe, set: &'a [String]) -> Result<BTreeMap<&'a str, &'a str>> {
    let keys = keys(recipe);
    let mut given = BTreeMap::new();
    for written in set {
        match written.split_once('=') {
            Some((key, value)) if keys.contains(&key) => {
                given.insert(key, value);
            }
            Some((key, _)) if keys.is_empty() => {
                bail!("the recipe {} takes no --set. Remove --set {}.", recipe.name, one_line(key))
            }
            Some((key, _)) => bail!(
                "the recipe {} has no setting '{}'; it has {}.",
                recipe.name,
                one_line(key),
                keys.join(", ")
            ),
            None => bail!("--set needs KEY=VALUE, not '{}'.", one_line(written)),
        }
    }
    Ok(given)
}

/// The names of the tools that the configuration has.
fn available_tools(config: &Config, databases: Databases) -> Result<Vec<String>> {
    block_on(async {
        let registry = ToolRegistry::open(config, memory::registry_parts(config, databases)?);
        let names = registry.tools().map(|tools| tools.specs().map(|spec| spec.name.clone()).collect());
        registry.close().await;
        Ok(names?)
    })
}

/// Asks for the sources that are not configured yet. An answer that is given replaces what is configured.
fn wanted_settings(
    recipe: &Recipe,
    available: &[String],
    given: &BTreeMap<&str, &str>,
    questions: Questions,
    known: &Config,
) -> Result<Vec<LocalSetting>> {
    let mut wanted = Vec::new();
    for part in recipe.parts {
        let Some(source) = part.source else { continue };
        let answer = source.key().and_then(|key| given.get(key)).copied();
        if answer.is_none() && is_available(part, available) {
            continue;
        }
        let asked = (source.question(), "");
        wanted.extend(questions.read_answer(answer, asked, |answer| settings_for(source, answer, known))?);
    }
    Ok(wanted)
}

fn is_available(part: &RecipePart, available: &[String]) -> bool {
    available.iter().any(|name| name == part.tool)
}

/// The calls of the parts that are configured.
fn first_calls(recipe: &Recipe, available: &[String]) -> Result<Vec<FirstCall>> {
    let parts = recipe.parts.iter().filter(|part| is_available(part, available));
    let calls = parts.map(|part| FirstCall::parse(&format!("{} {}", part.tool, part.arguments)));
    let calls: Vec<FirstCall> = calls.collect::<Result<_, _>>()?;
    if calls.is_empty() {
        let keys = keys(recipe);
        let advice = match keys.is_empty() {
            true => "Connect your mailbox with 'hob channel add email --read-only' first.".to_owned(),
            false => format!("Give one with --set KEY=VALUE; the keys are {}.", keys.join(", ")),
        };
        bail!("the recipe {} has nothing to read: none of its sources is configured. {advice}", recipe.name);
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_configured_is_called() {
        let briefing = find("briefing").expect("a recipe");
        let names = |available: &[&str]| {
            let available: Vec<String> = available.iter().map(|name| (*name).to_owned()).collect();
            first_calls(briefing, &available)
                .map(|calls| calls.into_iter().map(|call| call.tool).collect::<Vec<_>>())
        };
        assert_eq!(names(&["weather", "think", "calendar"]).expect("calls"), ["calendar", "weather"]);
        let error = names(&["think"]).expect_err("nothing").to_string();
        assert!(error.contains("has nothing to read"), "{error}");
    }

    #[test]
    fn answers_are_given_by_key() {
        let set = ["place=1,2".to_owned(), "calendar=https://example.org/a?b=c".to_owned()];
        let given = given_answers(find("briefing").expect("a recipe"), &set).expect("answers");
        assert_eq!(given["calendar"], "https://example.org/a?b=c");
        for (recipe, wrong, words) in [
            ("briefing", "plaice=1", "it has calendar, place, feeds"),
            ("inbox-digest", "place=1", "takes no --set"),
            ("briefing", "place", "KEY=VALUE"),
        ] {
            let set = [wrong.to_owned()];
            let error = given_answers(find(recipe).expect("a recipe"), &set).expect_err(wrong).to_string();
            assert!(error.contains(words), "{error}");
        }
        assert!(find("lunch").expect_err("none").to_string().contains("there are briefing"));
    }

    #[test]
    fn a_configured_source_is_not_asked_for_unless_an_answer_is_given() {
        let briefing = find("briefing").expect("a recipe");
        let available = ["calendar".to_owned()];
        let settings = |given: &BTreeMap<&str, &str>| {
            wanted_settings(briefing, &available, given, Questions::Skipped, &Config::default())
                .expect("settings")
                .len()
        };
        assert_eq!(settings(&BTreeMap::new()), 0);
        assert_eq!(settings(&BTreeMap::from([("calendar", "~/a.ics"), ("place", "1,2,X")])), 4);
    }
}
