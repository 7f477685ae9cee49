//! Keeps the hosts of an engine as DNS lists them: looks them up again and again, and replaces the list of the table.
//!
//! An answer replaces the list, even an empty one: the address of a host that is gone can belong to another program by now. A
//! failed lookup is no answer; the last list stays.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Engine, EngineError, HostDiscovery};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

pub use super::dns_lookup::FoundHost;
use super::dns_lookup::{FoundHosts, look_up};
use super::host_table::{HostTable, ListChange, TableHost};

/// The longest time for one lookup, with all its queries.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The most hosts of one engine; of more, those with the lowest addresses are used, on every Hob the same.
const MAX_HOSTS: usize = 64;

/// Creates the engine at a host. `None` skips the host.
pub type MakeHost = Box<dyn Fn(&FoundHost) -> Result<Option<Arc<dyn Engine>>, EngineError> + Send + Sync>;

/// Where the hosts of an engine are, and what becomes of them.
pub struct DiscoveryOptions {
    /// The engine's key.
    pub engine: String,
    pub dns: HostDiscovery,
    /// Hosts that are used besides those in DNS.
    pub fixed: Vec<Arc<dyn Engine>>,
    pub make: MakeHost,
    pub refresh: RefreshTimes,
}

/// When the hosts are looked up again.
#[derive(Debug, Clone, Copy)]
pub struct RefreshTimes {
    /// An answer is used at least this long, even if DNS says less.
    pub shortest: Duration,
    /// An answer is used at most this long, even if DNS says more.
    pub longest: Duration,
    /// The time after a failed lookup, and after an answer without hosts.
    pub retry: Duration,
}

impl Default for RefreshTimes {
    fn default() -> Self {
        RefreshTimes {
            shortest: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            retry: Duration::from_secs(2),
        }
    }
}

impl RefreshTimes {
    fn after(&self, found: &FoundHosts) -> Duration {
        match found.valid_for {
            Some(valid_for) => valid_for.clamp(self.shortest, self.longest),
            None => self.retry,
        }
    }
}

/// The lookups of one engine. They end when this is dropped.
pub(super) struct Discovery {
    /// How the last lookup ended; `None` before the first has ended.
    outcome: watch::Receiver<Option<LookupOutcome>>,
    _lookups: AbortOnDropHandle<()>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LookupOutcome {
    /// With this number of hosts.
    Answered(usize),
    Failed {
        reason: String,
    },
}

impl Discovery {
    pub(super) fn start(options: DiscoveryOptions, table: Arc<HostTable>) -> Self {
        let (sender, outcome) = watch::channel(None);
        let lookups = tokio::spawn(refresh_forever(options, table, sender));
        Discovery { outcome, _lookups: AbortOnDropHandle::new(lookups) }
    }

    /// Waits for the first lookup, which has a time limit.
    pub(super) async fn looked_up(&self) {
        if self.outcome.borrow().is_none() {
            // An error means that there will be no lookup.
            let _ = self.outcome.clone().wait_for(Option::is_some).await;
        }
    }

    /// Why there are no hosts.
    pub(super) fn why_empty(&self) -> String {
        match &*self.outcome.borrow() {
            Some(LookupOutcome::Failed { reason }) => format!("the DNS lookup failed ({reason})"),
            Some(LookupOutcome::Answered(0)) => "DNS lists no host under this name".to_owned(),
            Some(LookupOutcome::Answered(_)) => "DNS lists only hosts that cannot be used".to_owned(),
            None => "no DNS lookup has ended".to_owned(),
        }
    }
}

async fn refresh_forever(
    options: DiscoveryOptions,
    table: Arc<HostTable>,
    outcome: watch::Sender<Option<LookupOutcome>>,
) {
    let dns = options.dns.to_string();
    let engine = options.engine.as_str();
    let mut list = HostList { options: &options, table: &table, rejected: Vec::new(), is_cut: false };
    loop {
        let looked_up = match timeout(LOOKUP_TIMEOUT, look_up(&options.dns)).await {
            Ok(looked_up) => looked_up.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no answer within {} s", LOOKUP_TIMEOUT.as_secs())),
        };
        let had_failed = matches!(&*outcome.borrow(), Some(LookupOutcome::Failed { .. }));
        let pause = match looked_up {
            Ok(found) => {
                let pause = options.refresh.after(&found);
                let count = found.hosts.len();
                let ListChange { added, removed } = list.apply(found.hosts);
                if had_failed {
                    tracing::info!(engine, dns, "DNS answers again");
                }
                if !added.is_empty() || !removed.is_empty() {
                    tracing::info!(engine, dns, ?added, ?removed, "the hosts in DNS changed");
                }
                outcome.send_replace(Some(LookupOutcome::Answered(count)));
                pause
            }
            Err(reason) => {
                // Without a first list, requests fail with the same reason.
                let has_list = matches!(&*outcome.borrow(), Some(LookupOutcome::Answered(_)));
                if has_list {
                    tracing::warn!(
                        engine,
                        dns,
                        reason,
                        "the DNS lookup failed; Hob uses the last list of hosts and tries again"
                    );
                }
                outcome.send_replace(Some(LookupOutcome::Failed { reason }));
                options.refresh.retry
            }
        };
        sleep(pause).await;
    }
}

/// Turns the found addresses into the list of the table.
struct HostList<'a> {
    options: &'a DiscoveryOptions,
    table: &'a HostTable,
    /// Addresses that cannot be used. Each is logged once while it is listed.
    rejected: Vec<String>,
    /// Whether hosts were skipped, for the same reason.
    is_cut: bool,
}

impl HostList<'_> {
    fn apply(&mut self, mut found: Vec<FoundHost>) -> ListChange {
        let engine = self.options.engine.as_str();
        let is_cut = found.len() > MAX_HOSTS;
        if is_cut && !self.is_cut {
            tracing::warn!(
                engine,
                found = found.len(),
                used = MAX_HOSTS,
                "DNS lists too many hosts; the rest get no requests. Use a name that lists fewer"
            );
        }
        self.is_cut = is_cut;
        found.truncate(MAX_HOSTS);
        let mut rejected = Vec::new();
        let mut hosts: Vec<Arc<TableHost>> = Vec::with_capacity(found.len());
        for host in self.options.fixed.iter().map(Arc::clone) {
            let known = self.table.known(host.address());
            hosts.push(known.unwrap_or_else(|| self.table.unlisted(host, Instant::now())));
        }
        for host in found {
            let url = host.url();
            if hosts.iter().any(|listed| listed.engine().address() == url) {
                continue;
            }
            if let Some(known) = self.table.known(&url) {
                hosts.push(known);
                continue;
            }
            match (self.options.make)(&host) {
                Ok(Some(made)) => hosts.push(self.table.unlisted(made, Instant::now())),
                Ok(None) => {
                    if !self.rejected.contains(&url) {
                        tracing::warn!(
                            engine,
                            host = url,
                            "a host is skipped: its address is Hob's own. Remove it from DNS, or change \
                             [server] port"
                        );
                    }
                    rejected.push(url);
                }
                Err(error) => {
                    if !self.rejected.contains(&url) {
                        tracing::warn!(
                            engine,
                            host = url,
                            %error,
                            "a host is skipped. Correct its entry in DNS"
                        );
                    }
                    rejected.push(url);
                }
            }
        }
        self.rejected = rejected;
        self.table.replace(hosts)
    }
}
