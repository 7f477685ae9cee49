//! Which engine answers, and why. Knows engines only by their contract: their key, their address, and whether they answer.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesOrdered;
use hob_core::Engine;
use hob_core::engine::CLOUD;
use thiserror::Error;
use url::{Host, Url};

use crate::wire::client::PROBE_TIMEOUT;

/// What the user asked for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// The engine named on the command line. No other will do.
    pub key: Option<String>,
    /// The configured default. When it does not answer, another may.
    pub default: Option<String>,
    /// Where we listen ourselves.
    pub own_address: Option<BindAddress>,
    /// Whether the cloud may stand in for a local engine that does not answer.
    pub allow_cloud_fallback: bool,
}

/// Where a server of ours listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddress {
    /// A name or an IP address, without brackets.
    pub host: String,
    pub port: u16,
}

/// The engine that answers.
pub struct Chosen {
    pub engine: Arc<dyn Engine>,
    pub because: Because,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Chosen")
            .field("engine", &self.engine.key())
            .field("because", &self.because)
            .finish()
    }
}

/// Why an engine was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Because {
    /// It was named.
    Given,
    /// It is the default.
    Default,
    /// It answers, and the default does not; `instead_of` is the default, if there is one.
    Fallback { instead_of: Option<String> },
}

/// An engine that was considered and not chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub key: String,
    /// Empty for an engine without one.
    pub address: String,
    pub why_not: WhyNot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyNot {
    /// It did not answer within two seconds.
    Unhealthy,
    /// Its address is our own.
    Ourselves,
    /// It is the cloud, which does not stand in for others unless allowed.
    CloudNotAllowed,
}

impl fmt::Display for Tried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.key)?;
        if !self.address.is_empty() {
            write!(formatter, " at {}", self.address)?;
        }
        formatter.write_str(match self.why_not {
            WhyNot::Unhealthy => " does not answer",
            WhyNot::Ourselves => " is the address we listen on ourselves",
            WhyNot::CloudNotAllowed => " is not used in place of a local engine",
        })
    }
}

/// Why there is no engine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoEngine {
    #[error("there is no engine '{key}'; there are {}", known.join(", "))]
    UnknownKey { key: String, known: Vec<String> },

    /// The engine that was named cannot be used, and nobody asked for another.
    #[error("{0}")]
    Given(Tried),

    #[error("no engine answers: {}", listed(tried))]
    NoneHealthy { tried: Vec<Tried> },
}

fn listed(tried: &[Tried]) -> String {
    match tried {
        [] => "none is configured".to_owned(),
        tried => tried.iter().map(Tried::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The outcome of a selection.
pub type Selection = Result<Chosen, NoEngine>;

/// Chooses the engine that answers: the one that was named and no other; else the default; else the first of the rest that
/// is healthy. All are asked side by side, so this takes about as long as the slowest answer that matters.
pub async fn select(engines: &[Arc<dyn Engine>], wanted: &Wanted) -> Selection {
    if let Some(key) = &wanted.key {
        return select_given(engines, key, wanted).await;
    }
    let default = wanted.default.as_deref();
    let mut checks: FuturesOrdered<_> = default_first(engines, default)
        .into_iter()
        .map(|engine| async {
            let why_not = check(&engine, wanted).await;
            (engine, why_not)
        })
        .collect();
    let mut tried = Vec::with_capacity(engines.len());
    while let Some((engine, why_not)) = checks.next().await {
        match why_not {
            None => {
                let because = if default == Some(engine.key()) {
                    Because::Default
                } else {
                    Because::Fallback { instead_of: wanted.default.clone() }
                };
                return Ok(Chosen { engine, because });
            }
            Some(why_not) => tried.push(rejected(&engine, why_not)),
        }
    }
    Err(NoEngine::NoneHealthy { tried })
}

async fn select_given(engines: &[Arc<dyn Engine>], key: &str, wanted: &Wanted) -> Selection {
    let Some(engine) = engines.iter().find(|engine| engine.key() == key) else {
        return Err(NoEngine::UnknownKey {
            key: key.to_owned(),
            known: engines.iter().map(|engine| engine.key().to_owned()).collect(),
        });
    };
    match check(engine, wanted).await {
        None => Ok(Chosen { engine: Arc::clone(engine), because: Because::Given }),
        Some(why_not) => Err(NoEngine::Given(rejected(engine, why_not))),
    }
}

/// The engines that answer, the default first. The cloud is among them: this is for showing, not for choosing.
pub async fn healthy(engines: &[Arc<dyn Engine>], wanted: &Wanted) -> Vec<Arc<dyn Engine>> {
    let candidates: Vec<_> = default_first(engines, wanted.default.as_deref())
        .into_iter()
        .filter(|engine| !is_ourselves(engine, wanted))
        .collect();
    let answered = probe_all(&candidates).await;
    candidates.into_iter().zip(answered).filter_map(|(engine, answers)| answers.then_some(engine)).collect()
}

/// Whether each engine answers, all asked side by side.
pub async fn probe_all(engines: &[Arc<dyn Engine>]) -> Vec<bool> {
    join_all(engines.iter().map(probe)).await
}

/// An engine promises to answer within two seconds; this holds it to that.
async fn probe(engine: &Arc<dyn Engine>) -> bool {
    tokio::time::timeout(PROBE_TIMEOUT, engine.health()).await.unwrap_or(false)
}

/// Why this engine cannot be chosen; `None` when it can.
async fn check(engine: &Arc<dyn Engine>, wanted: &Wanted) -> Option<WhyNot> {
    let asked_for =
        [&wanted.key, &wanted.default].into_iter().any(|key| key.as_deref() == Some(engine.key()));
    if is_ourselves(engine, wanted) {
        Some(WhyNot::Ourselves)
    } else if engine.key() == CLOUD && !asked_for && !wanted.allow_cloud_fallback {
        Some(WhyNot::CloudNotAllowed)
    } else if probe(engine).await {
        None
    } else {
        Some(WhyNot::Unhealthy)
    }
}

fn rejected(engine: &Arc<dyn Engine>, why_not: WhyNot) -> Tried {
    Tried { key: engine.key().to_owned(), address: engine.address().to_owned(), why_not }
}

fn default_first(engines: &[Arc<dyn Engine>], default: Option<&str>) -> Vec<Arc<dyn Engine>> {
    let mut ordered = engines.to_vec();
    ordered.sort_by_key(|engine| Some(engine.key()) != default);
    ordered
}

fn is_ourselves(engine: &Arc<dyn Engine>, wanted: &Wanted) -> bool {
    wanted.own_address.as_ref().is_some_and(|bind| leads_back(engine.as_ref(), bind))
}

/// Whether whoever asks this engine asks a server of ours that listens on `bind`.
pub fn leads_back(engine: &dyn Engine, bind: &BindAddress) -> bool {
    match engine.members() {
        [] => is_own_address(engine.address(), bind),
        members => members.iter().all(|member| leads_back(member.as_ref(), bind)),
    }
}

/// Whether an engine's address leads back to a server of ours that listens on `bind`.
pub fn is_own_address(engine_url: &str, bind: &BindAddress) -> bool {
    let Ok(url) = Url::parse(engine_url) else {
        return false;
    };
    if url.port_or_known_default() != Some(bind.port) {
        return false;
    }
    let Some(host) = url.host().map(Place::of_url) else {
        return false;
    };
    match (host, Place::of_text(&bind.host)) {
        (host, own) if host == own => true,
        // Only a server bound to one outside address leaves this machine's inner one to others. A name may be either.
        (Place::Here, Place::Outside(_)) => false,
        (Place::Here, _) => true,
        _ => false,
    }
}

/// Whether what answers there runs on this machine: by an address that only this machine can use. A name may be anybody's.
pub fn is_on_this_machine(engine_url: &str) -> bool {
    let url = Url::parse(engine_url).ok();
    url.as_ref().and_then(Url::host).map(Place::of_url) == Some(Place::Here)
}

/// What a host says of where it is.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// This machine, by an address that only it can use, or by the one that stands for all of its own.
    Here,
    Outside(IpAddr),
    Named(String),
}

impl Place {
    fn of_url(host: Host<&str>) -> Self {
        match host {
            Host::Domain(name) => Self::of_text(name),
            Host::Ipv4(ip) => Self::of_ip(ip.into()),
            Host::Ipv6(ip) => Self::of_ip(ip.into()),
        }
    }

    fn of_text(host: &str) -> Self {
        let name = host.trim_matches(['[', ']']).to_ascii_lowercase();
        if let Ok(ip) = name.parse() {
            Self::of_ip(ip)
        } else if name.is_empty() || name == "localhost" || name.ends_with(".localhost") {
            Place::Here
        } else {
            Place::Named(name)
        }
    }

    fn of_ip(ip: IpAddr) -> Self {
        // An IPv4 address written as IPv6 is still that address.
        let ip = match ip {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(ip, |v4: Ipv4Addr| v4.into()),
            IpAddr::V4(_) => ip,
        };
        if ip.is_loopback() || ip.is_unspecified() { Place::Here } else { Place::Outside(ip) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(engine_url: &str, host: &str) -> bool {
        let bind = BindAddress { host: host.into(), port: 8000 };
        is_own_address(engine_url, &bind)
    }

    #[test]
    fn every_way_to_write_our_own_address_is_recognised() {
        for host in ["0.0.0.0", "127.0.0.1", "localhost", "::", "::1", "[::]", ""] {
            for url in [
                "http://localhost:8000",
                "http://LOCALHOST:8000/",
                "http://127.0.0.1:8000",
                "http://127.1.2.3:8000",
                "http://0.0.0.0:8000",
                "http://[::1]:8000",
                "http://[::ffff:127.0.0.1]:8000",
            ] {
                assert!(own(url, host), "{url} on {host}");
            }
        }
        assert!(own("http://192.168.1.5:8000", "192.168.1.5"));
        assert!(own("http://box.lan:8000", "Box.lan"));
        // A machine's own name often means its inner address.
        assert!(own("http://localhost:8000", "box.lan"));
    }

    #[test]
    fn what_listens_elsewhere_is_not_us() {
        assert!(!own("http://localhost:8001", "0.0.0.0"), "another port");
        assert!(!own("http://localhost", "0.0.0.0"), "port 80");
        assert!(!own("http://192.168.1.9:8000", "0.0.0.0"), "another machine");
        assert!(!own("http://localhost:8000", "192.168.1.5"), "we listen outside, it listens inside");
        assert!(!own("http://gpu.lan:8000", "box.lan"), "another name");
        assert!(!own("", "0.0.0.0"), "an engine without an address");
        assert!(!own("::nonsense", "0.0.0.0"), "no URL at all");
    }

    #[test]
    fn a_default_port_counts_as_written() {
        let bind = BindAddress { host: "127.0.0.1".into(), port: 80 };
        assert!(is_own_address("http://localhost", &bind));
    }
}
