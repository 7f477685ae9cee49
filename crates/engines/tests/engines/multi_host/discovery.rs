//! Hosts that a DNS server lists, on loopback addresses: they appear, vanish, and are balanced.

use std::cell::Cell;

use futures::StreamExt;
use hob_core::Delta;
use hob_engines::{DiscoveryOptions, FoundHost, MultiHost, MultiHostOptions, RefreshTimes};
use hob_testkit::{DnsAnswer, DnsRecord, DnsServer, FakeServer, Hold, Recorded, Reply};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use super::*;

const NAME: &str = "vllm.svc";

const FIRST: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes\"}}]}\n\n";
const REST: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\".\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

const MODELS: &str = r#"{"object":"list","data":[{"id":"smollm2","object":"model"}]}"#;

/// Servers at these loopback addresses, all on one port, as the pods of a service are.
async fn servers<const N: usize>(
    addresses: [&str; N],
    answer: impl Fn(&Recorded) -> Reply + Send + Sync + Clone + 'static,
) -> (u16, [FakeServer; N]) {
    'ports: for _ in 0..100 {
        let port = hob_testkit::free_port();
        let mut servers = Vec::new();
        for address in addresses {
            // The port can be taken on one of the addresses.
            let Ok(listener) = TcpListener::bind((address, port)).await else { continue 'ports };
            let answer = answer.clone();
            servers.push(FakeServer::on(listener, move |request| match request.path.as_str() {
                "/v1/models" => Reply::json(200, MODELS),
                "/health" => Reply::json(200, "{}"),
                _ => answer(request),
            }));
        }
        let Ok(servers) = servers.try_into() else { panic!("one server per address") };
        return (port, servers);
    }
    panic!("no port is free on all addresses")
}

fn whole(_: &Recorded) -> Reply {
    Reply::sse(format!("{FIRST}{REST}"))
}

fn quick() -> RefreshTimes {
    RefreshTimes {
        shortest: Duration::from_millis(20),
        longest: Duration::from_millis(20),
        retry: Duration::from_millis(20),
    }
}

fn discovered(dns: &str) -> Arc<dyn Engine> {
    let make = |host: &FoundHost| -> Result<Option<Arc<dyn Engine>>, EngineError> {
        let endpoint = Endpoint::new(EndpointOptions {
            tls_name: host.tls_name.clone(),
            ..EndpointOptions::new("vllm", host.url())
        })?;
        Ok(Some(Arc::new(OpenAiCompat::new(Style::VLLM, endpoint))))
    };
    let discovery = DiscoveryOptions {
        engine: "vllm".into(),
        dns: dns.parse().unwrap(),
        fixed: Vec::new(),
        make: Box::new(make),
        refresh: quick(),
    };
    MultiHost::discovered(discovery, MultiHostOptions::default())
}

/// The hosts of one name at one port.
fn by_address(dns: &DnsServer, port: u16) -> Arc<dyn Engine> {
    discovered(&format!("dns://{}/{NAME}:{port}", dns.address()))
}

fn hosts(engine: &Arc<dyn Engine>) -> Vec<String> {
    engine.members().iter().map(|host| host.address().to_owned()).collect()
}

/// Waits until the engine has this many hosts.
async fn has_hosts(engine: &Arc<dyn Engine>, count: usize) {
    while engine.members().len() != count {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn answer(engine: &Arc<dyn Engine>, question: &str) -> Result<String, EngineError> {
    let mut deltas = engine.stream(&asking(question, 8)).await?.deltas;
    let mut text = String::new();
    while let Some(delta) = deltas.next().await {
        if let Delta::Text(delta) = delta? {
            text.push_str(&delta.text);
        }
    }
    Ok(text)
}

/// How many requests for answers a server got.
fn questions(server: &FakeServer) -> usize {
    server.requests().iter().filter(|request| request.method == "POST").count()
}

#[tokio::test]
async fn requests_are_balanced_over_the_hosts_in_dns() {
    let (port, servers) = servers(["127.0.0.1", "127.0.0.2", "127.0.0.3"], whole).await;
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.3", "127.0.0.1", "127.0.0.2"]));
    // Two Hobs: the answers of the second go to the same hosts.
    let engines = [by_address(&dns, port), by_address(&dns, port)];
    for number in 0..40 {
        assert_eq!(answer(&engines[0], &format!("question {number}")).await.unwrap(), "Yes.");
    }
    let once: Vec<usize> = servers.iter().map(questions).collect();
    assert!(once.iter().all(|count| *count > 0), "{once:?}");
    for number in 0..40 {
        answer(&engines[1], &format!("question {number}")).await.unwrap();
    }
    let twice: Vec<usize> = servers.iter().map(questions).collect();
    assert_eq!(twice, once.iter().map(|count| count * 2).collect::<Vec<_>>());
    let expected: Vec<String> = (1..=3).map(|last| format!("http://127.0.0.{last}:{port}")).collect();
    assert_eq!(hosts(&engines[0]), expected);
    assert_eq!(engines[0].address(), format!("dns://{}/{NAME}:{port}", dns.address()));
}

#[tokio::test]
async fn a_host_that_appears_gets_requests_and_no_conversation_of_others_but_its_share() {
    let (port, [one, other]) = servers(["127.0.0.1", "127.0.0.2"], whole).await;
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1"]));
    let engine = by_address(&dns, port);
    for number in 0..20 {
        answer(&engine, &format!("question {number}")).await.unwrap();
    }
    assert_eq!((questions(&one), questions(&other)), (20, 0));
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.2", "127.0.0.1"]));
    has_hosts(&engine, 2).await;
    for number in 0..20 {
        answer(&engine, &format!("question {number}")).await.unwrap();
    }
    let moved = questions(&other);
    assert!((1..20).contains(&moved), "{moved}");
    assert_eq!(questions(&one) + moved, 40);
}

#[tokio::test]
async fn a_host_that_vanishes_finishes_its_stream_and_gets_no_new_request() {
    let hold = Hold::new();
    let held = hold.clone();
    let slow = move |_: &Recorded| Reply::sse(FIRST).then_held(&held, REST);
    let (port, [server]) = servers(["127.0.0.1"], slow).await;
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1"]));
    let engine = by_address(&dns, port);
    let mut running = engine.stream(&asking("a long question", 8)).await.unwrap().deltas;
    assert_eq!(running.next().await.unwrap().unwrap(), Delta::text("Yes"));

    // No host is left, so a new request has nowhere to go, and the error says why.
    dns.set(NAME, DnsAnswer::addresses(&[]));
    has_hosts(&engine, 0).await;
    let error = answer(&engine, "another question").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot reach vllm at {}: DNS lists no host under this name", engine.address())
    );
    assert!(!engine.health().await);
    assert_eq!(questions(&server), 1);

    hold.release();
    let rest: Vec<_> = running.map(Result::unwrap).collect().await;
    assert_eq!(rest.first(), Some(&Delta::text(".")));
    assert!(matches!(rest.last(), Some(Delta::Done { .. })), "{rest:?}");
}

#[tokio::test]
async fn a_failed_lookup_keeps_the_last_list() {
    let (port, [server]) = servers(["127.0.0.1"], whole).await;
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1"]));
    let engine = by_address(&dns, port);
    assert_eq!(answer(&engine, "first").await.unwrap(), "Yes.");
    dns.set(NAME, DnsAnswer::Failure);
    // The second question of these begins a lookup after the answer to the first.
    dns.asked_again(8).await;
    assert_eq!(answer(&engine, "second").await.unwrap(), "Yes.");
    assert_eq!(questions(&server), 2);
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1", "127.0.0.2"]));
    has_hosts(&engine, 2).await;
}

#[tokio::test]
async fn an_engine_whose_first_lookup_fails_is_unreachable_and_recovers() {
    let (port, _servers) = servers(["127.0.0.1"], whole).await;
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::Failure);
    let engine = by_address(&dns, port);
    let error = answer(&engine, "first").await.unwrap_err();
    assert!(matches!(error, EngineError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("the DNS lookup failed"), "{error}");
    assert!(engine.list_models().await.is_err());
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1"]));
    has_hosts(&engine, 1).await;
    assert_eq!(answer(&engine, "second").await.unwrap(), "Yes.");
}

#[tokio::test]
async fn a_name_that_does_not_exist_and_a_server_that_is_silent_are_told_apart() {
    let dns = DnsServer::start(30).await;
    let missing = discovered(&format!("dns://{}/missing.svc:8000", dns.address()));
    let error = missing.list_models().await.unwrap_err().to_string();
    assert!(error.ends_with("DNS lists no host under this name"), "{error}");
    dns.set("silent.svc", DnsAnswer::Silence);
    let silent = discovered(&format!("dns://{}/silent.svc:8000", dns.address()));
    let error = silent.list_models().await.unwrap_err().to_string();
    assert!(error.contains("the DNS lookup failed"), "{error}");
}

#[tokio::test]
async fn service_records_give_hosts_with_their_own_ports() {
    let (first_port, [first]) = servers(["127.0.0.1"], whole).await;
    let (second_port, [second]) = servers(["127.0.0.2"], whole).await;
    let dns = DnsServer::start(30).await;
    let service = |priority, port, target: &str| DnsRecord::Service { priority, port, target: target.into() };
    dns.set(
        "_http._tcp.vllm.svc",
        DnsAnswer::Records(vec![
            service(10, first_port, "pod-0.vllm.svc"),
            service(10, second_port, "pod-1.vllm.svc"),
            service(20, 1, "spare.vllm.svc"),
            service(10, 1, "."),
        ]),
    );
    dns.set("pod-0.vllm.svc", DnsAnswer::addresses(&["127.0.0.1"]));
    dns.set("pod-1.vllm.svc", DnsAnswer::addresses(&["127.0.0.2", "::1"]));
    dns.set("spare.vllm.svc", DnsAnswer::addresses(&["127.0.0.9"]));
    let engine = discovered(&format!("dns+srv://{}/_http._tcp.vllm.svc", dns.address()));
    for number in 0..20 {
        assert_eq!(answer(&engine, &format!("question {number}")).await.unwrap(), "Yes.");
    }
    assert_eq!(
        hosts(&engine),
        [format!("http://127.0.0.1:{first_port}"), format!("http://127.0.0.2:{second_port}")]
    );
    assert!(questions(&first) > 0 && questions(&second) > 0);
}

#[tokio::test]
async fn addresses_of_the_sixth_version_are_used_where_there_are_no_others() {
    let Ok(listener) = TcpListener::bind("[::1]:0").await else {
        return; // A machine without IPv6 has nothing to test.
    };
    let port = listener.local_addr().unwrap().port();
    let _server = FakeServer::on(listener, |request| match request.path.as_str() {
        "/v1/models" => Reply::json(200, MODELS),
        _ => whole(request),
    });
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::addresses(&["::1"]));
    let engine = by_address(&dns, port);
    assert_eq!(answer(&engine, "hello").await.unwrap(), "Yes.");
    assert_eq!(hosts(&engine), [format!("http://[::1]:{port}")]);
}

#[tokio::test]
async fn a_list_that_is_too_long_for_one_packet_is_complete() {
    let dns = DnsServer::start(30).await;
    let addresses: Vec<String> = (1..=50).map(|last| format!("127.0.1.{last}")).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    dns.set(NAME, DnsAnswer::addresses(&addresses));
    let engine = by_address(&dns, 8000);
    has_hosts(&engine, addresses.len()).await;
    let expected: Vec<String> = addresses.iter().map(|address| format!("http://{address}:8000")).collect();
    assert_eq!(hosts(&engine), expected);
}

/// The first message of a TLS client has the name in the clear.
#[tokio::test]
async fn an_encrypted_host_is_asked_for_the_certificate_of_its_name() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1"]));
    let engine = discovered(&format!("dns+https://{}/{NAME}:{port}", dns.address()));
    let has_arrived = Cell::new(false);
    let first_message = async {
        let mut message = vec![0; 4096];
        // On a busy machine the time of a check may be up before it has sent anything.
        let length = loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            if let Ok(length @ 1..) = socket.read(&mut message).await {
                break length;
            }
        };
        has_arrived.set(true);
        message.truncate(length);
        message
    };
    let health = async {
        loop {
            let is_healthy = engine.health().await;
            if is_healthy || has_arrived.get() {
                return is_healthy;
            }
            tokio::task::yield_now().await;
        }
    };
    let (message, healthy) = tokio::join!(first_message, health);
    assert!(message.windows(NAME.len()).any(|part| part == NAME.as_bytes()), "{message:?}");
    assert!(!healthy, "the server spoke no TLS");
    assert_eq!(hosts(&engine), [format!("https://127.0.0.1:{port}")]);
}
