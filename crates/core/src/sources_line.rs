//! The line that names the documents an answer is based on. Pure.

use crate::ask::AnswerSource;

/// Documents that are named; of the others only the number is shown.
const MAX_NAMED: usize = 5;

/// The longest name in characters.
const MAX_NAME: usize = 80;

/// The answer with a line about its sources below it, if it has some.
pub fn with_sources(answer: String, sources: &[AnswerSource]) -> String {
    let places = sources.iter().map(|source| source.document.as_str());
    match sources_line(&answer, places) {
        Some(line) if !answer.trim().is_empty() => format!("{}\n\n{line}", answer.trim_end()),
        _ => answer,
    }
}

/// Such as `Sources: a.md, b.pdf page 3`. `places` are those of the passages that the model got, in the order of their numbers. If the
/// answer cites some by number, only those are named, with their numbers. `None` without passages.
pub fn sources_line<'a>(answer: &str, places: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let places: Vec<&str> = places.into_iter().collect();
    let cited = citations(answer, places.len());
    // Each name once, with the numbers of its passages.
    let mut named: Vec<(String, String)> = Vec::new();
    for (number, place) in (1..).zip(&places) {
        if !cited.is_empty() && !cited.contains(&number) {
            continue;
        }
        let (name, mark) = (short_name(place), format!("[{number}] "));
        match named.iter_mut().find(|(known, _)| *known == name) {
            Some((_, marks)) => marks.push_str(&mark),
            None => named.push((name, mark)),
        }
    }
    let others = named.len().saturating_sub(MAX_NAMED);
    let shown = named.iter().take(MAX_NAMED).map(|(name, marks)| match cited.is_empty() {
        true => name.clone(),
        false => format!("{marks}{name}"),
    });
    let mut line = shown.collect::<Vec<_>>().join(", ");
    if others > 0 {
        line += &format!(" and {others} more");
    }
    (!line.is_empty()).then(|| format!("Sources: {line}"))
}

/// The numbers in brackets, such as `[1]` or `[2, 3]`, as far as there are passages with them.
fn citations(answer: &str, passages: usize) -> Vec<usize> {
    let inside = answer.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(inside, _)| inside);
    let is_list = |inside: &&str| inside.chars().all(|c| c.is_ascii_digit() || c == ',' || c == ' ');
    let numbers = inside.filter(is_list).flat_map(|list| list.split(','));
    let numbers = numbers.filter_map(|number| number.trim().parse().ok());
    numbers.filter(|number| (1..=passages).contains(number)).collect()
}

/// The name of a file without its directories, on one line.
fn short_name(place: &str) -> String {
    if place.starts_with("note:") {
        return "a note".to_owned();
    }
    let name = place.rsplit(['/', '\\']).next().unwrap_or(place);
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(answer: &str, places: &[&str]) -> String {
        sources_line(answer, places.iter().copied()).unwrap_or_default()
    }

    #[test]
    fn each_document_is_named_once() {
        let places = ["/n/house.md", "/n/bill.pdf", "/n/house.md", "note:12"];
        assert_eq!(line("In March.", &places), "Sources: house.md, bill.pdf, a note");
        assert_eq!(line("In March.", &[]), "");
        assert_eq!(line("", &["C:\\n\\a\nb.md"]), "Sources: a b.md");
    }

    #[test]
    fn cited_documents_are_named_with_their_numbers() {
        let places = ["/n/house.md", "/n/bill.pdf page 2", "/n/house.md"];
        assert_eq!(line("In March [2].", &places), "Sources: [2] bill.pdf page 2");
        assert_eq!(
            line("In March [1, 3] and [2].", &places),
            "Sources: [1] [3] house.md, [2] bill.pdf page 2"
        );
        // Other brackets are not citations.
        for answer in ["[x](y)", "a[0]", "[7]", "[ ]", "[1", "list[i]"] {
            assert_eq!(line(answer, &places), "Sources: house.md, bill.pdf page 2", "{answer}");
        }
    }

    #[test]
    fn many_documents_are_counted() {
        let places: Vec<String> = (0..7).map(|number| format!("/n/{number}.md")).collect();
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        assert_eq!(line("x", &places), "Sources: 0.md, 1.md, 2.md, 3.md, 4.md and 2 more");
    }

    #[test]
    fn an_answer_without_text_or_sources_does_not_change() {
        let source = AnswerSource { document: "/n/a.md".into(), passage: "x".into(), score: 1.0 };
        assert_eq!(with_sources("Yes.\n".into(), std::slice::from_ref(&source)), "Yes.\n\nSources: a.md");
        assert_eq!(with_sources(" ".into(), &[source]), " ");
        assert_eq!(with_sources("Yes.".into(), &[]), "Yes.");
    }
}
