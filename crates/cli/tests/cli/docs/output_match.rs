//! Compares the output of a command with the page. Other times, ids and column widths are allowed.

/// Compares line by line. A line of `...` matches any lines, `...` or `…` inside a line matches any text, and all whitespace
/// is equal.
pub fn matches_output(shown: &[String], printed: &str) -> bool {
    let printed: Vec<String> = printed.trim_end().lines().map(squeezed).collect();
    let shown: Vec<String> = shown.iter().map(|line| squeezed(line)).collect();
    let shown = match shown.iter().rposition(|line| !line.is_empty()) {
        Some(last) => &shown[..=last],
        None => &[],
    };
    lines_fit(shown, &printed)
}

fn squeezed(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines_fit(shown: &[String], printed: &[String]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((first, rest)) if first == "..." || first == "…" => {
            (0..=printed.len()).any(|skipped| lines_fit(rest, &printed[skipped..]))
        }
        Some((first, rest)) => printed
            .split_first()
            .is_some_and(|(line, others)| line_fits(first, line) && lines_fit(rest, others)),
    }
}

fn line_fits(shown: &str, printed: &str) -> bool {
    let shown = shown.replace("...", "…");
    let mut pieces = shown.split('…');
    let Some(mut rest) = pieces.next().and_then(|first| printed.strip_prefix(first)) else { return false };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(shown: &[&str], printed: &str) -> bool {
        matches_output(&shown.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>(), printed)
    }

    #[test]
    fn values_that_vary_are_ignored() {
        assert!(like(&["ID   NEXT", "...", "total 3"], "ID      NEXT\na\nb\ntotal 3\n"));
        assert!(like(&["{\"id\":\"chatcmpl-…\",…}"], "{\"id\":\"chatcmpl-abc\",\"x\":1}\n"));
        assert!(like(&["one", "...", ""], "one\n"));
    }

    #[test]
    fn shown_lines_must_appear() {
        assert!(!like(&["one", "two"], "one\n"));
        assert!(!like(&["one"], "one\ntwo\n"));
        assert!(!like(&["a…b…c"], "a c b\n"));
        assert!(!like(&["one…"], "another one\n"));
    }
}
