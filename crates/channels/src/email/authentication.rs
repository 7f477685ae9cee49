//! What the own mail server says about the sender of a message (RFC 8601). Pure.

/// Whether the own server found that the message really comes from the domain of its sender. Only the newest field of that server counts:
/// anyone can write such a field, and the server adds its own above the others.
pub(super) fn is_authenticated(fields: &[String], server: &str) -> bool {
    let own = fields.iter().find_map(|field| {
        let (name, results) = field.split_once(';')?;
        // A version may follow the name.
        let name = name.split_whitespace().next()?;
        name.eq_ignore_ascii_case(server).then_some(results)
    });
    own.is_some_and(|results| {
        let mut dmarc = results.split(';').map(without_comments).filter_map(|result| {
            let (method, outcome) = result.trim().split_once('=')?;
            method.trim().eq_ignore_ascii_case("dmarc").then(|| outcome.trim().to_ascii_lowercase())
        });
        dmarc.next().is_some_and(|outcome| outcome.split_whitespace().next() == Some("pass"))
    })
}

/// The text without what is in round brackets.
fn without_comments(text: &str) -> String {
    let mut depth = 0_usize;
    let outside = text.chars().filter(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    });
    outside.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &[&str]) -> bool {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        is_authenticated(&fields, "mx.example.org")
    }

    #[test]
    fn a_message_that_passes_dmarc_at_the_own_server_is_authentic() {
        assert!(check(&[
            "mx.example.org; spf=pass smtp.mailfrom=a.org; dmarc=pass (p=reject) header.from=a.org"
        ]));
        assert!(check(&["MX.example.org 1; DMARC = Pass header.from=a.org"]));
    }

    #[test]
    fn everything_else_is_not() {
        let cases: [&[&str]; 9] = [
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
        ];
        for fields in cases {
            assert!(!check(fields), "{fields:?}");
        }
    }
}
