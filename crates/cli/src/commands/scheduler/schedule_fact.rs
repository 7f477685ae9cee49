//! A schedule in a list of facts. Pure.

use hob_tasks::{Schedule, in_words};

use crate::output::text::one_line;

/// Such as `weekdays at 07:00 (cron 0 7 * * 1-5, Europe/Berlin)`.
pub(super) fn schedule_fact(schedule: &Schedule) -> String {
    let spec = &schedule.spec;
    let value = format!("{} {}", spec.kind().as_str(), one_line(spec.value()));
    let zone = schedule.zone.name();
    match in_words(spec) {
        Some(words) => format!("{words} ({value}, {zone})"),
        None => format!("{value} ({zone})"),
    }
}
