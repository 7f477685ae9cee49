//! Results of tools as lists: Markdown for a reader, which is also readable as plain text, and a shorter text for a model. Pure. Knows the
//! forms of results by the names of their tools; a result in another form is listed line by line.

use std::collections::BTreeSet;
use std::fmt::Write;

use hob_core::{NO_CHANGE, NOT_READ, ToolResult};
use jiff::civil::{Date, DateTime};

/// Entries of a result that a reader gets.
const MAX_LISTED: usize = 20;

/// Characters of an entry or a note.
const MAX_LINE: usize = 300;

/// How the last line of a result begins that was cut.
const CUT: &str = "\n[cut here: ";

/// The result of one call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ResultSection {
    title: String,
    entries: Vec<ResultEntry>,
    /// What was not read or not listed.
    notes: Vec<String>,
}

/// A line of a list.
#[derive(Debug, PartialEq, Eq)]
struct ResultEntry {
    text: String,
    /// Shown to a reader only: a model would read many tokens for it.
    link: Option<String>,
}

/// All results as Markdown.
pub(crate) fn markdown(sections: &[ResultSection]) -> String {
    sections.iter().map(ResultSection::markdown).collect::<Vec<_>>().join("\n\n")
}

/// The results that have entries as texts for a model, each with its place among the results. All texts together have about `most`
/// bytes: a result gets an equal share of what those before it leave, and says how many entries are left out.
pub(crate) fn model_texts(sections: &[ResultSection], most: usize) -> Vec<(usize, String)> {
    let is_listed = |(_, section): &(usize, &ResultSection)| !section.entries.is_empty();
    let listed: Vec<(usize, &ResultSection)> = sections.iter().enumerate().filter(is_listed).collect();
    let mut left = most;
    let mut texts = Vec::with_capacity(listed.len());
    for (done, (place, section)) in listed.iter().enumerate() {
        let text = section.model_text(left / (listed.len() - done));
        left = left.saturating_sub(text.len());
        texts.push((*place, text));
    }
    texts
}

/// Whether the results are only reports of watched pages without a change. A page that was not read is no such report, nor is one that is
/// watched from now on.
pub(crate) fn are_unchanged_pages(results: &[ToolResult]) -> bool {
    let is_unchanged = |line: &str| page_report(line).is_some_and(|(_, said)| said.starts_with(NO_CHANGE));
    let has_no_change = |result: &ToolResult| {
        let ToolResult { tool_name, content, success } = result;
        *success && tool_name == "page_changes" && !content.is_empty() && content.lines().all(is_unchanged)
    };
    !results.is_empty() && results.iter().all(has_no_change)
}

impl ResultSection {
    pub(crate) fn of(result: &ToolResult) -> Self {
        let ToolResult { tool_name, content, success } = result;
        let mut section = ResultSection { title: title(tool_name).to_owned(), ..ResultSection::default() };
        if !success {
            section.note(&format!("Not available: {}", content.trim()));
            return section;
        }
        let (content, is_cut) = match content.rsplit_once(CUT) {
            Some((content, _)) => (content, true),
            None => (content.as_str(), false),
        };
        let lines = content.lines().filter(|line| !line.trim().is_empty());
        match tool_name.as_str() {
            "calendar" => section.read_calendar(lines),
            "weather" => section.read_weather(lines),
            "feeds" => section.read_feeds(lines),
            "mail" => section.read_mail(lines),
            "memory_search" | "retrieval" => section.read_documents(lines),
            "page_changes" => section.read_pages(lines),
            _ => lines.for_each(|line| section.add(line)),
        }
        if is_cut {
            section.note("The rest is not listed: the result is too long.");
        }
        section
    }

    fn add(&mut self, text: &str) {
        self.entries.push(ResultEntry { text: line_of(text), link: None });
    }

    fn note(&mut self, text: &str) {
        self.notes.push(line_of(text));
    }

    /// `- Mon 2026-03-02 09:00-10:00: Dentist, at Harbour Street [main]`. The day is removed if the result has only one, and the calendar
    /// if there is only one.
    fn read_calendar<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        let (mut day, mut events) = (None, Vec::new());
        for line in lines {
            if let Some(range) = line.strip_prefix("Events from ") {
                day = only_day(range);
            } else if let Some(event) = line.strip_prefix("- ") {
                let named = event.rsplit_once(" [");
                events.push(named.map_or((event, None), |(event, calendar)| (event, Some(calendar))));
            } else if line != "No events." {
                self.note(line);
            }
        }
        let calendars: BTreeSet<&str> = events.iter().filter_map(|(_, calendar)| *calendar).collect();
        for (event, calendar) in events {
            let event = day.and_then(|day| without_day(event, day)).unwrap_or(event);
            match calendar {
                Some(calendar) if calendars.len() > 1 => self.add(&format!("{event} [{calendar}")),
                _ => self.add(event),
            }
        }
    }

    /// The place, then a line for now and for each day.
    fn read_weather<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        for line in lines {
            match line.starts_with("Weather in ") {
                true => self.title = line_of(line),
                false => self.add(line),
            }
        }
    }

    /// `[feed]`, then for each entry `- 2026-03-02 08:00 title`, its link and its summary. A reader gets titles and links.
    fn read_feeds<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        let (mut feeds, mut entries) = (Vec::new(), Vec::<(usize, ResultEntry)>::new());
        for line in lines {
            if let Some(feed) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                feeds.push(feed);
            } else if let Some(entry) = line.strip_prefix("- ") {
                let entry = ResultEntry { text: line_of(without_time(entry)), link: None };
                entries.push((feeds.len(), entry));
            } else if line.starts_with(NOT_READ) {
                self.note(line);
            } else if let Some(link) = line.strip_prefix("  ").filter(|text| is_link(text))
                && let Some((_, entry)) = entries.last_mut()
                && entry.link.is_none()
            {
                entry.link = Some(link.to_owned());
            }
        }
        let named = |(feed, entry): (usize, ResultEntry)| match feeds.get(feed.wrapping_sub(1)) {
            Some(name) if feeds.len() > 1 => {
                ResultEntry { text: line_of(&format!("{} ({name})", entry.text)), ..entry }
            }
            _ => entry,
        };
        self.entries.extend(entries.into_iter().map(named));
    }

    /// `id 7: 2026-03-02 06:12 UTC Ann <ann@example.org>: Dinner (unread)`
    fn read_mail<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        for line in lines {
            if line.starts_with("(The newest ") {
                self.note(line);
            } else if line != "There are no such e-mails." {
                let mail = line.strip_prefix("id ").and_then(|rest| rest.split_once(": "));
                let mail = without_time(mail.map_or(line, |(_, mail)| mail.trim_start()));
                self.add(mail.strip_prefix("UTC ").unwrap_or(mail));
            }
        }
    }

    /// `[1] path — title, 2026-03-02`, then the beginning of the text.
    fn read_documents<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        let mut documents: Vec<(&str, String)> = Vec::new();
        for line in lines {
            // What stands before the first one is for a model.
            if let Some(title) = document_title(line) {
                documents.push((title, String::new()));
            } else if let Some((_, text)) = documents.last_mut() {
                text.push(' ');
                text.push_str(line.trim());
            }
        }
        for (title, text) in documents {
            match text.trim_start() {
                "" => self.add(title),
                // The title of a note is its first line.
                text if text.starts_with(title) => self.add(text),
                text => self.add(&format!("{title}: {text}")),
            }
        }
    }

    /// `[page] Changed since 2026-03-01 07:00:`, then lines with `+` and `-`.
    fn read_pages<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        for line in lines {
            let page = page_report(line);
            if let Some(new) = line.strip_prefix("+ ") {
                self.add(&format!("New: {new}"));
            } else if let Some(removed) = line.strip_prefix("- ") {
                self.add(&format!("Removed: {removed}"));
            } else if let Some((page, change)) = page {
                match change.strip_suffix(':') {
                    Some(change) => self.add(&format!("{page}: {change}")),
                    None => self.note(&format!("{page}: {change}")),
                }
            } else {
                self.note(line);
            }
        }
    }

    fn markdown(&self) -> String {
        let mut lines = vec![format!("## {}", self.title)];
        for ResultEntry { text, link } in self.entries.iter().take(MAX_LISTED) {
            lines.push(format!("- {text}"));
            lines.extend(link.as_ref().map(|link| format!("  {link}")));
        }
        let more = self.entries.len().saturating_sub(MAX_LISTED);
        let more = (more > 0).then(|| format!("{more} more are not listed."));
        let notes: Vec<&str> = more.iter().chain(&self.notes).map(String::as_str).collect();
        match (self.entries.is_empty(), notes.is_empty()) {
            (true, true) => lines.push("None.".to_owned()),
            (true, false) => lines.push(notes.join("\n")),
            (false, true) => {}
            // An empty line ends a list.
            (false, false) => lines.push(format!("\n{}", notes.join("\n"))),
        }
        lines.join("\n")
    }

    fn model_text(&self, most: usize) -> String {
        let mut text = String::new();
        for (shown, entry) in self.entries.iter().enumerate() {
            if text.len() + entry.text.len() > most {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "({} more are left out.)", self.entries.len() - shown);
                break;
            }
            let _ = writeln!(text, "- {}", entry.text);
        }
        text
    }
}

fn title(tool: &str) -> &str {
    match tool {
        "calendar" => "Appointments",
        "weather" => "Weather",
        "feeds" => "News",
        "mail" => "Mail",
        "memory_search" | "retrieval" => "Notes",
        "page_changes" => "Watched pages",
        other => other,
    }
}

/// A text on one line, cut to its limit. It is no link in Markdown: text from outside must not hide an address behind other words.
fn line_of(text: &str) -> String {
    let mut letters = text.trim().chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut line: String = letters.by_ref().take(MAX_LINE).collect();
    if letters.next().is_some() {
        line.push('…');
    }
    // The forms of a link and of its definition.
    line.replace("](", "] (").replace("]:", "] :")
}

/// The day of a range such as `2026-03-02 00:00 to 2026-03-03 00:00 (UTC)`; `None` if it has several.
fn only_day(range: &str) -> Option<&str> {
    let (from, to) = range.split_once(" to ")?;
    let (first, end) = (from.get(..10)?, to.get(..10)?);
    let next = first.parse::<Date>().ok()?.tomorrow().ok()?;
    (end.parse::<Date>().ok()? == next).then_some(first)
}

/// An event without its day, if it is on that day only.
fn without_day<'a>(event: &'a str, day: &str) -> Option<&'a str> {
    // After the name of the weekday.
    let rest = event.get(4..)?.strip_prefix(day).filter(|rest| !rest.starts_with(" to "))?;
    Some(rest.trim_start_matches([',', ' ']))
}

/// A text without the date and time that it begins with.
fn without_time(text: &str) -> &str {
    let is_time = |start: &&str| DateTime::strptime("%Y-%m-%d %H:%M", start).is_ok();
    let rest = text.get(..16).filter(is_time).and_then(|start| text.strip_prefix(start));
    rest.map_or(text, str::trim_start)
}

/// The name of a page and what is said of it, such as `[page] No change since 2026-03-01 07:00.`
fn page_report(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('[')?.split_once("] ")
}

fn is_link(text: &str) -> bool {
    let is_address = text.starts_with("https://") || text.starts_with("http://");
    is_address && !text.contains(char::is_whitespace)
}

fn document_title(line: &str) -> Option<&str> {
    let (number, document) = line.strip_prefix('[')?.split_once("] ")?;
    number.parse::<u32>().ok()?;
    let (path, title) = document.split_once(" — ")?;
    let dated = title.rsplit_once(", ").filter(|(_, date)| date.parse::<Date>().is_ok());
    let title = dated.map_or(title, |(title, _)| title).trim();
    Some(if title.is_empty() { path } else { title })
}

#[cfg(test)]
#[path = "result_layout_tests.rs"]
mod tests;
