//! Addresses: where engines and gateways are, where to listen, which names and origins are ours.

use std::net::IpAddr;

use hob_core::HostDiscovery;
use url::{Host, Url};

use crate::kind::{quote, quote_all};
use crate::settings_schema::{Exposure, Kind};

/// The maximum number of servers.
const MOST_HOSTS: usize = 64;

const HTTP: Schemes = Schemes { first: "http", second: "https" };

/// The address of an engine or provider, to which paths are appended: no trailing slash, no query.
pub(crate) const HTTP_URL: Kind<String> = Kind {
    expected: "an http or https address such as http://localhost:11434",
    read: |typed| base_url(typed.text()?, HTTP),
    write: |url| quote(url),
    exposure: Exposure::Open,
};

/// Addresses of interchangeable servers. Duplicates count once.
pub(crate) const HTTP_URLS: Kind<Vec<String>> = Kind {
    expected: "a list of up to 64 http or https addresses such as [\"http://a:8000\", \"http://b:8000\"]",
    read: |typed| {
        let mut urls = Vec::new();
        for text in typed.texts()? {
            let url = base_url(text, HTTP)?;
            if !urls.contains(&url) {
                urls.push(url);
            }
        }
        (urls.len() <= MOST_HOSTS).then_some(urls)
    },
    write: |urls| quote_all(urls),
    exposure: Exposure::Open,
};

/// A name in DNS that lists the servers; empty is none.
pub(crate) const DISCOVERY: Kind<Option<HostDiscovery>> = Kind {
    expected: "a name in DNS such as \"dns://vllm.svc:8000\" or \"dns+srv://_http._tcp.vllm.svc\", or \"\" for none",
    read: |typed| match typed.text()?.trim() {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    },
    write: |discovery| quote(&discovery.as_ref().map(HostDiscovery::to_string).unwrap_or_default()),
    exposure: Exposure::Open,
};

pub(crate) const WEBSOCKET_URL: Kind<String> = Kind {
    expected: "a ws or wss address such as ws://127.0.0.1:18789/ws",
    read: |typed| base_url(typed.text()?, Schemes { first: "ws", second: "wss" }),
    ..HTTP_URL
};

pub(crate) const BIND_ADDRESS: Kind<String> = Kind {
    expected: "an IP address or a host name without a port, such as 127.0.0.1, :: or localhost",
    read: |typed| bind_address(typed.text()?),
    ..HTTP_URL
};

pub(crate) const HOST_NAMES: Kind<Vec<String>> = Kind {
    expected: "a list of host names without scheme and port, such as [\"hob.example.org\"]",
    read: |typed| typed.texts()?.into_iter().map(host_name).collect(),
    write: |names| quote_all(names),
    exposure: Exposure::Open,
};

pub(crate) const ORIGINS: Kind<Vec<String>> = Kind {
    expected: "a list of origins such as [\"https://app.example.org\"], or [\"*\"] for all",
    read: |typed| typed.texts()?.into_iter().map(origin).collect(),
    ..HOST_NAMES
};

/// The plain and the encrypted form of a protocol; the plain one is taken when none is written.
struct Schemes {
    first: &'static str,
    second: &'static str,
}

fn base_url(typed: &str, schemes: Schemes) -> Option<String> {
    let typed = plain(typed)?;
    let url = if typed.contains("://") {
        Url::parse(typed).ok()?
    } else if typed.contains(":/") {
        // `http:/localhost` is a typing error, not a host named `http`.
        return None;
    } else {
        Url::parse(&format!("{}://{typed}", schemes.first)).ok()?
    };
    let ours = url.scheme() == schemes.first || url.scheme() == schemes.second;
    // An address is shown in messages and logs, so a password has no place in it: keys have settings of their own.
    let bare = url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    (ours && bare && url.has_host()).then(|| url.as_str().trim_end_matches('/').to_owned())
}

fn bind_address(typed: &str) -> Option<String> {
    let typed = plain(typed)?;
    let unbracketed = typed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(typed);
    if let Ok(ip) = unbracketed.parse::<IpAddr>() {
        return Some(ip.to_string());
    }
    match Host::parse(typed).ok()? {
        Host::Domain(name) => Some(name),
        // `Host` also reads "8000" as an address, 0.0.31.64: not what anyone meant.
        Host::Ipv4(_) | Host::Ipv6(_) => None,
    }
}

fn host_name(typed: &str) -> Option<String> {
    Host::parse(plain(typed)?).ok().map(|host| host.to_string())
}

fn origin(typed: &str) -> Option<String> {
    let typed = plain(typed)?;
    if typed == "*" {
        return Some(typed.to_owned());
    }
    let url = Url::parse(typed).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty())?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let rebuilt = format!("{}://{host}{port}", url.scheme());
    // Anything beyond scheme, host and port (a path, a user name) would never match what a browser sends.
    (url.as_str().trim_end_matches('/') == rebuilt).then_some(rebuilt)
}

/// The text without surrounding blanks; `None` when it is empty or has blanks or control characters inside, which URL
/// parsers would quietly drop.
fn plain(typed: &str) -> Option<&str> {
    let typed = typed.trim();
    let odd = |character: char| character.is_whitespace() || character.is_control();
    (!typed.is_empty() && !typed.contains(odd)).then_some(typed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    fn http(typed: &str) -> Option<String> {
        read_as(&HTTP_URL, &quote(typed))
    }

    #[test]
    fn a_host_loses_its_trailing_slash_and_gains_a_scheme() {
        for (typed, resolved) in [
            ("http://localhost:11434", "http://localhost:11434"),
            ("http://localhost:11434/", "http://localhost:11434"),
            (" localhost:11434 ", "http://localhost:11434"),
            ("gpu-box", "http://gpu-box"),
            ("192.168.1.7:8000", "http://192.168.1.7:8000"),
            ("[::1]:8000", "http://[::1]:8000"),
            ("HTTPS://Proxy.example.org/llm//", "https://proxy.example.org/llm"),
        ] {
            assert_eq!(http(typed).as_deref(), Some(resolved), "{typed}");
        }
    }

    #[test]
    fn what_is_no_http_address_is_refused() {
        for typed in [
            "",
            "  ",
            "http://",
            "http:/localhost",
            "ftp://localhost",
            "localhost:port",
            "localhost:99999",
            "http://a b",
            "http://a\nb",
            "http://a?key=1",
            "http://a#b",
            "file:///etc/passwd",
            "://x",
            "http://[::1",
        ] {
            assert_eq!(http(typed), None, "{typed:?}");
        }
    }

    #[test]
    fn every_server_of_a_list_is_an_address_and_counts_once() {
        let read = |typed: &str| read_as(&HTTP_URLS, typed);
        assert_eq!(
            read("['a:8000', 'http://b:8000/', 'http://a:8000']"),
            Some(vec!["http://a:8000".to_owned(), "http://b:8000".to_owned()])
        );
        assert_eq!(read("[]"), Some(Vec::new()));
        for bad in ["'http://a:8000'", "['ftp://a']", "['']", "['http://a', 1]"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        let many: Vec<String> = (0..=MOST_HOSTS).map(|number| format!("'http://h{number}'")).collect();
        assert_eq!(read(&format!("[{}]", many.join(", "))), None);
    }

    #[test]
    fn a_gateway_is_a_websocket() {
        let read = |typed: &str| read_as(&WEBSOCKET_URL, &quote(typed));
        assert_eq!(read("ws://127.0.0.1:18789/ws").as_deref(), Some("ws://127.0.0.1:18789/ws"));
        assert_eq!(read("wss://example.org/ws/").as_deref(), Some("wss://example.org/ws"));
        assert_eq!(read("127.0.0.1:18789").as_deref(), Some("ws://127.0.0.1:18789"));
        assert_eq!(read("http://127.0.0.1:18789"), None);
    }

    #[test]
    fn one_listens_on_an_ip_or_a_name() {
        let read = |typed: &str| read_as(&BIND_ADDRESS, &quote(typed));
        for good in ["0.0.0.0", "::", "127.0.0.1", "localhost", "hob.example.org"] {
            assert_eq!(read(good).as_deref(), Some(good));
        }
        assert_eq!(read("[::1]").as_deref(), Some("::1"));
        for bad in ["", "8000", "localhost:8000", "http://localhost", "0.0.0.0:80", "a b", "256.0.0.1"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn names_and_origins_are_brought_to_the_form_browsers_send() {
        assert_eq!(read_as(&HOST_NAMES, "['Hob.Example.org']"), Some(vec!["hob.example.org".to_owned()]));
        assert_eq!(read_as(&HOST_NAMES, "['hob:8000']"), None);
        assert_eq!(read_as(&HOST_NAMES, "['https://hob']"), None);
        assert_eq!(
            read_as(
                &ORIGINS,
                "['https://App.example.org:443/', 'http://localhost:3000', 'tauri://localhost', '*']"
            ),
            Some(
                ["https://app.example.org", "http://localhost:3000", "tauri://localhost", "*"]
                    .map(str::to_owned)
                    .into()
            )
        );
        for bad in ["['app.example.org']", "['https://a/b']", "['https://u@a']", "['']", "'*'"] {
            assert_eq!(read_as(&ORIGINS, bad), None, "{bad}");
        }
    }
}
