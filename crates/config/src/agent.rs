//! `[agent]`: limits of agents; and the names of the agents.

use std::str::FromStr;

use thiserror::Error;

use crate::kind::{COUNT, quote};
use crate::settings_schema::{Exposure, Kind, keys_of};

/// Settings of all agents.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// How many times an agent may ask its engine for one answer.
    pub max_turns: usize,
}

impl Default for AgentConfig {
    fn default() -> Self {
        AgentConfig { max_turns: 10 }
    }
}

keys_of! {
    AgentConfig {
        max_turns: COUNT, "Maximum turns of an agent for one answer.";
    }
}

/// Which agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AgentName {
    Simple,
    Orchestrator,
    React,
    /// Writes and runs code; `openhands` is another name for it.
    Codeact,
}

hob_core::named_variants! {
    AgentName {
        Simple => "simple",
        Orchestrator => "orchestrator",
        React => "react",
        Codeact => "codeact",
    }
}

/// A name that no agent has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown agent '{0}'; known agents: simple, orchestrator, react, codeact")]
pub struct UnknownAgent(String);

impl FromStr for AgentName {
    type Err = UnknownAgent;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if name == "openhands" {
            return Ok(AgentName::Codeact);
        }
        AgentName::parse(name).ok_or_else(|| UnknownAgent(name.escape_debug().to_string()))
    }
}

/// An agent, or `""` for none.
pub(crate) const AGENT: Kind<Option<AgentName>> = Kind {
    expected: "one of simple, orchestrator, react, codeact, or \"\" for none",
    read: |typed| match typed.text()?.trim() {
        "" => Some(None),
        name => name.parse().ok().map(Some),
    },
    write: |key| quote(key.map_or("", AgentName::as_str)),
    exposure: Exposure::OneOf(&["simple", "orchestrator", "react", "codeact"]),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn every_agent_is_read_by_its_name_and_named_in_the_messages() {
        let refusal = UnknownAgent(String::new()).to_string();
        for key in AgentName::ALL {
            assert_eq!(key.as_str().parse(), Ok(key));
            assert!(refusal.contains(key.as_str()), "{key} is missing in: {refusal}");
            assert!(AGENT.expected.contains(key.as_str()), "{key} is missing in: {}", AGENT.expected);
        }
    }

    #[test]
    fn openhands_is_another_name_of_codeact_and_empty_is_no_agent() {
        assert_eq!(read_as(&AGENT, "'openhands'"), Some(Some(AgentName::Codeact)));
        assert_eq!(read_as(&AGENT, "''"), Some(None));
        assert_eq!(read_as(&AGENT, "'orchestra'"), None);
    }
}
