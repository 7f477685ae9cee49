//! Separates what someone wrote from the message that they answered. Pure.

/// The text without the quoted message below it. Programs quote in many ways; a text in which nothing else is left is returned whole.
pub fn without_quotes(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.iter().enumerate().position(|(place, line)| begins_quote(line, &lines[place + 1..]));
    let own = lines[..end.unwrap_or(lines.len())].iter().filter(|line| !line.trim_start().starts_with('>'));
    let own = own.copied().collect::<Vec<_>>().join("\n");
    let own = own.split("\n-- \n").next().unwrap_or_default().trim();
    if own.is_empty() { text.trim().to_owned() } else { own.to_owned() }
}

/// Whether a line begins the quoted message: `On …, Ann wrote:`, a separator, or the header that some programs repeat.
fn begins_quote(line: &str, after: &[&str]) -> bool {
    let line = line.trim();
    // Many empty lines must not be looked at again for each of them.
    if line.is_empty() {
        return false;
    }
    let next = after.iter().find(|line| !line.trim().is_empty()).map(|line| line.trim()).unwrap_or_default();
    let is_rule = |line: &str| line.len() >= 5 && line.chars().all(|letter| matches!(letter, '_' | '-'));
    let has_dashes = line.starts_with("-----") && line.ends_with("-----");
    // Long introductions are on two lines.
    let introduces = line.ends_with(':') && next.starts_with('>')
        || !line.ends_with(':') && next.ends_with(':') && is_introduction(line) && quotes_after(after);
    let is_header =
        |line: &str| ["From:", "Von:", "De:", "Da:", "Van:"].iter().any(|field| line.starts_with(field));
    introduces
        || has_dashes && !is_rule(line)
        || is_rule(line) && is_header(next)
        || is_rule_then_header(line, after)
}

/// `On Mon, 1 Dec 2026 at 10:00, Ann <ann@example.org>` in a few languages.
fn is_introduction(line: &str) -> bool {
    ["On ", "Am ", "Le ", "El ", "Il ", "Op "].iter().any(|word| line.starts_with(word))
}

/// Whether the line after the next one that is not empty is quoted.
fn quotes_after(after: &[&str]) -> bool {
    after.iter().filter(|line| !line.trim().is_empty()).nth(1).is_some_and(|line| line.starts_with('>'))
}

/// Outlook repeats the header of the message without a rule: a sender, then a date, then a recipient.
fn is_rule_then_header(line: &str, after: &[&str]) -> bool {
    let is_field = |line: &str, names: &[&str]| names.iter().any(|name| line.trim().starts_with(name));
    is_field(line, &["From: ", "Von: "])
        && after.first().is_some_and(|line| is_field(line, &["Sent: ", "Gesendet: ", "Date: ", "Datum: "]))
        && after.get(1).is_some_and(|line| is_field(line, &["To: ", "An: "]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quoted_message_is_removed() {
        for text in [
            "Yes, please.\n\nOn Tue, 1 Dec 2026 at 10:00, Hob <hob@example.org> wrote:\n> Shall I?\n> Really?\n",
            "Yes, please.\n\nOn Tue, 1 Dec 2026 at 10:00, Hob\n<hob@example.org> wrote:\n\n> Shall I?\n",
            "Yes, please.\n\nAm 01.12.2026 um 10:00 schrieb Hob:\n> Shall I?\n",
            "Yes, please.\n\n-----Original Message-----\nFrom: Hob\nShall I?\n",
            "Yes, please.\n\n________________________________\nFrom: Hob <hob@example.org>\nSent: Tuesday\n",
            "Yes, please.\n\nFrom: Hob\nSent: Tuesday\nTo: Ann\nSubject: x\n\nShall I?\n",
            "> Shall I?\n\nYes, please.\n",
            "Yes, please.\n-- \nAnn\nExample Ltd\n",
        ] {
            assert_eq!(without_quotes(text), "Yes, please.", "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "Please list these:\n- apples\n- pears",
            "On Monday I was there.\nIt was good.",
            "a\n-----\nb",
            "From: here to there\nit is far",
            "1 > 0 and 2 > 1",
        ] {
            assert_eq!(without_quotes(text), text);
        }
    }

    #[test]
    fn many_empty_lines_take_no_longer_than_others() {
        let text = format!("a{}b", "\n".repeat(1_000_000));
        assert_eq!(without_quotes(&text), text);
    }

    #[test]
    fn a_message_that_only_quotes_is_kept_whole() {
        assert_eq!(without_quotes("> Shall I?\n"), "> Shall I?");
        assert_eq!(without_quotes(""), "");
    }
}
