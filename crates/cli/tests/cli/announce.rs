//! A server that other machines can reach is announced with multicast DNS, and found by a real browser of services.

use std::net::IpAddr;
use std::time::Duration;

use hob_testkit::Outside;
use mdns_sd::{Receiver, ResolvedService, ServiceDaemon, ServiceEvent};

use crate::fakes;
use crate::home::{Home, engines_config};
use crate::running::Running;

/// Much longer than it takes: the library asks for about a second whether a name is taken.
const WAIT_LIMIT: Duration = Duration::from_secs(240);

/// The next event that fits.
async fn next<T>(events: &Receiver<ServiceEvent>, fits: impl Fn(ServiceEvent) -> Option<T>) -> T {
    let search = async {
        loop {
            let event = events.recv_async().await.expect("the browser runs");
            if let Some(found) = fits(event) {
                return found;
            }
        }
    };
    tokio::time::timeout(WAIT_LIMIT, search).await.expect("the network carries multicast messages")
}

/// The service that listens on this port.
async fn service_on(events: &Receiver<ServiceEvent>, port: u16) -> ResolvedService {
    next(events, |event| match event {
        ServiceEvent::ServiceResolved(service) if service.get_port() == port => Some(*service),
        _ => None,
    })
    .await
}

fn announcing(ollama: &str) -> Home {
    Home::with_config(&engines_config(&[("ollama", ollama)]).replacen(
        "announce = false",
        "announce = true",
        1,
    ))
}

#[tokio::test]
async fn a_server_is_found_on_the_network_until_it_stops() {
    let outside = Outside::find();
    let IpAddr::V4(address) = outside.address() else { panic!("an IPv4 address") };
    let ollama = fakes::ollama().await;
    let home = announcing(&ollama.url());
    let server = Running::start(&home, &["--host", &address.to_string()]).await;
    let (_, port) = server.summary[3]
        .split_whitespace()
        .nth(1)
        .and_then(|url| url.rsplit_once(':'))
        .expect("an address with a port");
    let port: u16 = port.parse().expect("a port");

    let browser = ServiceDaemon::new().expect("a browser");
    let events = browser.browse("_http._tcp.local.").expect("a search");
    let service = service_on(&events, port).await;
    assert!(service.get_fullname().starts_with("Hob on "), "{}", service.get_fullname());
    assert!(service.get_hostname().ends_with(".local."), "{}", service.get_hostname());
    assert!(service.get_addresses_v4().contains(&address), "{service:?}");
    assert_eq!(service.get_property_val_str("path"), Some("/"));
    assert_eq!(service.get_property_val_str("version"), Some(env!("CARGO_PKG_VERSION")));

    assert_eq!(server.terminate().await.code, Some(0));
    let name = service.get_fullname().to_owned();
    next(&events, |event| match event {
        ServiceEvent::ServiceRemoved(_, removed) if removed == name => Some(()),
        _ => None,
    })
    .await;
    let _ = browser.shutdown();
}

/// A foreign name of the same network is refused, and the name of this machine is accepted, whatever it is.
#[tokio::test]
async fn the_announced_name_is_a_host_that_the_server_accepts() {
    let Some(name) = hob_net::machine_name() else { return };
    let ollama = fakes::ollama().await;
    let server = Running::start(&Home::with_engines(&[("ollama", &ollama.url())]), &[]).await;
    let asked = async |host: &str| {
        hob_net::install_crypto();
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().expect("a client");
        let url = format!("http://{}/health", server.address());
        client.get(url).header("host", host).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(asked(&format!("{name}.local:8000")).await, 200);
    assert_eq!(asked(&format!("{}.local.", name.to_uppercase())).await, 200);
    assert_eq!(asked(&format!("not-{name}.local")).await, 403);
}
