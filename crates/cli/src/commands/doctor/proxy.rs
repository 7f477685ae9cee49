//! The network proxy, if the environment sets one. Engines on this machine are reached without it.

use std::net::IpAddr;

use hob_core::Engine;
use url::{Host, Url};

use super::report::{CheckStatus, DoctorCheck};
use crate::engine_status::{EngineState, EngineStatus, is_discovered};

const NAME: &str = "proxy";

/// In the usual order: lowercase names first.
const VARIABLES: [&str; 6] =
    ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// Whether connections use a proxy, and whether the proxy may be why an engine does not answer.
pub fn check(found: &[EngineStatus]) -> Option<DoctorCheck> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let variable = VARIABLES.into_iter().find(is_set)?;
    let spared =
        ["no_proxy", "NO_PROXY"].into_iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default();
    let lost = found.iter().find_map(|status| match status.state {
        EngineState::NotResponding | EngineState::Failing(_) => {
            lost_behind_proxy(status.engine.as_ref(), &spared)
        }
        EngineState::OwnAddress | EngineState::NotConfigured | EngineState::Available { .. } => None,
    });
    Some(match lost {
        // The value is not shown: it may hold a password.
        None => DoctorCheck::new(
            NAME,
            CheckStatus::Good,
            format!("{variable} is set; connections to other machines go through it"),
        ),
        Some((engine, host)) => DoctorCheck::new(
            NAME,
            CheckStatus::Warning,
            format!("{engine} at {host} is reached through the proxy of {variable}"),
        )
        .advise(format!(
            "If it is on your local network, exclude it: export NO_PROXY='{}'",
            joined(&spared, &host)
        )),
    })
}

fn joined(spared: &str, host: &str) -> String {
    if spared.is_empty() { host.to_owned() } else { format!("{spared},{host}") }
}

/// The first host of the engine that is reached through the proxy. Hosts that DNS lists are reached directly.
fn lost_behind_proxy(engine: &dyn Engine, spared: &str) -> Option<(String, String)> {
    if is_discovered(engine) {
        return None;
    }
    match engine.members().as_slice() {
        [] => behind_proxy(engine, spared),
        members => members.iter().find_map(|member| behind_proxy(member.as_ref(), spared)),
    }
}

/// The engine and its host, if it is reached through the proxy.
fn behind_proxy(engine: &dyn Engine, spared: &str) -> Option<(String, String)> {
    let url = Url::parse(engine.address()).ok()?;
    let host = url.host()?;
    let is_here = match &host {
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
        Host::Ipv4(ip) => IpAddr::V4(*ip).is_loopback(),
        Host::Ipv6(ip) => IpAddr::V6(*ip).is_loopback(),
    };
    let host = host.to_string();
    (!is_here && !is_spared(&host, spared)).then(|| (engine.key().to_owned(), host))
}

/// Compares names only. A network such as `10.0.0.0/8` is not recognised, which costs an unnecessary hint.
fn is_spared(host: &str, spared: &str) -> bool {
    spared.split(',').map(|entry| entry.trim().trim_start_matches('.')).any(|entry| {
        entry == "*" || entry == host || host.strip_suffix(entry).is_some_and(|rest| rest.ends_with('.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_domains_in_no_proxy_are_excluded() {
        for (host, spared, expected) in [
            ("gpu.lan", "gpu.lan", true),
            ("gpu.lan", "localhost, .lan", true),
            ("gpu.lan", "*", true),
            ("gpu.lan", "", false),
            ("gpu.lan", "other.lan", false),
            ("biglan", "lan", false),
        ] {
            assert_eq!(is_spared(host, spared), expected, "{host} in '{spared}'");
        }
    }
}
