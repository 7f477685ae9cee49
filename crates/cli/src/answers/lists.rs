//! Lists of models and tools as plain data, for the tables of the chat.

use hob_agents::ToolSet;
use hob_core::ToolSpec;
use serde::{Deserialize, Serialize};

use crate::output::text::one_line;

/// The models that can answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTable {
    /// Name and engine.
    pub models: Vec<(String, String)>,
    /// The index of the model that answers.
    pub answering: Option<usize>,
}

/// The tools that agents use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolTable {
    /// Name, reach and description.
    pub rows: Vec<Vec<String>>,
    /// The tools that are not available, each with the reason.
    pub absent: Vec<(String, String)>,
}

impl ToolTable {
    pub fn of(tools: &ToolSet) -> Self {
        ToolTable {
            rows: tools.specs().map(row).collect(),
            absent: tools.absent().map(|(name, why)| (name.to_owned(), why.to_owned())).collect(),
        }
    }
}

/// A list shows the first sentence of the description.
fn row(spec: &ToolSpec) -> Vec<String> {
    let description = one_line(&spec.description);
    let first = description.split_inclusive(". ").next().unwrap_or_default().trim_end();
    vec![one_line(&spec.name), spec.reach.as_str().to_owned(), first.to_owned()]
}
