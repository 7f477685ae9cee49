//! `page_changes`: what is new on the web pages that the owner watches.
//!
//! A call saves the text of the pages, and yet counts as without effect: it chooses neither the address nor what is saved, and
//! calls that follow soon show the same changes again. So a briefing may read pages after other untrusted text.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use hob_core::{
    Moment, NO_CHANGE, NOT_READ, Permit, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments,
};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{read_all, selected, spec};
use crate::page::{ChangedLines, PageChange};
use crate::service::SourceService;

pub(super) struct PageChanges {
    pub service: Arc<SourceService>,
}

#[derive(Deserialize)]
struct Arguments {
    page: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    spec(
        "page_changes",
        "Shows what is new on the web pages that the user watches since the last check.",
        object_schema(
            json!({ "page": { "type": ["string", "null"], "description": "Name of one page; all by default" } }),
            &[],
        ),
    )
});

#[async_trait]
impl Tool for PageChanges {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["page"]
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        self.call_for(arguments, &Permit::up_to(Reach::Read)).await
    }

    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let Arguments { page } = tool_arguments::read(arguments)?;
        let zone = self.service.zone_of(permit).time_zone();
        let pages = selected(&self.service.options().pages, |source| &source.name, "page", page.as_deref())?;
        let changes = read_all(pages.iter().map(|source| self.service.page(source)).collect()).await;
        let (mut reports, mut failures) = (Vec::new(), Vec::new());
        for (source, change) in pages.iter().zip(changes) {
            match change {
                Ok(change) => reports.push(format!("[{}] {}", source.name, report(&change, zone))),
                Err(error) => failures.push(format!("{}: {error}", source.name)),
            }
        }
        if reports.is_empty() {
            return Err(ToolError::new(format!("no page can be read: {}", failures.join("; "))));
        }
        let failures = failures.into_iter().map(|failure| format!("{NOT_READ}{failure}"));
        Ok(failures.chain(reports).collect::<Vec<_>>().join("\n"))
    }
}

fn report(change: &PageChange, zone: &TimeZone) -> String {
    let local = |moment: Moment| zone.to_datetime(moment.timestamp()).strftime("%Y-%m-%d %H:%M").to_string();
    match change {
        PageChange::NowWatched => "Now watched. The next check shows what is new.".to_owned(),
        PageChange::None { since } => format!("{NO_CHANGE}{}.", local(*since)),
        PageChange::Lines { since, added, removed } => {
            let mut lines = vec![format!("Changed since {}:", local(*since))];
            list(&mut lines, '+', "new", added);
            list(&mut lines, '-', "removed", removed);
            lines.join("\n")
        }
    }
}

fn list(lines: &mut Vec<String>, mark: char, kind: &str, changed: &ChangedLines) {
    lines.extend(changed.shown.iter().map(|line| format!("{mark} {line}")));
    if changed.more > 0 {
        lines.push(format!("({} more {kind} lines)", changed.more));
    }
}
