//! A judged set: a folder of files, and questions with the passages that answer them.

use std::path::{Path, PathBuf};

use hob_memory::Passage;
use serde::{Deserialize, Serialize};

use crate::Result;

/// The set that the search was tuned with.
pub const KNOWN: &str = "known";

/// Sets that are not used for tuning; their heads say what was seen when.
pub const HELD_OUT: &str = "held_out";
pub const CONFIRMING: &str = "confirming";

pub struct Set {
    pub name: String,
    pub files: PathBuf,
    pub questions: Vec<Question>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    pub kind: String,
    pub question: String,
    /// The files that answer it.
    pub sources: Vec<String>,
    /// Words of the right passage. Without them, any passage of the files is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passage: Option<String>,
}

impl Set {
    pub fn read(directory: &Path) -> Result<Set> {
        let text = std::fs::read_to_string(directory.join("questions.jsonl"))?;
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        let set = Set {
            name: directory.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            files: directory.join("files").canonicalize()?,
            questions: lines.map(serde_json::from_str).collect::<std::result::Result<_, _>>()?,
        };
        set.questions.iter().try_for_each(|question| set.check(question))?;
        Ok(set)
    }

    /// A question without an answer in the files would count as a fault of the search.
    fn check(&self, question: &Question) -> Result<()> {
        for source in &question.sources {
            let text = std::fs::read_to_string(self.files.join(source))
                .map_err(|error| format!("{source} of '{}': {error}", question.question))?;
            if question.passage.as_ref().is_some_and(|words| !spaced(&text).contains(words)) {
                return Err(format!("{source} does not have the passage of '{}'", question.question).into());
            }
        }
        Ok(())
    }

    /// The file of this passage among those that answer the question, if the passage is right.
    pub fn answer<'a>(&self, question: &'a Question, passage: &Passage) -> Option<&'a str> {
        let path = Path::new(&passage.source).strip_prefix(&self.files).ok()?;
        let source = question.sources.iter().find(|source| Path::new(source) == path)?;
        let is_right = question.passage.as_ref().is_none_or(|words| spaced(&passage.text).contains(words));
        is_right.then_some(source)
    }

    /// Kinds of questions, in the order of the set.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for question in &self.questions {
            if !kinds.contains(&question.kind.as_str()) {
                kinds.push(&question.kind);
            }
        }
        kinds
    }
}

/// Replaces every run of whitespace by one space, because files and passages break lines differently.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
