//! `hob router show`.

use anyhow::Result;
use hob_config::RouterName;
use hob_routing::{
    ClassRecord, ENOUGH_TRIES, Knowledge, QuestionClass, Ratings, RoutingStore, probabilities,
};
use serde::Serialize;

use super::note_empty;
use crate::output;
use crate::output::OutputFormat;
use crate::output::table::{self, Column};
use crate::output::text::one_line;

/// The content of the report.
#[derive(Serialize)]
struct RouterReport {
    /// The configured router.
    router: &'static str,
    /// The number of recorded decisions.
    decisions: u64,
    ratings: Ratings,
    classes: Vec<ClassReport>,
}

/// A class of questions.
#[derive(Debug, PartialEq, Serialize)]
struct ClassReport {
    class: String,
    models: Vec<ModelReport>,
}

/// The results of a model in a class.
#[derive(Debug, PartialEq, Serialize)]
struct ModelReport {
    model: String,
    samples: u64,
    /// From 0 to 1; `null` as long as there was none.
    mean_reward: Option<f64>,
    /// How likely it is to be chosen by `grpo`, if all of these models are there.
    probability: f64,
    /// Whether the router still explores this model, regardless of its probability.
    exploring: bool,
}

pub fn run(store: Option<&dyn RoutingStore>, router: RouterName, format: OutputFormat) -> Result<()> {
    let report = RouterReport {
        router: router.as_str(),
        decisions: store.map(RoutingStore::count).transpose()?.unwrap_or(0),
        ratings: store.map(RoutingStore::ratings).transpose()?.unwrap_or_default(),
        classes: store.map(RoutingStore::knowledge).transpose()?.as_ref().map(classes).unwrap_or_default(),
    };
    match format {
        OutputFormat::Json => output::json(&report)?,
        OutputFormat::Text if report.classes.is_empty() => note_empty(),
        OutputFormat::Text => print(&report)?,
    }
    Ok(())
}

/// The classes in order; in each the likeliest model first.
fn classes(knowledge: &Knowledge) -> Vec<ClassReport> {
    knowledge.iter().map(|(class, record)| of_class(*class, record)).collect()
}

fn of_class(class: QuestionClass, record: &ClassRecord) -> ClassReport {
    let names: Vec<&String> = record.models.keys().collect();
    let shares = probabilities(record, &names);
    let mut models: Vec<ModelReport> = record
        .models
        .iter()
        .zip(shares)
        .map(|((model, known), probability)| ModelReport {
            model: model.clone(),
            samples: known.samples,
            mean_reward: known.mean_reward(),
            probability,
            exploring: known.tries < ENOUGH_TRIES,
        })
        .collect();
    models.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    ClassReport { class: class.to_string(), models }
}

fn print(report: &RouterReport) -> Result<()> {
    let facts = [
        ("Router", report.router.to_owned()),
        ("Decisions", report.decisions.to_string()),
        ("Ratings", format!("{} good, {} bad", report.ratings.good, report.ratings.bad)),
    ];
    table::print_facts(&facts)?;
    output::line("")?;
    let columns = [
        Column::Words("CLASS"),
        Column::Words("MODEL"),
        Column::Numbers("SAMPLES"),
        Column::Numbers("MEAN REWARD"),
        Column::Numbers("PROBABILITY"),
        Column::Words(""),
    ];
    let rows: Vec<Vec<String>> = report.classes.iter().flat_map(rows).collect();
    table::print(&columns, &rows)?;
    Ok(())
}

fn rows(class: &ClassReport) -> Vec<Vec<String>> {
    let row = |model: &ModelReport| {
        vec![
            class.class.clone(),
            one_line(&model.model),
            model.samples.to_string(),
            model.mean_reward.map_or_else(|| "-".to_owned(), |reward| format!("{reward:.2}")),
            format!("{:.0} %", model.probability * 100.0),
            if model.exploring { "exploring".to_owned() } else { String::new() },
        ]
    };
    class.models.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use hob_routing::{ModelRecord, QuestionLanguage, QuestionLength, QuestionTopic};

    use super::*;

    #[test]
    fn the_most_probable_model_comes_first_and_exploration_is_marked() {
        let class = QuestionClass {
            topic: QuestionTopic::Code,
            length: QuestionLength::Short,
            language: QuestionLanguage::English,
        };
        let known = |weight, samples| ModelRecord {
            weight,
            tries: samples,
            samples,
            rewards: samples as f64 * 0.5,
            ..ModelRecord::default()
        };
        let models = [
            ("small".to_owned(), known(0.0, 4)),
            ("large".to_owned(), known(3.0_f64.ln(), 5)),
            ("new".to_owned(), known(0.0, 0)),
        ];
        let record = ClassRecord { recent: Vec::new(), models: models.into() };
        let shown = rows(&of_class(class, &record));
        let expected = [
            ["code/short/english", "large", "5", "0.50", "60 %", ""],
            ["code/short/english", "new", "0", "-", "20 %", "exploring"],
            ["code/short/english", "small", "4", "0.50", "20 %", ""],
        ];
        assert_eq!(shown, expected);
    }
}
