//! The recipes: ready tasks, as data.

/// A ready task. What is read for it is called before its prompt and shown in its result; the model only adds a short text. So it works
/// with every model.
#[derive(Debug)]
pub struct Recipe {
    pub name: &'static str,
    pub about: &'static str,
    /// The schedule without another wish.
    pub every: &'static str,
    pub prompt: &'static str,
    pub parts: &'static [RecipePart],
}

/// What a recipe reads. A part whose tool is not available is skipped.
#[derive(Debug, PartialEq, Eq)]
pub struct RecipePart {
    pub tool: &'static str,
    /// JSON.
    pub arguments: &'static str,
    /// What the tool needs; `None` if no question can set it up.
    pub source: Option<RecipeSource>,
}

/// What can be set up with a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecipeSource {
    Calendar,
    Place,
    Feeds,
    Mailbox,
    Page,
}

impl RecipeSource {
    /// The name for `--set`; `None` for a source with a password, which is asked for on a terminal only.
    pub fn key(self) -> Option<&'static str> {
        match self {
            RecipeSource::Calendar => Some("calendar"),
            RecipeSource::Place => Some("place"),
            RecipeSource::Feeds => Some("feeds"),
            RecipeSource::Mailbox => None,
            RecipeSource::Page => Some("page"),
        }
    }

    pub fn question(self) -> &'static str {
        match self {
            RecipeSource::Calendar => "Calendar: an address or a file (.ics); empty to skip",
            RecipeSource::Place => {
                "Weather: latitude,longitude,name such as 52.52,13.41,Berlin; empty to skip"
            }
            RecipeSource::Feeds => "News feeds: addresses, separated by spaces; empty to skip",
            RecipeSource::Mailbox => "Mail, which Hob only reads: your e-mail address; empty to skip",
            RecipeSource::Page => "Web page to watch: its address",
        }
    }
}

const CALENDAR_TODAY: RecipePart =
    RecipePart { tool: "calendar", arguments: r#"{"from":"today"}"#, source: Some(RecipeSource::Calendar) };
const WEATHER: RecipePart =
    RecipePart { tool: "weather", arguments: "{}", source: Some(RecipeSource::Place) };
const FEEDS: RecipePart = RecipePart {
    tool: "feeds",
    arguments: r#"{"since":"yesterday","count":5}"#,
    source: Some(RecipeSource::Feeds),
};
const MAIL_OF_THE_DAY: RecipePart =
    RecipePart { tool: "mail", arguments: r#"{"hours":24}"#, source: Some(RecipeSource::Mailbox) };
const NOTES_OF_THE_DAY: RecipePart =
    RecipePart { tool: "memory_search", arguments: r#"{"query":"","recent_days":1}"#, source: None };

pub const RECIPES: [Recipe; 4] = [
    Recipe {
        name: "briefing",
        about: "A morning briefing: calendar, weather, news, mail and new notes",
        every: "weekdays 07:00",
        prompt: "Summarise the results above in at most three short sentences, in their language: what matters most today, and \
                 what I should prepare or answer. Add nothing that is not in them.",
        parts: &[CALENDAR_TODAY, WEATHER, FEEDS, MAIL_OF_THE_DAY, NOTES_OF_THE_DAY],
    },
    Recipe {
        name: "inbox-digest",
        about: "A digest of the mail of the day: what needs an answer, what can wait",
        every: "weekdays 17:00",
        prompt: "Which of the e-mails above probably need an answer from me? Name at most five, with one short line each, and no \
                 advertising. If none does, say so. Add nothing that is not in them.",
        parts: &[MAIL_OF_THE_DAY],
    },
    Recipe {
        name: "watch-page",
        about: "Watches web pages and tells what changed",
        every: "hourly",
        prompt: "Say in at most three short sentences what is new on the pages above. Add nothing that is not in the results.",
        parts: &[RecipePart { tool: "page_changes", arguments: "{}", source: Some(RecipeSource::Page) }],
    },
    Recipe {
        name: "weekly-review",
        about: "A review of the week: appointments to come and notes of the last seven days",
        every: "friday 16:00",
        prompt: "Summarise the results above in at most five short sentences, in their language: what the notes are about, and \
                 which appointments I should prepare. Add nothing that is not in them.",
        parts: &[
            RecipePart {
                tool: "calendar",
                arguments: r#"{"from":"week"}"#,
                source: Some(RecipeSource::Calendar),
            },
            RecipePart { tool: "memory_search", arguments: r#"{"query":"","recent_days":7}"#, source: None },
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use hob_tasks::{FirstCall, PlainSchedule};

    use super::*;

    #[test]
    fn every_recipe_is_a_valid_task() {
        let names: BTreeSet<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
        assert_eq!(names.len(), RECIPES.len());
        for recipe in &RECIPES {
            PlainSchedule::parse(recipe.every).expect(recipe.every);
            assert!(!recipe.parts.is_empty(), "{}", recipe.name);
            for part in recipe.parts {
                FirstCall::parse(&format!("{} {}", part.tool, part.arguments)).expect(part.tool);
            }
        }
    }
}
