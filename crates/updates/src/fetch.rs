//! Reads `latest.json`, within limits of time and size.
//!
//! The owner chose the address, so it may be on the local network. A redirect is chosen by a server: it reaches public addresses only.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hob_net::egress::{AddressPolicy, CheckedResolver, system_lookup};
use hob_net::{HttpClientOptions, ProxyUse, USER_AGENT, http_client, response_body, root_cause};
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, LOCATION};
use reqwest::{Client, Response};
use tokio::io::AsyncReadExt;
use url::{Host, Url};

use crate::address::ReleaseAddress;
use crate::error::UpdateError;
use crate::release::LatestRelease;

const FILE: &str = "latest.json";

/// The largest `latest.json`.
const MAX_BYTES: usize = 256 << 10;

/// Servers of releases redirect to their store of files.
const MAX_REDIRECTS: usize = 5;

/// The newest release at an address. `limit` is the time for everything.
pub async fn latest_release(address: &ReleaseAddress, limit: Duration) -> Result<LatestRelease, UpdateError> {
    let place = address.of_file(FILE);
    let reading = async {
        match address {
            ReleaseAddress::Web(_) => download(&place).await,
            ReleaseAddress::Directory(directory) => read_file(&directory.join(FILE), &place).await,
        }
    };
    let json = tokio::time::timeout(limit, reading)
        .await
        .map_err(|_| UpdateError::Timeout { address: place.clone(), limit })??;
    LatestRelease::parse(&json, &place)
}

async fn read_file(path: &Path, place: &str) -> Result<Vec<u8>, UpdateError> {
    let failed = |error: std::io::Error| unreachable(place, error.to_string());
    let file = tokio::fs::File::open(path).await.map_err(failed)?;
    let mut json = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut json).await.map_err(failed)?;
    if json.len() > MAX_BYTES { Err(too_large(place)) } else { Ok(json) }
}

async fn download(place: &str) -> Result<Vec<u8>, UpdateError> {
    let mut url = Url::parse(place).map_err(|error| unreachable(place, error.to_string()))?;
    let mut client = new_client(place, HttpClientOptions { proxy: ProxyUse::towards(&url), ..options() })?;
    for _ in 0..=MAX_REDIRECTS {
        // No compression, because a small body could unpack to gigabytes.
        let request =
            client.get(url.clone()).header(ACCEPT, "application/json").header(ACCEPT_ENCODING, "identity");
        let response = request.send().await.map_err(|error| unreachable(place, root_cause(&error)))?;
        if !response.status().is_redirection() {
            return read(response, place).await;
        }
        let target =
            response.headers().get(LOCATION).and_then(|target| target.to_str().ok()).unwrap_or_default();
        url = redirected(&url, target, place)?;
        let resolver = CheckedResolver { policy: AddressPolicy::public_only(), lookup: system_lookup() };
        // A proxy would resolve names itself, without the check.
        client = new_client(
            place,
            HttpClientOptions { proxy: ProxyUse::Never, resolver: Some(Arc::new(resolver)), ..options() },
        )?;
    }
    Err(UpdateError::Redirect {
        address: place.to_owned(),
        target: url.to_string(),
        reason: "there are too many redirects",
    })
}

fn options() -> HttpClientOptions {
    HttpClientOptions { user_agent: Some(USER_AGENT), ..HttpClientOptions::default() }
}

fn new_client(place: &str, options: HttpClientOptions) -> Result<Client, UpdateError> {
    http_client(options).map_err(|error| unreachable(place, root_cause(&error)))
}

/// The target of a redirect, if it may be followed. Names are checked when they are resolved, numeric addresses here.
fn redirected(from: &Url, target: &str, place: &str) -> Result<Url, UpdateError> {
    let refused = |reason| UpdateError::Redirect {
        address: place.to_owned(),
        target: target.chars().take(200).collect(),
        reason,
    };
    let url = from.join(target).map_err(|_| refused("it is no address"))?;
    if url.scheme() != "https" {
        return Err(refused("it is not https"));
    }
    let address: IpAddr = match url.host() {
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        Some(Host::Domain(_)) => return Ok(url),
        None => return Err(refused("it has no host")),
    };
    let socket = SocketAddr::new(address, url.port_or_known_default().unwrap_or(443));
    if AddressPolicy::public_only().permits(socket) { Ok(url) } else { Err(refused("it is not public")) }
}

async fn read(response: Response, place: &str) -> Result<Vec<u8>, UpdateError> {
    if !response.status().is_success() {
        return Err(UpdateError::Status { address: place.to_owned(), status: response.status().as_u16() });
    }
    let json = response_body(response, MAX_BYTES).await;
    json.map_err(|error| unreachable(place, root_cause(&error)))?.ok_or_else(|| too_large(place))
}

fn unreachable(place: &str, reason: String) -> UpdateError {
    UpdateError::Unreachable { address: place.to_owned(), reason }
}

fn too_large(place: &str) -> UpdateError {
    UpdateError::TooLarge { address: place.to_owned(), limit: MAX_BYTES }
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;
