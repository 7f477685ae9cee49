//! Where the keys of the identity provider come from: an address, a file, or a secret that Hob shares with a proxy. Keeps the last good
//! set: a provider that is not reachable changes nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use hob_core::Clock;
use hob_net::{HttpClientOptions, ProxyUse, USER_AGENT, http_client, response_body, root_cause};
use jiff::{SignedDuration, Timestamp};
use reqwest::{Client, Url, header};
use tokio::io::AsyncReadExt;

use crate::identity::error::{FetchError, IdentityError};
use crate::identity::signing_key::{KeySet, SHORTEST_SECRET};

/// Sets of keys have 1 to 20 KiB.
const LARGEST_SET: usize = 256 * 1024;

/// How long reading the keys may take. A request may wait for it.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// How often unknown keys of tokens, which anyone can send, cause a read.
pub(crate) const SHORTEST_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// The same as long as there are no keys at all.
const PAUSE_WITHOUT_KEYS: SignedDuration = SignedDuration::from_secs(5);

/// How long keys are fresh, if the provider does not say it, and the limits of what it may say.
const FRESH: Duration = Duration::from_secs(60 * 60);
const SHORTEST_FRESH: Duration = Duration::from_secs(5 * 60);
const LONGEST_FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// Where keys come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOrigin {
    /// The address of a JSON Web Key Set.
    Url(String),
    /// A file with one.
    File(PathBuf),
    /// A file with a secret that Hob and a proxy share.
    Secret(PathBuf),
}

enum Place {
    Url {
        client: Client,
        url: Url,
    },
    File(PathBuf),
    /// Does not change.
    Fixed,
}

/// When the keys were read.
#[derive(Default)]
struct Reads {
    last: Option<Timestamp>,
    fresh_until: Option<Timestamp>,
    /// The set as it was written.
    text: Vec<u8>,
}

/// The keys, and how to read them again.
pub(crate) struct KeySource {
    place: Place,
    keys: ArcSwap<KeySet>,
    /// Held while the keys are read, so that many requests at once read them once.
    reads: tokio::sync::Mutex<Reads>,
    clock: Arc<dyn Clock>,
}

impl KeySource {
    pub(crate) fn open(origin: &KeyOrigin, clock: Arc<dyn Clock>) -> Result<Self, IdentityError> {
        let (place, keys) = match origin {
            KeyOrigin::Url(url) => (web_place(url)?, KeySet::default()),
            KeyOrigin::File(path) => (Place::File(path.clone()), KeySet::default()),
            KeyOrigin::Secret(path) => (Place::Fixed, read_secret(path)?),
        };
        Ok(KeySource {
            place,
            keys: ArcSwap::from_pointee(keys),
            reads: tokio::sync::Mutex::default(),
            clock,
        })
    }

    pub(crate) fn keys(&self) -> arc_swap::Guard<Arc<KeySet>> {
        self.keys.load()
    }

    /// Whether a read now would do nothing.
    pub(crate) fn is_just_read(&self) -> bool {
        let now = self.clock.now();
        matches!(self.place, Place::Fixed)
            || self.reads.try_lock().is_ok_and(|reads| self.is_recent(&reads, now))
    }

    fn is_recent(&self, reads: &Reads, now: Timestamp) -> bool {
        let pause = if self.keys.load().is_empty() { PAUSE_WITHOUT_KEYS } else { SHORTEST_PAUSE };
        reads.last.is_some_and(|last| now.duration_since(last).abs() < pause)
    }

    /// Reads the keys again, unless they were just read. Returns whether there are other keys than before.
    pub(crate) async fn refresh(&self) -> bool {
        if matches!(self.place, Place::Fixed) {
            return false;
        }
        let mut reads = self.reads.lock().await;
        // After the wait for a read of another request.
        let now = self.clock.now();
        if self.is_recent(&reads, now) {
            return false;
        }
        reads.last = Some(now);
        let read = match self.fetch().await {
            Ok((text, fresh)) => {
                KeySet::read(&text).map(|keys| (text, keys, fresh)).map_err(FetchError::from)
            }
            Err(error) => Err(error),
        };
        let (read, fresh) = match read {
            Ok((text, keys, fresh)) => (Some((text, keys)), fresh),
            Err(error) => {
                let place = self.shown_place();
                tracing::warn!(
                    %place,
                    %error,
                    "the keys of the identity provider cannot be read; Hob keeps the known ones and tries \
                     again"
                );
                (None, SHORTEST_FRESH)
            }
        };
        let fresh = SignedDuration::try_from(fresh).unwrap_or(SHORTEST_PAUSE);
        reads.fresh_until = now.checked_add(fresh).ok();
        let Some((text, keys)) = read else { return false };
        if reads.text == text {
            return false;
        }
        reads.text = text;
        self.keys.store(Arc::new(keys));
        true
    }

    /// The same, and only if the keys are no longer fresh.
    pub(crate) async fn refresh_if_stale(&self) -> bool {
        let is_fresh = {
            let reads = self.reads.lock().await;
            reads.fresh_until.is_some_and(|until| self.clock.now() < until)
        };
        // Without keys, every look is one more attempt.
        if is_fresh && !self.keys.load().is_empty() {
            return false;
        }
        self.refresh().await
    }

    async fn fetch(&self) -> Result<(Vec<u8>, Duration), FetchError> {
        match &self.place {
            Place::Url { client, url } => fetch_url(client, url).await,
            Place::File(path) => {
                let mut text = Vec::new();
                let file = tokio::fs::File::open(path).await?;
                file.take(LARGEST_SET as u64 + 1).read_to_end(&mut text).await?;
                if text.len() > LARGEST_SET {
                    return Err(FetchError::TooLarge(LARGEST_SET));
                }
                Ok((text, SHORTEST_FRESH))
            }
            Place::Fixed => Ok((Vec::new(), LONGEST_FRESH)),
        }
    }

    fn shown_place(&self) -> String {
        match &self.place {
            Place::Url { url, .. } => without_password(url.clone()),
            Place::File(path) => path.display().to_string(),
            Place::Fixed => "secret_file".to_owned(),
        }
    }
}

/// An address for the log, without its user and password.
fn without_password(mut url: Url) -> String {
    match url.set_username("").and_then(|()| url.set_password(None)) {
        Ok(()) => url.to_string(),
        Err(()) => url.origin().ascii_serialization(),
    }
}

fn web_place(text: &str) -> Result<Place, IdentityError> {
    let no_address = |reason: String| IdentityError::NoAddress { url: text.to_owned(), reason };
    let url = Url::parse(text).map_err(|error| no_address(error.to_string()))?;
    match url.scheme() {
        "https" => {}
        "http" if hob_net::is_loopback(&url) => {}
        "http" => return Err(IdentityError::NotEncrypted { url: text.to_owned() }),
        other => return Err(no_address(format!("'{other}' is not https"))),
    }
    let options = HttpClientOptions {
        user_agent: Some(USER_AGENT),
        proxy: ProxyUse::towards(&url),
        connect_timeout: FETCH_TIMEOUT,
        timeout: Some(FETCH_TIMEOUT),
        // Each thread of the server has its own runtime, and a connection must not outlive the one that made it.
        max_idle_per_host: 0,
        ..HttpClientOptions::default()
    };
    let client = http_client(options).map_err(|error| IdentityError::Client(root_cause(&error)))?;
    Ok(Place::Url { client, url })
}

async fn fetch_url(client: &Client, url: &Url) -> Result<(Vec<u8>, Duration), FetchError> {
    let failed = |error: reqwest::Error| FetchError::Http(root_cause(&error));
    let request = client.get(url.clone()).header(header::ACCEPT, "application/json");
    let response = request.send().await.map_err(failed)?;
    if response.status() != 200 {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    let fresh =
        fresh_for(response.headers().get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok()));
    let text = response_body(response, LARGEST_SET).await.map_err(failed)?;
    Ok((text.ok_or(FetchError::TooLarge(LARGEST_SET))?, fresh))
}

/// What `max-age` says, within limits.
fn fresh_for(cache_control: Option<&str>) -> Duration {
    let max_age = cache_control.into_iter().flat_map(|value| value.split(',')).find_map(|directive| {
        let seconds = directive.trim().to_ascii_lowercase();
        seconds.strip_prefix("max-age=")?.trim_matches('"').parse::<u64>().ok()
    });
    max_age.map_or(FRESH, Duration::from_secs).clamp(SHORTEST_FRESH, LONGEST_FRESH)
}

fn read_secret(path: &Path) -> Result<KeySet, IdentityError> {
    let text =
        std::fs::read(path).map_err(|source| IdentityError::SecretFile { path: path.to_owned(), source })?;
    let secret = text.trim_ascii();
    if secret.len() < SHORTEST_SECRET {
        return Err(IdentityError::ShortSecret { path: path.to_owned() });
    }
    Ok(KeySet::secret(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fresh_for_as_long_as_the_provider_says_within_limits() {
        for (said, seconds) in [
            (None, 3_600),
            (Some("public, max-age=7200, must-revalidate"), 7_200),
            (Some("Max-Age=600"), 600),
            (Some("max-age=0"), 300),
            (Some("max-age=99999999999"), 86_400),
            (Some("no-store"), 3_600),
            (Some("max-age=soon"), 3_600),
        ] {
            assert_eq!(fresh_for(said), Duration::from_secs(seconds), "{said:?}");
        }
    }

    #[test]
    fn the_log_does_not_show_the_password_of_the_address() {
        for (url, shown) in [
            ("https://hob:s3cret@sso.example.org/keys", "https://sso.example.org/keys"),
            ("https://hob@sso.example.org/keys?a=b", "https://sso.example.org/keys?a=b"),
            ("https://sso.example.org:8443/keys", "https://sso.example.org:8443/keys"),
        ] {
            assert_eq!(without_password(Url::parse(url).expect(url)), shown);
        }
    }

    #[test]
    fn only_an_encrypted_address_or_one_of_this_machine_is_used() {
        for url in ["https://sso.example.org/keys", "http://127.0.0.1:9/keys", "http://localhost:9/keys"] {
            assert!(web_place(url).is_ok(), "{url}");
        }
        for (url, words) in [
            ("http://sso.example.org/keys", "must begin with https://"),
            ("file:///etc/passwd", "is not https"),
            ("sso.example.org", "is not an address"),
        ] {
            let refusal = web_place(url).map(drop).expect_err(url).to_string();
            assert!(refusal.contains(words), "{refusal}");
        }
    }
}
