//! Reads the owner's sources for agents: calendars, feeds, the weather, and changes of web pages.
//!
//! A model chooses among the names of configured sources and never gives an address, so it cannot send anything out in one.
//! What the sources contain was written by others: the output of every tool is untrusted.
//!
//! | file | content |
//! |---|---|
//! | `types` | the configured sources |
//! | `service` | what can be asked |
//! | `tools` | the tools of agents |
//! | `fetch` | requests to configured addresses, with redirects through the egress guard |
//! | `calendar`, `caldav` | calendar files, and servers that have them |
//! | `feed`, `xml` | feeds, and the XML of feeds and servers |
//! | `weather` | the weather in words |
//! | `page` | the text of a page, and what is new in it |
//! | `store` | the table of watched pages |
//!
//! Knows no engine, no agent, no configuration file and no HTTP server.

mod caldav;
mod calendar;
mod error;
mod feed;
mod fetch;
#[cfg(fuzzing)]
pub mod fuzzing;
mod page;
mod period;
mod service;
pub mod store;
mod tools;
mod types;
mod weather;
mod xml;

pub use calendar::{CalendarError, CalendarEvent, CalendarReading, EventRange, EventTime};
pub use error::SourceError;
pub use feed::{FeedEntry, FeedError};
pub use service::SourceService;
pub use store::{
    COPY_TABLES, MIGRATIONS, POSTGRES_MIGRATIONS, PageSnapshot, PostgresSourceStore, SourceStore,
    SqliteSourceStore, source_store,
};
pub use tools::source_tools;
pub use types::{
    CalendarAddress, CalendarSource, ConfiguredSource, SourceHttpOptions, SourceKind, SourceLogin,
    SourceOptions, WeatherPlace, WeatherUnits, WebSource, host_name,
};
pub use weather::WeatherError;
pub use xml::XmlError;
