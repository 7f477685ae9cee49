//! The figures, as tables and for programs, and whether a difference is more than chance.

use hob_memory::{IndexReport, MemoryBackend};
use serde::Serialize;

use crate::judge::{Answered, mean};
use crate::purposes::PurposeRow;
use crate::set::Set;

/// How often the bootstrap draws the questions.
const DRAWS: usize = 10_000;

#[derive(Serialize)]
pub struct Report {
    set: String,
    files: u64,
    chunks: u64,
    rows: Vec<Row>,
    /// Hybrid against each of the others, over all questions.
    comparisons: Vec<Comparison>,
    purposes: Vec<PurposeRow>,
    questions: Vec<Answered>,
}

/// One kind of question, or all of them.
#[derive(Serialize)]
struct Row {
    kind: String,
    questions: usize,
    backends: Vec<Quality>,
    /// Hybrid against each of the others.
    comparisons: Vec<Tally>,
}

#[derive(Serialize)]
struct Quality {
    backend: MemoryBackend,
    recall_at_5: f64,
    mrr: f64,
}

/// Questions for which hybrid ranks the first right passage higher than the other backend, and lower.
#[derive(Serialize)]
struct Tally {
    with: MemoryBackend,
    wins: usize,
    losses: usize,
}

/// By how much hybrid's mean reciprocal rank is higher, with the limits for 95 of 100 draws of as many
/// questions from these.
#[derive(Serialize)]
struct Comparison {
    with: MemoryBackend,
    difference: f64,
    low: f64,
    high: f64,
}

const OTHERS: [MemoryBackend; 2] = [MemoryBackend::Sqlite, MemoryBackend::Vector];

impl Report {
    pub fn of(set: &Set, indexed: &IndexReport, questions: Vec<Answered>, purposes: Vec<PurposeRow>) -> Self {
        let of_kind = |kind: &str| questions.iter().filter(|asked| asked.question.kind == kind).collect();
        let mut rows: Vec<Row> = set.kinds().into_iter().map(|kind| Row::of(kind, of_kind(kind))).collect();
        rows.push(Row::of("all", questions.iter().collect()));
        let comparisons = OTHERS.map(|with| compare(&questions, with)).into();
        Report {
            set: set.name.clone(),
            files: indexed.indexed,
            chunks: indexed.chunks,
            rows,
            comparisons,
            purposes,
            questions,
        }
    }

    pub fn print(&self) {
        println!("\n{}: {} files, {} chunks\n", self.set, self.files, self.chunks);
        print!("{:>12} {:>9}", "kind", "questions");
        for backend in MemoryBackend::ALL {
            print!(" {:>16}", format!("{} r@5/MRR", backend.as_str()));
        }
        for with in OTHERS {
            print!(" {:>12}", format!("+/- {}", with.as_str()));
        }
        println!();
        for row in &self.rows {
            print!("{:>12} {:>9}", row.kind, row.questions);
            for quality in &row.backends {
                print!(" {:>16}", format!("{:.3}/{:.3}", quality.recall_at_5, quality.mrr));
            }
            for Tally { wins, losses, .. } in &row.comparisons {
                print!(" {:>12}", format!("+{wins}/-{losses}"));
            }
            println!();
        }
        println!();
        for Comparison { with, difference, low, high } in &self.comparisons {
            println!("hybrid - {}: MRR {difference:+.3} (95 %: {low:+.3} to {high:+.3})", with.as_str());
        }
    }
}

/// Each kind of search on all sets. A cell has one figure per set, in the order of the sets, as `docs/memory.md` has them.
pub fn print_purposes(reports: &[Report]) {
    let Some(first) = reports.first() else { return };
    let sets: Vec<&str> = reports.iter().map(|report| report.set.as_str()).collect();
    println!("\nkinds of search, on {}\n", sets.join(", "));
    println!(
        "{:<8} {:<8} {:<16}  {:<16}  {:<16}  unrelated questions without a passage",
        "backend", "purpose", "recall@5", "MRR", "passages"
    );
    for (index, PurposeRow { backend, purpose, .. }) in first.purposes.iter().enumerate() {
        let cell = |figure: fn(&PurposeRow) -> f64| {
            let figures = reports.iter().map(|report| format!("{:.2}", figure(&report.purposes[index])));
            figures.collect::<Vec<_>>().join(", ")
        };
        println!(
            "{backend:<8} {purpose:<8} {:<16}  {:<16}  {:<16}  {}",
            cell(|row| row.recall_at_5),
            cell(|row| row.mrr),
            cell(|row| row.passages),
            cell(|row| row.unrelated_without_passage)
        );
    }
}

impl Row {
    fn of(kind: &str, asked: Vec<&Answered>) -> Self {
        let quality = |backend| Quality {
            backend,
            recall_at_5: mean(asked.iter().map(|asked| asked.by(backend).recall_at_5)),
            mrr: mean(asked.iter().map(|asked| asked.by(backend).reciprocal_rank())),
        };
        let tally = |with| {
            let by_how_much = || asked.iter().map(|asked| gain(asked, with));
            Tally {
                with,
                wins: by_how_much().filter(|gain| *gain > 0.0).count(),
                losses: by_how_much().filter(|gain| *gain < 0.0).count(),
            }
        };
        Row {
            kind: kind.to_owned(),
            questions: asked.len(),
            backends: MemoryBackend::ALL.map(quality).into(),
            comparisons: OTHERS.map(tally).into(),
        }
    }
}

fn gain(asked: &Answered, with: MemoryBackend) -> f64 {
    asked.hybrid.reciprocal_rank() - asked.by(with).reciprocal_rank()
}

/// A paired bootstrap: the same questions for both, drawn with replacement. Deterministic.
fn compare(questions: &[Answered], with: MemoryBackend) -> Comparison {
    let gains: Vec<f64> = questions.iter().map(|asked| gain(asked, with)).collect();
    let mut random = fastrand::Rng::with_seed(11);
    let mut draws: Vec<f64> =
        (0..DRAWS).map(|_| mean(gains.iter().map(|_| gains[random.usize(..gains.len())]))).collect();
    draws.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| draws[(DRAWS as f64 * share) as usize];
    Comparison { with, difference: mean(gains.iter().copied()), low: at(0.025), high: at(0.975) }
}
