//! Addresses of mailboxes. Pure.

/// RFC 5321 allows no longer path.
const MAX_BYTES: usize = 254;

/// Whether a text is the address of one mailbox that may stand in a command: no spaces, brackets, quotes or line ends, and ASCII only.
pub fn is_mail_address(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let is_plain = |part: &str, others: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.as_bytes().contains(&byte))
    };
    text.len() <= MAX_BYTES
        && is_plain(local, "!#$%&'*+-/=?^_`{|}~.")
        && is_plain(domain, "-.")
        && !domain.starts_with(['-', '.'])
        && !domain.ends_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_cannot_carry_a_second_command() {
        for good in ["ann@example.org", "a.b+c@mail.example.org", "root@localhost"] {
            assert!(is_mail_address(good), "{good}");
        }
        let long = format!("{}@example.org", "a".repeat(300));
        for bad in [
            "",
            "ann",
            "@example.org",
            "ann@",
            "ann@example.org>\r\nRCPT TO:<bob@example.org",
            "ann example.org",
            "a n@example.org",
            "<ann@example.org>",
            "\"a b\"@example.org",
            "ann@ex ample.org",
            "ann@.org",
            "ann@-x.org",
            "änn@example.org",
            &long,
        ] {
            assert!(!is_mail_address(bad), "{bad}");
        }
    }
}
