//! What the own mail server says about the sender of a message (RFC 8601). Pure.

/// Whether the own server found that the message really comes from the domain of its sender. Only the newest field of that server counts:
/// anyone can write such a field, and the server adds its own above the others.
pub(super) fn is_authenticated(fields: &[String], server: &str, domain: &str) -> bool {
    let own = fields.iter().find_map(|field| {
        let plain = without_texts(field);
        let (name, results) = plain.split_once(';')?;
        // A version may follow the name.
        let name = name.split_whitespace().next()?;
        name.eq_ignore_ascii_case(server).then(|| results.to_ascii_lowercase())
    });
    own.is_some_and(|results| {
        let mut dmarc = results.split(';').filter_map(|result| {
            let (method, outcome) = result.trim().split_once('=')?;
            (method.trim() == "dmarc").then_some(outcome)
        });
        // A message with several senders may have several results.
        dmarc.next().is_some_and(|first| passes(first, domain)) && dmarc.all(|other| passes(other, domain))
    })
}

/// Whether a result, such as `pass header.from=example.org`, is good, and about the domain of the sender if it names one.
fn passes(outcome: &str, domain: &str) -> bool {
    let mut words = outcome.split_whitespace();
    let is_about_other =
        |word: &str| word.strip_prefix("header.from=").is_some_and(|from| !from.eq_ignore_ascii_case(domain));
    words.next() == Some("pass") && !words.any(is_about_other)
}

/// The field without comments, and with `_` in the place of separators in quoted texts. Both can contain words of the sender, such as the
/// address in the envelope, which must not count as results.
fn without_texts(field: &str) -> String {
    let mut plain = String::with_capacity(field.len());
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    for letter in field.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted || depth > 0 => is_escaped = true,
            '"' if depth == 0 => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted && depth > 0 => depth -= 1,
            ';' | '=' | ' ' | '\t' if is_quoted => plain.push('_'),
            letter if depth == 0 => plain.push(letter),
            _ => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &[&str]) -> bool {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        is_authenticated(&fields, "mx.example.org", "a.org")
    }

    #[test]
    fn a_message_that_passes_dmarc_at_the_own_server_is_authentic() {
        assert!(check(&[
            "mx.example.org; spf=pass smtp.mailfrom=a.org; dmarc=pass (p=reject) header.from=a.org"
        ]));
        assert!(check(&["MX.example.org 1; DMARC = Pass header.from=a.org"]));
        assert!(check(&["mx.example.org; dmarc=pass (p=none) header.from=\"A.org\""]));
    }

    #[test]
    fn everything_else_is_not() {
        let cases: [&[&str]; 15] = [
            &[],
            &["mx.example.org; none"],
            &["mx.example.org; dkim=pass header.d=evil.org"],
            &["mx.example.org; dmarc=fail header.from=a.org"],
            &["mx.example.org; x=y (dmarc=pass)"],
            &["evil.org; dmarc=pass"],
            &["mx.example.org.evil.org; dmarc=pass"],
            // The sender added the second one.
            &["mx.example.org; dmarc=fail", "mx.example.org; dmarc=pass"],
            &["mx.example.org; dmarc=passable"],
            &["mx.example.org; dmarc=pass header.from=evil.org"],
            &["mx.example.org; dmarc=pass header.from=a.org; dmarc=fail header.from=a.org"],
            // The sender chose the address in the envelope.
            &["mx.example.org; spf=pass (domain of x; dmarc=pass y designates 1.2.3.4); dmarc=fail"],
            &["mx.example.org; spf=pass smtp.mailfrom=\"; dmarc=pass \"@evil.org"],
            &["mx.example.org; spf=pass smtp.mailfrom=\"a\\\"; dmarc=pass \"@evil.org"],
            &["mx.example.org; spf=pass (a \\) ; dmarc=pass ); dmarc=fail"],
        ];
        for fields in cases {
            assert!(!check(fields), "{fields:?}");
        }
    }
}
