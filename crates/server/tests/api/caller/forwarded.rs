//! Requests through a tunnel or a proxy on this machine. They come from loopback, but are not the owner's.

use std::net::{IpAddr, SocketAddr};

use hob_config::ServerConfig;
use hob_testkit::Outside;
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::client::asking;
use crate::fixtures::{calculating, loopback_config, offered, parts, scripted};
use crate::support::TestServer;

async fn status(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> u16 {
    let request = server.client.get(server.url(path));
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_request_with_forwarding_headers_comes_from_a_stranger() {
    let allowed_hosts = vec!["hob.example.org".to_owned()];
    let server = scripted(ServerConfig { allowed_hosts, ..ServerConfig::default() }).await;
    assert_eq!(status(&server, "/metrics", &[]).await, 200);
    for marked in [
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=203.0.113.7"),
        ("x-real-ip", "203.0.113.7"),
        ("via", "1.1 proxy"),
        ("cf-connecting-ip", "203.0.113.7"),
        ("host", "hob.example.org"),
        ("host", "203.0.113.5:8000"),
    ] {
        assert_eq!(status(&server, "/metrics", &[marked]).await, 403, "{marked:?}");
        assert_eq!(
            status(&server, "/v1/models", &[marked]).await,
            200,
            "{marked:?}: a stranger, and welcome"
        );
    }
}

#[tokio::test]
async fn a_forwarded_request_with_the_key_is_the_owners() {
    let api_key = Some("s3cret".to_owned().into());
    let server = scripted(ServerConfig { api_key, ..ServerConfig::default() }).await;
    let headers = [("x-forwarded-for", "203.0.113.7"), ("authorization", "Bearer s3cret")];
    assert_eq!(status(&server, "/metrics", &headers).await, 200);
}

#[tokio::test]
async fn a_forwarded_caller_gets_only_pure_tools() {
    let engine = calculating();
    let server = TestServer::start_system(parts(engine.clone()), loopback_config()).await;
    for (header, tools) in
        [(None, vec!["calculator", "file_read"]), (Some("203.0.113.7"), vec!["calculator"])]
    {
        let request = server.client.post(server.url("/v1/chat/completions")).json(&asking(json!({})));
        let request = header.into_iter().fold(request, |request, ip| request.header("x-forwarded-for", ip));
        assert_eq!(request.send().await.unwrap().status(), 200);
        assert_eq!(offered(engine.requests().last().unwrap()), tools, "{header:?}");
    }
}

/// Forwards bytes like socat or `ssh -R`: the server sees a connection from this machine, and nothing that marks the request.
async fn tunnel(from: IpAddr, to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind((from, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut outside, _)) = listener.accept().await {
            let mut inside = TcpStream::connect(to).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut outside, &mut inside).await });
        }
    });
    address
}

#[tokio::test]
async fn a_tunnel_without_headers_is_detected_by_its_host_name() {
    let network = Outside::find();
    let mut server = scripted(ServerConfig::default()).await;
    assert_eq!(status(&server, "/metrics", &[]).await, 200);
    server.address = tunnel(network.address(), server.address).await;
    assert_eq!(status(&server, "/metrics", &[]).await, 403);
    assert_eq!(status(&server, "/v1/models", &[]).await, 200);
}
