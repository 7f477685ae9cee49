//! Who can use the server: this machine only, callers with a key, or anyone on the network; and which web pages.

use std::net::IpAddr;

use super::described_server::DescribedServer;
use super::report::{CheckStatus, DoctorCheck};
use crate::named_keys::NamedKeys;

const NAME: &str = "access";

pub fn check(described: &DescribedServer, named: NamedKeys) -> DoctorCheck {
    let (server, name, place) = (&described.config, described.name(), described.place());
    let host = &server.host;
    let any_page = server.cors_origins.iter().any(|origin| origin == "*");
    // What callers on other machines, and web pages that are not listed by name, must send.
    let needed = match (server.api_key.is_some(), server.identity.is_on(), named) {
        (true, ..) => Some("the API key"),
        (false, true, NamedKeys::NoneValid) => Some("a token of [server.identity]"),
        (false, true, _) => Some("a token of [server.identity] or a named key"),
        (false, false, NamedKeys::Some | NamedKeys::NoneValid) => Some("a named key"),
        // An unnecessary warning is better than none.
        (false, false, NamedKeys::None | NamedKeys::Unknown) => None,
    };
    let is_closed = server.api_key.is_none() && !server.identity.is_on() && named == NamedKeys::NoneValid;
    if is_closed && !is_inside(host) {
        let message =
            format!("no named key is valid, so {name} refuses all requests from your network ({place})");
        DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(
            "Create a key with 'hob key create NAME'; 'hob key list' shows why the others are not valid",
        )
    } else if needed.is_none() && any_page {
        let message = format!(
            "{name} answers every web page opened in a browser on this machine ([server] cors_origins has \"*\", no key)"
        );
        DoctorCheck::new(NAME, CheckStatus::Warning, message)
            .advise("Set HOB_API_KEY to require a key, or list the pages in [server] cors_origins")
    } else if let Some(needed) = needed.filter(|_| !is_inside(host)) {
        let message = format!("{name} answers anyone who has {needed} ({place})");
        DoctorCheck::new(NAME, CheckStatus::Good, message)
    } else if needed.is_none() && !server.allowed_hosts.is_empty() {
        let names = server.allowed_hosts.join(", ");
        let message =
            format!("{name} answers anyone who reaches it as {names} ([server] allowed_hosts, no key)");
        DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(
            "Set HOB_API_KEY to require a key: a tunnel or proxy with that name makes everyone look like this machine",
        )
    } else if is_inside(host) {
        DoctorCheck::new(NAME, CheckStatus::Good, format!("{name} answers this machine only ({place})"))
    } else {
        let message = format!("{name} answers anyone on your network ({place}, no API key)");
        DoctorCheck::new(NAME, CheckStatus::Warning, message).advise(
            "Set [server] host = \"127.0.0.1\" to limit it to this machine, or HOB_API_KEY to require a key",
        )
    }
}

fn is_inside(host: &str) -> bool {
    match host.parse::<IpAddr>() {
        Ok(ip) => ip.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use hob_config::ServerConfig;

    use super::*;

    fn check(server: &ServerConfig, named: NamedKeys) -> DoctorCheck {
        super::check(&DescribedServer::upcoming(server), named)
    }

    #[test]
    fn only_an_open_server_is_a_warning() {
        let open = ServerConfig::default();
        let inside = |host: &str| ServerConfig { host: host.into(), ..ServerConfig::default() };
        let locked = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..ServerConfig::default() };
        assert_eq!(check(&open, NamedKeys::None).status, CheckStatus::Warning);
        assert!(check(&open, NamedKeys::None).advice.is_some());
        for safe in [inside("127.0.0.1"), inside("::1"), inside("localhost"), locked] {
            assert_eq!(check(&safe, NamedKeys::None).status, CheckStatus::Good, "{}", safe.host);
        }
        assert_eq!(check(&inside("192.168.0.7"), NamedKeys::None).status, CheckStatus::Warning);
        assert_eq!(check(&open, NamedKeys::Unknown).status, CheckStatus::Warning);
    }

    #[test]
    fn allowed_hosts_without_a_key_are_a_warning() {
        let named = |host: &str, api_key: Option<&str>| ServerConfig {
            host: host.into(),
            allowed_hosts: vec!["hob.example.org".into(), "nas".into()],
            api_key: api_key.map(|key| key.to_owned().into()),
            ..ServerConfig::default()
        };
        for host in ["127.0.0.1", "0.0.0.0"] {
            let open = check(&named(host, None), NamedKeys::None);
            assert_eq!(open.status, CheckStatus::Warning, "{host}");
            assert!(
                open.message.contains("anyone who reaches it as hob.example.org, nas"),
                "{}",
                open.message
            );
            assert!(open.advice.unwrap().contains("HOB_API_KEY"));
            assert_eq!(
                check(&named(host, Some("s3cret")), NamedKeys::None).status,
                CheckStatus::Good,
                "{host}"
            );
        }
    }

    #[test]
    fn a_server_open_to_every_web_page_is_a_warning() {
        let to_all = |api_key: Option<&str>| ServerConfig {
            host: "127.0.0.1".into(),
            cors_origins: vec!["https://app.example.org".into(), "*".into()],
            api_key: api_key.map(|key| key.to_owned().into()),
            ..ServerConfig::default()
        };
        let open = check(&to_all(None), NamedKeys::None);
        assert_eq!(open.status, CheckStatus::Warning);
        assert!(open.message.contains("every web page"), "{}", open.message);
        assert!(open.advice.unwrap().contains("HOB_API_KEY"));
        assert_eq!(check(&to_all(Some("s3cret")), NamedKeys::None).status, CheckStatus::Good);
    }

    #[test]
    fn named_keys_and_single_sign_on_close_a_server() {
        let open = ServerConfig { cors_origins: vec!["*".into()], ..ServerConfig::default() };
        let mut signed_on = open.clone();
        signed_on.identity.issuer = Some("https://id.example.org".into());
        for (server, named, words) in [
            (&open, NamedKeys::Some, "the next 'hob serve' answers anyone who has a named key (0.0.0.0)"),
            (
                &signed_on,
                NamedKeys::None,
                "the next 'hob serve' answers anyone who has a token of [server.identity] or a named key (0.0.0.0)",
            ),
            (
                &signed_on,
                NamedKeys::NoneValid,
                "the next 'hob serve' answers anyone who has a token of [server.identity] (0.0.0.0)",
            ),
        ] {
            assert_eq!(check(server, named), DoctorCheck::new(NAME, CheckStatus::Good, words));
        }
    }

    #[test]
    fn a_server_whose_keys_are_all_invalid_refuses_the_network() {
        let open = ServerConfig { cors_origins: vec!["*".into()], ..ServerConfig::default() };
        let found = check(&open, NamedKeys::NoneValid);
        assert_eq!(found.status, CheckStatus::Warning);
        assert!(found.message.starts_with("no named key is valid"), "{}", found.message);
        assert!(found.advice.is_some_and(|advice| advice.contains("hob key create")));
        let locked = ServerConfig { api_key: Some("s3cret".to_owned().into()), ..open.clone() };
        let inside = ServerConfig { host: "127.0.0.1".into(), ..open };
        for fine in [locked, inside] {
            assert_eq!(check(&fine, NamedKeys::NoneValid).status, CheckStatus::Good, "{}", fine.host);
        }
    }
}
