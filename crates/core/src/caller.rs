//! Who asks, and what follows from it. Knows nothing of how a caller proves who it is.

use crate::tool::Reach;

/// Who a request comes from, as far as Hob knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallerRole {
    /// The person whose machine this is: at the terminal, on loopback without a forwarder, or with the owner's key.
    Owner,
    /// A member of the owner's team, with a named key. The key says what it may use.
    Member,
    /// Anyone else who reaches the server while no key is set.
    Stranger,
    /// The sender of a message on a channel.
    ChannelSender,
}

impl CallerRole {
    /// The furthest that tools may reach on this caller's behalf, unless the owner allows more by name, or with a key.
    pub fn reach(self) -> Reach {
        match self {
            CallerRole::Owner => Reach::Act,
            CallerRole::Member | CallerRole::Stranger | CallerRole::ChannelSender => Reach::Pure,
        }
    }

    /// Whether this caller's request may go to a cloud provider, which the owner pays. A key overrides this; see `CallerRights`.
    pub(crate) fn may_use_cloud_without_key(self) -> bool {
        match self {
            CallerRole::Owner | CallerRole::ChannelSender => true,
            CallerRole::Member | CallerRole::Stranger => false,
        }
    }

    /// Whether request fields that Hob does not know may reach an engine. They can change how an engine runs, or where it
    /// connects to, under the owner's key.
    pub fn may_send_any_field(self) -> bool {
        self == CallerRole::Owner
    }

    /// Whether Hob downloads a picture from an address that this caller names. Everyone may send `data:` URLs.
    pub fn may_name_image_addresses(self) -> bool {
        self == CallerRole::Owner
    }

    /// Whether an error may name addresses and repeat an engine's own words.
    pub fn may_see_engine_details(self) -> bool {
        self == CallerRole::Owner
    }

    /// How often an agent may ask the engine for one answer to this caller, whatever the configuration allows.
    pub fn most_turns(self) -> u32 {
        match self {
            CallerRole::Owner | CallerRole::Member => u32::MAX,
            CallerRole::Stranger | CallerRole::ChannelSender => 10,
        }
    }

    /// How often the tool `llm` may ask an engine in one run for this caller. Each is a whole answer that others wait for.
    pub fn most_llm_calls(self) -> u32 {
        match self {
            CallerRole::Owner | CallerRole::Member => 16,
            CallerRole::Stranger | CallerRole::ChannelSender => 4,
        }
    }
}
