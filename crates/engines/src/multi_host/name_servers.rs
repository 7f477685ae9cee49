//! The DNS servers that are asked: those of the system, or one that the settings name. Knows nothing of hosts: a name in, records out.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures::StreamExt;
use hickory_net::proto::op::{DnsRequestOptions, DnsResponse, Message, Query};
use hickory_net::proto::rr::{Name, RData, Record, RecordType};
use hickory_net::runtime::TokioRuntimeProvider;
use hickory_net::tcp::TcpClientStream;
use hickory_net::udp::UdpClientStream;
use hickory_net::xfer::{DnsExchange, DnsHandle};
use hickory_net::{DnsError, NetError};

/// The file with the servers of the system.
const RESOLV_CONF: &str = "/etc/resolv.conf";

const DNS_PORT: u16 = 53;

/// How long one server may take. Names are looked up again soon, and the last list is used meanwhile: better an early failure than
/// a late one.
const QUERY_TIMEOUT: Duration = Duration::from_secs(1);

/// Aliases (CNAME) that a name may have, one after the other.
const MAX_ALIASES: usize = 8;

/// The servers, and how they are asked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NameServers {
    servers: Vec<SocketAddr>,
    /// The domains that complete a name without a final dot, in order.
    domains: Vec<Name>,
    /// A name with this many dots is first asked for as it is.
    dots: usize,
    options: DnsRequestOptions,
}

impl NameServers {
    /// This server, which gets names as they are.
    pub(super) fn only(server: SocketAddr) -> Self {
        NameServers {
            servers: vec![server],
            domains: Vec::new(),
            dots: 1,
            options: DnsRequestOptions::default(),
        }
    }

    /// Those of the system.
    pub(super) fn of_system() -> Result<Self, NetError> {
        NameServers::read(&fs::read(RESOLV_CONF)?)
    }

    /// Reads the format of `/etc/resolv.conf`. As the system does, it skips lines that it does not understand.
    fn read(text: &[u8]) -> Result<Self, NetError> {
        let (config, _) = resolv_conf::Config::parse_with_errors(text);
        let servers: Vec<SocketAddr> =
            config.nameservers.iter().map(|ip| SocketAddr::new(IpAddr::from(ip), DNS_PORT)).collect();
        if servers.is_empty() {
            return Err(NetError::Message("/etc/resolv.conf names no server"));
        }
        let domains =
            config.get_system_domain().into_iter().chain(config.get_last_search_or_domain().cloned());
        let mut domains: Vec<Name> = domains
            // Some systems write this if they have no domain.
            .filter(|domain| domain != "--")
            .filter_map(|domain| Name::from_str_relaxed(domain).ok())
            .collect();
        domains.dedup();
        let mut options = DnsRequestOptions::default();
        options.use_edns = config.edns0;
        Ok(NameServers { servers, domains, dots: config.ndots as usize, options })
    }

    /// The records of a name, and the aliases that lead to them. An error for which `is_no_records_found` holds is the answer that there
    /// are none.
    pub(super) async fn look_up(&self, name: &Name, kind: RecordType) -> Result<Message, NetError> {
        let mut outcome = NetError::NoConnections;
        for (index, name) in self.full_names(name).into_iter().enumerate() {
            match self.follow(name, kind).await {
                Ok(found) => return Ok(found),
                // A name about which no server answered could have records.
                Err(error) if index == 0 || outcome.is_no_records_found() => outcome = error,
                Err(_) => {}
            }
        }
        Err(outcome)
    }

    /// The names to ask for, in order.
    fn full_names(&self, name: &Name) -> Vec<Name> {
        if name.is_fqdn() {
            return vec![name.clone()];
        }
        let mut names: Vec<Name> =
            self.domains.iter().filter_map(|domain| name.clone().append_domain(domain).ok()).collect();
        let mut alone = name.clone();
        alone.set_fqdn(true);
        let has_dots = usize::from(name.num_labels()) > self.dots;
        names.insert(if has_dots { 0 } else { names.len() }, alone);
        names
    }

    /// The records of a full name. Some servers answer with an alias only; then its target is asked for.
    async fn follow(&self, name: Name, kind: RecordType) -> Result<Message, NetError> {
        let (mut name, mut aliases) = (name, Vec::new());
        for _ in 0..=MAX_ALIASES {
            let mut found = self.ask(&name, kind).await?.into_message();
            let end = end_of_aliases(&found.answers, &name);
            // Records of other names are no answer.
            let is_wanted = |record: &Record| record.record_type() == kind && record.name == end;
            found.answers.retain(|record| is_wanted(record) || record.record_type() == RecordType::CNAME);
            if found.answers.iter().any(is_wanted) {
                // They limit how long the answer may be used.
                found.answers.append(&mut aliases);
                return Ok(found);
            }
            if end == name {
                return Err(NetError::Message("a DNS server sent an answer without the records of the name"));
            }
            aliases.append(&mut found.answers);
            name = end;
        }
        Err(NetError::Message("a name in DNS has too many aliases"))
    }

    /// The answer of the first server that has one.
    async fn ask(&self, name: &Name, kind: RecordType) -> Result<DnsResponse, NetError> {
        // The connections end with it.
        let runtime = TokioRuntimeProvider::default();
        let mut outcome = NetError::NoConnections;
        for server in &self.servers {
            match self.ask_server(&runtime, *server, Query::query(name.clone(), kind)).await {
                Err(error) if !error.is_no_records_found() => outcome = error,
                answer => return answer,
            }
        }
        Err(outcome)
    }

    /// Asks over UDP, and again over TCP if the answer is too long for that.
    async fn ask_server(
        &self,
        runtime: &TokioRuntimeProvider,
        server: SocketAddr,
        query: Query,
    ) -> Result<DnsResponse, NetError> {
        let udp =
            UdpClientStream::builder(server, runtime.clone()).with_timeout(Some(QUERY_TIMEOUT)).exchange();
        let mut response = self.send(&udp, query.clone()).await?;
        if response.truncation {
            let tcp = TcpClientStream::exchange(server, None, QUERY_TIMEOUT, None, runtime.clone()).await?;
            response = self.send(&tcp, query).await?;
        }
        DnsError::from_response(response).map_err(NetError::from)
    }

    async fn send(
        &self,
        exchange: &DnsExchange<TokioRuntimeProvider>,
        query: Query,
    ) -> Result<DnsResponse, NetError> {
        exchange.lookup(query, self.options).next().await.unwrap_or(Err(NetError::Timeout))
    }
}

/// The name at the end of the aliases of `name`.
fn end_of_aliases(answers: &[Record], name: &Name) -> Name {
    let mut end = name;
    // Aliases that form a circle end too.
    for _ in 0..MAX_ALIASES {
        let target = answers.iter().find_map(|record| match &record.data {
            RData::CNAME(target) if record.name == *end => Some(&target.0),
            _ => None,
        });
        let Some(target) = target else { break };
        end = target;
    }
    end.clone()
}

#[cfg(test)]
mod tests {
    use hickory_net::proto::rr::rdata::CNAME;
    use hob_testkit::{DnsAnswer, DnsServer};

    use super::*;

    fn name(text: &str) -> Name {
        Name::from_utf8(text).unwrap()
    }

    fn names(servers: &NameServers, text: &str) -> Vec<String> {
        servers.full_names(&name(text)).iter().map(Name::to_string).collect()
    }

    const CLUSTER: &str = "\
        # Written by the cluster\n\
        nameserver 10.96.0.10\n\
        nameserver fd00::10\n\
        domain hob.svc.cluster.local\n\
        search hob.svc.cluster.local svc.cluster.local --\n\
        options ndots:5 edns0 from-the-future\n";

    #[test]
    fn the_servers_of_the_system_are_read() {
        let found = NameServers::read(CLUSTER.as_bytes()).unwrap();
        let expected = NameServers {
            servers: vec!["10.96.0.10:53".parse().unwrap(), "[fd00::10]:53".parse().unwrap()],
            domains: vec![name("hob.svc.cluster.local"), name("svc.cluster.local")],
            dots: 5,
            options: DnsRequestOptions::default(),
        };
        assert_eq!(found, expected);
        let plain = NameServers::read(b"domain lan\nnameserver 192.168.1.1").unwrap();
        assert_eq!((plain.dots, plain.options.use_edns), (1, false));
        assert!(NameServers::read(b"search lan\n").unwrap_err().to_string().contains("names no server"));
    }

    #[test]
    fn short_names_are_completed_first_and_long_names_last() {
        let cluster = NameServers::read(CLUSTER.as_bytes()).unwrap();
        assert_eq!(
            names(&cluster, "vllm"),
            ["vllm.hob.svc.cluster.local.", "vllm.svc.cluster.local.", "vllm."]
        );
        assert_eq!(names(&cluster, "vllm.svc."), ["vllm.svc."], "a final dot makes it complete");
        let home = NameServers::read(b"domain lan\nnameserver 192.168.1.1").unwrap();
        assert_eq!(names(&home, "gpu"), ["gpu.lan.", "gpu."]);
        assert_eq!(names(&home, "gpu.example"), ["gpu.example.", "gpu.example.lan."]);
        let consul = NameServers::only("127.0.0.1:8600".parse().unwrap());
        assert_eq!(names(&consul, "vllm"), ["vllm."]);
    }

    #[tokio::test]
    async fn a_name_about_which_no_server_answers_is_not_without_records() {
        let dns = DnsServer::start(30).await;
        let servers = NameServers { domains: vec![name("lan")], ..NameServers::only(dns.address()) };
        dns.set("gpu.lan", DnsAnswer::Failure);
        let error = servers.look_up(&name("gpu"), RecordType::A).await.unwrap_err();
        assert!(!error.is_no_records_found(), "{error}");
        dns.set("gpu.lan", DnsAnswer::addresses(&[]));
        let error = servers.look_up(&name("gpu"), RecordType::A).await.unwrap_err();
        assert!(error.is_no_records_found(), "{error}");
        dns.set("gpu.lan", DnsAnswer::addresses(&["10.0.0.1", "10.0.0.2"]));
        let found = servers.look_up(&name("gpu"), RecordType::A).await.unwrap();
        assert_eq!(found.answers.len(), 2);
    }

    #[tokio::test]
    async fn the_next_server_answers_for_one_that_is_silent() {
        let (silent, dns) = (DnsServer::start(30).await, DnsServer::start(30).await);
        silent.set("vllm.svc", DnsAnswer::Silence);
        dns.set("vllm.svc", DnsAnswer::addresses(&["10.0.0.1"]));
        let servers = NameServers {
            servers: vec![silent.address(), dns.address()],
            ..NameServers::only(dns.address())
        };
        let found = servers.look_up(&name("vllm.svc"), RecordType::A).await.unwrap();
        assert_eq!(found.answers.len(), 1);
    }

    #[tokio::test]
    async fn an_alias_is_followed_until_there_are_records() {
        let dns = DnsServer::start(30).await;
        let servers = NameServers::only(dns.address());
        dns.set("vllm.svc", DnsAnswer::alias("gpus.lan"));
        dns.set("gpus.lan", DnsAnswer::alias("gpu.lan"));
        dns.set("gpu.lan", DnsAnswer::addresses(&["10.0.0.1"]));
        let found = servers.look_up(&name("vllm.svc"), RecordType::A).await.unwrap();
        let kinds: Vec<RecordType> = found.answers.iter().map(Record::record_type).collect();
        assert_eq!(kinds, [RecordType::A, RecordType::CNAME, RecordType::CNAME]);
        dns.set("gpu.lan", DnsAnswer::addresses(&[]));
        let error = servers.look_up(&name("vllm.svc"), RecordType::A).await.unwrap_err();
        assert!(error.is_no_records_found(), "{error}");
        // The hosts stay if the target cannot be looked up, or the aliases form a circle.
        for answer in [DnsAnswer::Failure, DnsAnswer::alias("vllm.svc")] {
            dns.set("gpu.lan", answer);
            let error = servers.look_up(&name("vllm.svc"), RecordType::A).await.unwrap_err();
            assert!(!error.is_no_records_found(), "{error}");
        }
    }

    #[test]
    fn aliases_of_one_answer_lead_to_their_end_and_not_in_a_circle() {
        let alias = |from: &str, to: &str| Record::from_rdata(name(from), 30, RData::CNAME(CNAME(name(to))));
        let chain = [alias("b.", "c."), alias("a.", "b."), alias("x.", "y.")];
        assert_eq!(end_of_aliases(&chain, &name("A.")), name("c."));
        assert_eq!(end_of_aliases(&chain, &name("z.")), name("z."));
        let circle = [alias("a.", "b."), alias("b.", "a.")];
        assert_eq!(end_of_aliases(&circle, &name("a.")), name("a."));
    }
}
