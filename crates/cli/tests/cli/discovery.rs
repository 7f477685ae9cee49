//! Hosts of an engine that DNS lists, with the real program.

use hob_testkit::{DnsAnswer, DnsServer, FakeServer, Reply, free_port};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::home::{Home, engines_config};
use crate::http::{chat, get};
use crate::running::Running;

const NAME: &str = "vllm.svc";
const ANSWER: &str = "{\"object\":\"chat.completion\",\"model\":\"smollm2\",\"choices\":[{\"index\":0,\"message\":\
    {\"role\":\"assistant\",\"content\":\"Yes.\"},\"finish_reason\":\"stop\"}]}";

/// Two servers on one port of two loopback addresses.
async fn pods() -> (u16, [FakeServer; 2]) {
    loop {
        let port = free_port();
        let (one, other) =
            (TcpListener::bind(("127.0.0.1", port)).await, TcpListener::bind(("127.0.0.2", port)).await);
        if let (Ok(one), Ok(other)) = (one, other) {
            return (port, [one, other].map(pod));
        }
    }
}

fn pod(listener: TcpListener) -> FakeServer {
    FakeServer::on(listener, |request| match request.path.as_str() {
        "/v1/models" => Reply::json(200, r#"{"object":"list","data":[{"id":"smollm2","object":"model"}]}"#),
        _ => Reply::json(200, ANSWER),
    })
}

fn questions(server: &FakeServer) -> usize {
    server.requests().iter().filter(|request| request.path == "/v1/chat/completions").count()
}

fn home(dns: &DnsServer, port: u16) -> Home {
    let config = engines_config(&[("vllm", "http://127.0.0.1:9")]);
    let discover = format!("[engine.vllm]\ndiscover = \"dns://{}/{NAME}:{port}\"\n", dns.address());
    Home::with_config(&config.replace("[engine.vllm]\n", &discover))
}

async fn ask(address: &str, question: &str) -> String {
    let body = format!(
        r#"{{"model":"smollm2","agent":"none","messages":[{{"role":"user","content":"{question}"}}]}}"#
    );
    chat(address, &body).await.all().await
}

/// The hosts that the metrics list.
async fn listed_hosts(address: &str) -> Vec<String> {
    let page = get(address, "/metrics").await.all().await;
    let lines =
        page.lines().filter_map(|line| line.strip_prefix("hob_engine_host_info{engine=\"vllm\",host=\""));
    lines.map(|line| line.split('"').next().expect("an address").to_owned()).collect()
}

#[tokio::test]
async fn requests_follow_the_hosts_in_dns() {
    let (port, pods) = pods().await;
    let dns = DnsServer::start(1).await;
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1", "127.0.0.2"]));
    let server = Running::start(&home(&dns, port), &[]).await;
    let address = server.address().to_owned();
    assert!(
        server.summary[0].contains(&format!("vllm at dns://{}/{NAME}:{port}", dns.address())),
        "{:?}",
        server.summary
    );
    for number in 0..20 {
        let answer = ask(&address, &format!("question {number}")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let asked = pods.each_ref().map(questions);
    assert!(asked[0] > 0 && asked[1] > 0 && asked[0] + asked[1] == 20, "{asked:?}");
    let both = [format!("http://127.0.0.1:{port}"), format!("http://127.0.0.2:{port}")];
    assert_eq!(listed_hosts(&address).await, both);

    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.2"]));
    while listed_hosts(&address).await != both[1..] {}
    // A failure changes nothing, and is logged once.
    dns.set(NAME, DnsAnswer::Failure);
    dns.asked_again(8).await;
    for number in 0..10 {
        let answer = ask(&address, &format!("question {number}")).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(pods.each_ref().map(questions), [asked[0], asked[1] + 10]);
    let ran = server.terminate().await;
    assert_eq!(
        (ran.code, ran.stderr.matches("the DNS lookup failed").count()),
        (Some(0), 1),
        "{}",
        ran.stderr
    );
}

/// The status and the body.
async fn ready(address: &str) -> (String, String) {
    let answer = get(address, "/health/ready").await.all().await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).expect("a status").to_owned(), body.to_owned())
}

#[tokio::test]
async fn a_server_starts_before_its_engines_and_is_ready_when_one_answers() {
    let (port, _pods) = pods().await;
    let dns = DnsServer::start(1).await;
    dns.set(NAME, DnsAnswer::addresses(&[]));
    let server = Running::start(&home(&dns, port), &[]).await;
    let address = server.address().to_owned();
    let place = format!("vllm at dns://{}/{NAME}:{port}", dns.address());
    assert_eq!(server.summary[0], format!("Engine  {place} (does not answer yet)"));
    let (status, body) = ready(&address).await;
    assert!(status == "503" && body.contains(&place), "{status} {body}");
    assert!(get(&address, "/health/live").await.all().await.starts_with("HTTP/1.1 200"));
    let refused = ask(&address, "too early").await;
    assert!(refused.starts_with("HTTP/1.1 502") && refused.contains("retry-after: 5\r\n"), "{refused}");
    assert!(refused.contains("engine_unreachable"), "{refused}");

    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1"]));
    while ready(&address).await.0 != "200" {}
    let answer = ask(&address, "now").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // It stays ready when its engines are away again.
    dns.set(NAME, DnsAnswer::addresses(&[]));
    while !listed_hosts(&address).await.is_empty() {}
    assert_eq!(ready(&address).await.0, "200");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn the_doctor_shows_the_hosts_or_why_there_are_none() {
    let (port, _pods) = pods().await;
    let dns = DnsServer::start(30).await;
    dns.set(NAME, DnsAnswer::addresses(&["127.0.0.1", "127.0.0.2"]));
    let home = home(&dns, port);
    let place = format!("dns://{}/{NAME}:{port}", dns.address());
    assert_eq!(
        message_of(&home).await,
        format!("{place} → http://127.0.0.1:{port}, http://127.0.0.2:{port}, 1 model")
    );
    dns.set(NAME, DnsAnswer::addresses(&[]));
    let message = message_of(&home).await;
    assert!(message.contains("DNS lists no host under this name"), "{message}");
    // The error of a question says the same, and what to do.
    let ran = home.run(&["ask", "Hello?"]).await;
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains(&format!("that DNS lists them under {NAME}")), "{}", ran.stderr);
}

/// What `hob doctor` says of vLLM.
async fn message_of(home: &Home) -> String {
    let ran = home.run(&["doctor", "--json"]).await;
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("a list");
    let check = checks.iter().find(|check| check["name"] == "vllm").expect("a check of vLLM");
    check["message"].as_str().expect("text").to_owned()
}
