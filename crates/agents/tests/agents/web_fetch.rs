//! `web_fetch` against real sockets: what it reads, and what it cannot be made to reach.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_agents::builtin::web_fetch::{WebFetch, WebFetchOptions};
use hob_core::{Permit, Reach, Tool};
use hob_net::egress::{AddressLookup, AddressPolicy};
use hob_testkit::{FakeServer, Reply};
use serde_json::json;

/// This machine, its network and the metadata of clouds, in every spelling.
const PRIVATE: &str = "
    127.0.0.2 127.2 2130706434 0x7f000002 0x7f.0.0.2 017700000002 0177.0.0.2 127.0.0.2. 0 0.0.0.0 [::1]
    [::] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::]
    [2001:0:7f00:1::] [fe80::1] [fd00::1] 10.0.0.1 192.168.1.1 172.16.0.1 169.254.169.254 100.64.0.1
    １２７.0.0.2 127。0。0。2 localhost LOCALHOST localhost. a.localhost printer.local
    metadata.google.internal";

/// No test may resolve a name.
fn no_names() -> AddressLookup {
    Arc::new(|name| panic!("looked up {name}"))
}

/// Every name has these addresses.
fn names_at(addresses: &'static [&'static str]) -> AddressLookup {
    Arc::new(|_| {
        Box::pin(async { Ok(addresses.iter().map(|address| address.parse::<IpAddr>().unwrap()).collect()) })
    })
}

fn options(server: &FakeServer) -> WebFetchOptions {
    WebFetchOptions {
        policy: AddressPolicy::public_only().with_exception(server.address()),
        lookup: no_names(),
        timeout: Duration::from_secs(10),
        ..WebFetchOptions::default()
    }
}

async fn fetch(options: WebFetchOptions, url: &str) -> Result<String, String> {
    let tool = WebFetch::new(options);
    tool.call(json!({ "url": url })).await.map_err(|error| error.0)
}

fn html(body: &str) -> Reply {
    Reply::new(200, "text/html; charset=utf-8", body)
}

fn redirect(target: &str) -> Reply {
    Reply::new(302, "text/plain", "").header("location", target)
}

#[tokio::test]
async fn a_page_comes_back_as_text_with_title_headings_and_links() {
    let page = html(
        "<title>Tea</title><script>x()</script><nav>menu</nav><h1>Green tea</h1><p>See <a href='/b'>black</a>.",
    );
    let server = FakeServer::replying(page).await;
    let read = fetch(options(&server), &format!("{}/tea#top", server.url())).await.unwrap();
    let url = server.url();
    assert_eq!(read, format!("Title: Tea\nURL: {url}/tea\n\n# Green tea\n\nSee black ({url}/b)."));
    let request = &server.requests()[0];
    assert_eq!(request.header("accept-encoding"), Some("identity"));
    assert_eq!((request.header("cookie"), request.header("authorization")), (None, None));
}

#[tokio::test]
async fn json_and_text_are_unchanged_and_other_content_is_refused() {
    let server = FakeServer::start(|request| match request.path.as_str() {
        "/json" => Reply::json(200, "{\"a\": [1, 2]}"),
        "/feed" => Reply::new(200, "application/atom+xml", "<feed/>"),
        "/latin" => Reply::new(200, "text/plain; charset=latin1", b"caf\xe9".to_vec()),
        "/picture" => Reply::new(200, "image/png", b"\x89PNG".to_vec()),
        "/empty" => html("<script>everything()</script>"),
        "/bomb" => html("x").header("content-encoding", "gzip"),
        _ => Reply::new(404, "text/html", "nope"),
    })
    .await;
    let at = async |path: &str| fetch(options(&server), &format!("{}{path}", server.url())).await;
    assert!(at("/json").await.unwrap().ends_with("\n\n{\"a\": [1, 2]}"));
    assert!(at("/feed").await.unwrap().ends_with("<feed/>"));
    assert!(at("/latin").await.unwrap().ends_with("café"));
    assert!(at("/picture").await.unwrap_err().contains("image/png"));
    assert!(at("/empty").await.unwrap_err().contains("no readable text"));
    assert!(at("/bomb").await.unwrap_err().contains("compressed (gzip)"));
    assert_eq!(at("/missing").await.unwrap_err(), "the server answered 404 Not Found");
}

#[tokio::test]
async fn an_endless_page_is_cut() {
    let server =
        FakeServer::replying(Reply::new(200, "text/plain", vec![b'x'; 3 << 20]).in_packets_of(64 << 10))
            .await;
    let options = WebFetchOptions { max_bytes: 100_000, ..options(&server) };
    let read = fetch(options, &server.url()).await.unwrap();
    assert!(read.ends_with("x\n\n[the page is longer; this is its beginning]"));
    assert_eq!(read.matches('x').count(), 100_000);
}

#[tokio::test]
async fn a_silent_server_costs_at_most_the_timeout() {
    for reply in [Reply::silence(), html("<p>begin").then_silence()] {
        let server = FakeServer::replying(reply).await;
        let mut timeout = Duration::from_millis(300);
        loop {
            let refused =
                fetch(WebFetchOptions { timeout, ..options(&server) }, &server.url()).await.unwrap_err();
            assert!(refused.starts_with("no answer within"), "{refused}");
            // On a busy machine the time may be up before the request is sent.
            if !server.requests().is_empty() {
                break;
            }
            timeout *= 2;
        }
        server.hung_up(1).await;
    }
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_notation() {
    let server = FakeServer::replying(html("reached")).await;
    let port = server.address().port();
    for host in PRIVATE.split_whitespace() {
        let refused = fetch(options(&server), &format!("http://{host}:{port}/")).await.unwrap_err();
        assert!(refused.contains("not a public address"), "{host}: {refused}");
    }
    assert_eq!(server.requests(), []);
}

#[tokio::test]
async fn other_ports_and_schemes_and_credentials_are_refused() {
    let server = FakeServer::replying(html("reached")).await;
    let other = FakeServer::replying(html("reached")).await;
    let port = server.address().port();
    for (url, reason) in [
        (other.url(), "not a public address"),
        ("file:///etc/passwd".to_owned(), "only http and https"),
        ("ftp://example.org/".to_owned(), "only http and https"),
        ("data:text/plain,x".to_owned(), "only http and https"),
        (format!("http://user:pass@127.0.0.1:{port}/"), "user name or password"),
        ("example.org".to_owned(), "'example.org' is not an address: write it with https://"),
        (format!("http://127.0.0.1:{port}/{}", "x".repeat(5_000)), "longer than"),
        (String::new(), "is not an address"),
    ] {
        let refused = fetch(options(&server), &url).await.unwrap_err();
        assert!(refused.contains(reason), "{url}: {refused}");
    }
    assert_eq!((server.requests(), other.requests()), (vec![], vec![]));
}

#[tokio::test]
async fn redirects_are_followed_and_every_step_is_checked() {
    let forbidden = FakeServer::replying(html("reached")).await;
    let target = forbidden.url();
    let server = FakeServer::start(move |request| match request.path.as_str() {
        "/private" => redirect(&target),
        "/metadata" => redirect("http://169.254.169.254/latest/meta-data/"),
        "/decimal" => redirect("http://2130706433/"),
        "/file" => redirect("file:///etc/passwd"),
        "/loop" => redirect("/loop"),
        "/nowhere" => Reply::new(302, "text/plain", ""),
        "/1" => redirect("2"),
        "/2" => redirect("//end.example/there"),
        _ => html("<p>arrived"),
    })
    .await;
    let at = async |path: &str| fetch(options(&server), &format!("{}{path}", server.url())).await;
    for (path, reason) in [
        ("/private", "not a public address"),
        ("/metadata", "'169.254.169.254' is not a public address"),
        ("/decimal", "not a public address"),
        ("/file", "only http and https"),
        ("/loop", "more than 5 times"),
        ("/nowhere", "redirects without an address"),
    ] {
        let refused = at(path).await.unwrap_err();
        assert!(refused.contains(reason), "{path}: {refused}");
    }
    assert_eq!(forbidden.requests(), []);
    let private = WebFetchOptions { lookup: names_at(&["10.0.0.1"]), ..options(&server) };
    let refused = fetch(private, &format!("{}/1", server.url())).await.unwrap_err();
    assert!(refused.starts_with("'end.example' has the address 10.0.0.1"), "{refused}");
}

#[tokio::test]
async fn after_untrusted_text_a_redirect_must_stay_on_the_site() {
    let server = FakeServer::start(|request| match request.path.as_str() {
        "/out" => redirect("http://evil.example/?secret"),
        "/www" => redirect(&format!("http://www.{}/", request.header("host").unwrap())),
        _ => html("<p>arrived"),
    })
    .await;
    let port = server.address().port();
    let options = WebFetchOptions { lookup: names_at(&["127.0.0.1"]), ..options(&server) };
    let tool = WebFetch::new(options);
    let read = async |path: &str, tainted: bool| {
        let permit = Permit { tainted, ..Permit::up_to(Reach::Act) };
        let url = format!("http://docs.example:{port}{path}");
        tool.call_for(json!({ "url": url }), &permit).await.map_err(|error| error.0)
    };
    let refused = read("/out", true).await.unwrap_err();
    assert!(refused.starts_with("the page redirects to evil.example; after untrusted text"), "{refused}");
    let seen = server.requests().len();
    assert_eq!(seen, 1, "the other site was not asked");
    assert!(read("/www", true).await.unwrap().contains("arrived"));
    // Without such text redirects lead anywhere; here the other site has another port, which the policy forbids.
    assert!(!read("/out", false).await.unwrap_err().contains("redirects to evil.example"));
}

#[tokio::test]
async fn a_name_with_one_private_address_among_public_ones_is_refused() {
    let server = FakeServer::replying(html("reached")).await;
    for addresses in
        [&["93.184.216.34", "127.0.0.2"][..], &["::1"], &["2606:2800::1", "fe80::1"], &["::ffff:10.0.0.1"]]
    {
        let options = WebFetchOptions { lookup: names_at(addresses), ..options(&server) };
        let refused = fetch(options, "http://rebind.example/").await.unwrap_err();
        assert!(refused.contains("which is not public"), "{addresses:?}: {refused}");
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_connection_uses_the_checked_address() {
    let server = FakeServer::replying(html("<p>reached")).await;
    let port = server.address().port();
    let lookups = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&lookups);
    // The first answer is allowed; the second one is a private address.
    let rebinding: AddressLookup = Arc::new(move |_| {
        let first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        let address: IpAddr = if first { "127.0.0.1" } else { "10.0.0.1" }.parse().unwrap();
        Box::pin(async move { Ok(vec![address]) })
    });
    let options = WebFetchOptions { lookup: rebinding, ..options(&server) };
    let tool = WebFetch::new(options);
    let url = format!("http://rebind.example:{port}/");
    assert!(tool.call(json!({ "url": url })).await.unwrap().ends_with("reached"));
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    // A new call looks again: neither the name nor the connection is kept.
    let refused = tool.call(json!({ "url": url })).await.unwrap_err();
    assert!(refused.0.contains("10.0.0.1"), "{refused}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn an_unknown_host_is_named_in_the_error() {
    let server = FakeServer::replying(html("reached")).await;
    let unknown: AddressLookup = Arc::new(|_| Box::pin(async { Err(std::io::Error::other("no such name")) }));
    let options = WebFetchOptions { lookup: unknown, ..options(&server) };
    let refused = fetch(options, "http://nowhere.example/").await.unwrap_err();
    assert_eq!(refused, "cannot fetch from nowhere.example: no such name");
}
