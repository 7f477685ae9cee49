//! Why a source cannot be read.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hob_db::DatabaseError;
use hob_net::egress::ForbiddenAddress;
use reqwest::StatusCode;
use thiserror::Error;

use crate::calendar::CalendarError;
use crate::feed::FeedError;
use crate::weather::WeatherError;
use crate::xml::XmlError;

/// Redirects that are followed.
pub(crate) const MAX_REDIRECTS: usize = 5;

/// Why a source cannot be read. No message contains an address with its query, because that may be a key.
#[derive(Debug, Error)]
pub enum SourceError {
    #[error("the address is not valid: {0}. Correct it in config.toml")]
    BadUrl(String),
    #[error("only http and https can be read, not '{0}'")]
    Scheme(String),
    #[error("the server redirects to '{0}', which is not a public address. Configure the final address")]
    NotPublic(String),
    #[error("the server redirects to a private address: {0}. Configure the final address")]
    ForbiddenName(ForbiddenAddress),
    #[error("the server redirects from https to http. Configure an address that does not")]
    Unencrypted,
    #[error("the server redirects more than {MAX_REDIRECTS} times")]
    TooManyRedirects,
    #[error("the server redirects without an address")]
    RedirectWithoutTarget,
    #[error(
        "the server leads to another one, {0}, which must not get the password. Configure the address there"
    )]
    LeavesServer(String),
    #[error(
        "the password would be sent to {0} without encryption. Use an address with https; plain http is only for a server on this \
         machine, at 127.0.0.1 or localhost"
    )]
    PasswordUnencrypted(String),
    #[error("the server refuses the user name or the password ({0}). Correct them in config.toml")]
    Login(StatusCode),
    #[error("the server answered {0}")]
    Status(StatusCode),
    #[error("the answer is compressed ({0}), which was not requested")]
    Compressed(String),
    #[error("the answer is larger than {} MB", .0 >> 20)]
    TooLarge(usize),
    #[error("no complete answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("cannot read from {host}: {reason}")]
    Transport { host: String, reason: String },
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
    #[error("cannot read {}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not a plain file", path.display())]
    NotFile { path: PathBuf },
    #[error(transparent)]
    Calendar(#[from] CalendarError),
    #[error("the answer is not valid XML: {0}")]
    Xml(#[from] XmlError),
    #[error(transparent)]
    Feed(#[from] FeedError),
    #[error(transparent)]
    Weather(#[from] WeatherError),
    #[error("the page has no readable text")]
    EmptyPage,
    #[error("the page is {0}; only web pages and text can be read")]
    NotText(String),
    #[error("the server has no calendar for this user at this address")]
    NoCalendar,
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The work ended with a panic, which was already reported.
    #[error("reading the source failed unexpectedly; the log has the reason")]
    Panicked,
}
