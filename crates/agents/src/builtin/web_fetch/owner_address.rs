//! Checks whether the owner wrote an address. Pure.

use url::Url;

/// Whether `words` contain exactly the address `url`, with its query. The case of the host, the scheme, the fragment and a
/// trailing slash make no difference, and the scheme may be missing.
pub(super) fn is_written(url: &str, words: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    // The address of a Markdown link follows "](".
    let words = words.replace("](", " ");
    let mut tokens = words.split(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | '`'));
    tokens.any(|token| spellings(token).any(|spelling| is_same_page(spelling, &url)))
}

/// The possible addresses in a word: unchanged, without trailing punctuation, and without brackets.
fn spellings(token: &str) -> impl Iterator<Item = &str> {
    const BEHIND: &[char] = &['.', ',', ';', ':', '!', '?', '\''];
    const AROUND: &[char] = &['(', ')', '[', ']', '{', '}', '\''];
    let sentence = token.trim_end_matches(BEHIND);
    let bare = sentence.trim_matches(AROUND).trim_end_matches(BEHIND);
    [token, sentence, bare].into_iter()
}

fn is_same_page(written: &str, url: &Url) -> bool {
    let has_scheme = written.contains("://");
    let written = if has_scheme { Url::parse(written) } else { Url::parse(&format!("https://{written}")) };
    written.is_ok_and(|written| {
        let page = |url: &Url| {
            let path = url.path().trim_end_matches('/').to_owned();
            let port = url.port_or_known_default().filter(|port| !matches!(port, 80 | 443));
            let user = (url.username().to_owned(), url.password().map(str::to_owned));
            (user, url.host_str().map(str::to_owned), port, path, url.query().map(str::to_owned))
        };
        written.has_host() && page(&written) == page(url)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_in_a_sentence_of_the_owner_is_found() {
        for (url, words) in [
            ("https://example.org/a", "Read https://example.org/a."),
            ("https://example.org/a", "what does (example.org/a) say?"),
            ("https://example.org", "summarise example.org, please"),
            ("https://example.org/", "summarise http://EXAMPLE.org"),
            ("https://example.org/a?b=c#top", "see [this](https://example.org/a?b=c)!"),
            ("https://example.org/Foo_(bar)", "see https://example.org/Foo_(bar)"),
            ("http://example.org:8080/x", "'example.org:8080/x/'"),
        ] {
            assert!(is_written(url, words), "{url} in {words}");
        }
    }

    #[test]
    fn a_similar_address_is_not_the_same() {
        for (url, words) in [
            ("https://example.org/a?q=secret", "Read https://example.org/a."),
            ("https://example.org/a/secret", "Read https://example.org/a."),
            ("https://example.org", "Read https://example.org.evil.test"),
            ("https://example.org/", "Read https://evil.test/?example.org"),
            ("https://secret.example.org/", "Read example.org"),
            ("https://secret@example.org/", "Read example.org"),
            ("https://example.org:8443/", "Read example.org"),
            ("https://example.org/A", "Read example.org/a"),
            ("not an address", "not an address"),
            ("https://example.org", ""),
        ] {
            assert!(!is_written(url, words), "{url} in {words}");
        }
    }
}
