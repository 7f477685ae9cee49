//! Values that several commands take, and the check of their form.

use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use hob_config::{AgentName, EngineName, RouterName};
use hob_core::{InvalidValue, MaxTokens, Temperature};
use hob_memory::MemoryBackend;
use hob_routing::Rating;

/// Whether the network may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkAccess {
    Online,
    Offline,
}

impl From<bool> for NetworkAccess {
    /// From the flag `--offline`.
    fn from(offline: bool) -> Self {
        if offline { NetworkAccess::Offline } else { NetworkAccess::Online }
    }
}

/// An agent, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentChoice {
    None,
    Agent(AgentName),
}

pub fn engines() -> impl TypedValueParser<Value = EngineName> {
    PossibleValuesParser::new(EngineName::ALL.map(EngineName::as_str))
        .try_map(|name| name.parse::<EngineName>())
}

pub fn agents() -> impl TypedValueParser<Value = AgentChoice> {
    // In the configuration, the empty text means no agent.
    let none = PossibleValue::new("none").alias("");
    let agents = AgentName::ALL.map(|agent| match agent {
        AgentName::Codeact => PossibleValue::new(agent.as_str()).alias("openhands"),
        other => PossibleValue::new(other.as_str()),
    });
    PossibleValuesParser::new(agents.into_iter().chain([none])).try_map(|name| match name.as_str() {
        "" | "none" => Ok(AgentChoice::None),
        name => name.parse().map(AgentChoice::Agent),
    })
}

pub fn routers() -> impl TypedValueParser<Value = RouterName> {
    PossibleValuesParser::new(RouterName::ALL.map(RouterName::as_str))
        .try_map(|name| name.parse::<RouterName>())
}

pub fn ratings() -> impl TypedValueParser<Value = Rating> {
    PossibleValuesParser::new(Rating::ALL.map(Rating::as_str))
        .try_map(|word| Rating::parse(&word).ok_or("expected good or bad"))
}

pub fn backends() -> impl TypedValueParser<Value = MemoryBackend> {
    PossibleValuesParser::new(MemoryBackend::ALL.map(MemoryBackend::as_str))
        .try_map(|name| MemoryBackend::parse(&name).ok_or("expected sqlite, vector or hybrid"))
}

/// Where a server listens; 0 leaves the choice to the system.
pub fn port(text: &str) -> Result<u16, String> {
    text.parse().map_err(|_| "expected a port number from 0 to 65535".to_owned())
}

/// A number whose range is checked elsewhere.
pub fn whole<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

/// How many to show.
pub fn count(text: &str) -> Result<usize, String> {
    let number = text.parse::<usize>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number, at least 1".to_owned())
}

pub fn temperature(text: &str) -> Result<Temperature, String> {
    let value = text.parse().map_err(|_| "expected a number between 0.0 and 2.0".to_owned())?;
    Temperature::new(value).map_err(|error: InvalidValue| error.to_string())
}

pub fn max_tokens(text: &str) -> Result<MaxTokens, String> {
    let value = text.parse().map_err(|_| "expected a whole number, at least 1".to_owned())?;
    MaxTokens::new(value).map_err(|error: InvalidValue| error.to_string())
}
