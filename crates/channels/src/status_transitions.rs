//! The transitions of a channel's status. Pure.

use crate::types::ChannelStatus;

/// An event that may change the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The channel is started.
    Connect,
    /// The gateway answered.
    Reached,
    /// The gateway cannot be reached, or refuses the connection.
    Unreachable,
    /// The connection was lost.
    Dropped,
    /// The channel is stopped.
    Disconnect,
    /// The program of the channel is missing.
    RuntimeMissing,
    /// The subprocess reports that it is connected.
    SaysConnected,
    /// The subprocess reports that it is not connected.
    SaysDisconnected,
    /// The subprocess reports an error, or ended.
    SaysError,
}

/// The status after `trigger`.
pub(crate) fn next(status: ChannelStatus, trigger: Trigger) -> ChannelStatus {
    match (status, trigger) {
        // An attempt after a failure stays an error until it succeeds, so that users see the error.
        (ChannelStatus::Error, Trigger::Connect) => ChannelStatus::Error,
        (_, Trigger::Connect | Trigger::Dropped) => ChannelStatus::Connecting,
        (_, Trigger::Reached | Trigger::SaysConnected) => ChannelStatus::Connected,
        (_, Trigger::Disconnect | Trigger::SaysDisconnected) => ChannelStatus::Disconnected,
        (_, Trigger::Unreachable | Trigger::RuntimeMissing | Trigger::SaysError) => ChannelStatus::Error,
    }
}

#[cfg(test)]
mod tests {
    use ChannelStatus::{Connected, Connecting, Disconnected, Error, NotConfigured};

    use super::*;

    const ANY: [ChannelStatus; 5] = [Connected, Disconnected, Connecting, Error, NotConfigured];

    /// What became of `from`, one trigger after the other.
    fn course(from: ChannelStatus, triggers: &[Trigger]) -> Vec<ChannelStatus> {
        let mut status = from;
        triggers
            .iter()
            .map(|trigger| {
                status = next(status, *trigger);
                status
            })
            .collect()
    }

    #[test]
    fn a_reachable_gateway_is_connected_from_any_status() {
        for from in ANY {
            assert_eq!(course(from, &[Trigger::Connect, Trigger::Reached])[1], Connected, "{from}");
        }
    }

    #[test]
    fn a_stopped_channel_is_disconnected() {
        assert_eq!(next(Connected, Trigger::Disconnect), Disconnected);
    }

    #[test]
    fn a_lost_connection_is_connecting() {
        assert_eq!(next(Connected, Trigger::Dropped), Connecting);
    }

    #[test]
    fn a_reconnect_is_connected_again() {
        let course = course(Connected, &[Trigger::Dropped, Trigger::Connect, Trigger::Reached]);
        assert_eq!(course, [Connecting, Connecting, Connected]);
    }

    #[test]
    fn a_failed_reconnect_is_an_error_until_one_succeeds() {
        let triggers = [
            Trigger::Dropped,
            Trigger::Connect,
            Trigger::Unreachable,
            Trigger::Connect,
            Trigger::Unreachable,
            Trigger::Connect,
            Trigger::Reached,
        ];
        let course = course(Connected, &triggers);
        assert_eq!(course, [Connecting, Connecting, Error, Error, Error, Error, Connected]);
    }

    #[test]
    fn a_missing_program_is_an_error() {
        for from in ANY {
            assert_eq!(course(from, &[Trigger::Connect, Trigger::RuntimeMissing])[1], Error, "{from}");
        }
    }

    #[test]
    fn the_subprocess_sets_the_status_from_any_status() {
        for from in ANY {
            assert_eq!(next(from, Trigger::SaysConnected), Connected, "{from}");
            assert_eq!(next(from, Trigger::SaysDisconnected), Disconnected, "{from}");
            assert_eq!(next(from, Trigger::SaysError), Error, "{from}");
        }
    }

    #[test]
    fn a_first_attempt_is_connecting() {
        for from in [Disconnected, NotConfigured, Connecting] {
            assert_eq!(next(from, Trigger::Connect), Connecting, "{from}");
        }
    }
}
