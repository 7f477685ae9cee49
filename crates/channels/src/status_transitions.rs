//! How a channel's status changes, as plain values. Knows no socket and no process.

use crate::types::ChannelStatus;

/// What happens to a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The channel is started.
    Connect,
    /// The gateway answered.
    Reached,
    /// The gateway cannot be reached, or does not want us.
    Unreachable,
    /// The connection broke.
    Dropped,
    /// The channel is stopped.
    Disconnect,
    /// There is no program to run the channel with.
    RuntimeMissing,
    /// The subprocess says that it is connected.
    SaysConnected,
    /// The subprocess says that it is not.
    SaysDisconnected,
    /// The subprocess says that something is wrong, or ended.
    SaysError,
}

/// The status after `trigger`.
pub(crate) fn next(status: ChannelStatus, trigger: Trigger) -> ChannelStatus {
    match (status, trigger) {
        // An attempt after a failure stays an error until it succeeds: that is what people need to see.
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
    fn whatever_it_was_a_reachable_gateway_makes_it_connected() {
        for from in ANY {
            assert_eq!(course(from, &[Trigger::Connect, Trigger::Reached])[1], Connected, "{from}");
        }
    }

    #[test]
    fn a_connected_channel_that_is_told_to_end_is_disconnected() {
        assert_eq!(next(Connected, Trigger::Disconnect), Disconnected);
    }

    #[test]
    fn a_connection_that_breaks_is_being_made_anew() {
        assert_eq!(next(Connected, Trigger::Dropped), Connecting);
    }

    #[test]
    fn reconnecting_in_time_makes_it_connected_again() {
        let course = course(Connected, &[Trigger::Dropped, Trigger::Connect, Trigger::Reached]);
        assert_eq!(course, [Connecting, Connecting, Connected]);
    }

    #[test]
    fn reconnecting_in_vain_is_an_error_and_is_tried_again() {
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
    fn without_a_program_to_run_it_is_an_error() {
        for from in ANY {
            assert_eq!(course(from, &[Trigger::Connect, Trigger::RuntimeMissing])[1], Error, "{from}");
        }
    }

    #[test]
    fn the_subprocess_is_believed_whatever_it_was() {
        for from in ANY {
            assert_eq!(next(from, Trigger::SaysConnected), Connected, "{from}");
            assert_eq!(next(from, Trigger::SaysDisconnected), Disconnected, "{from}");
            assert_eq!(next(from, Trigger::SaysError), Error, "{from}");
        }
    }

    #[test]
    fn what_was_never_connected_and_is_tried_is_connecting() {
        for from in [Disconnected, NotConfigured, Connecting] {
            assert_eq!(next(from, Trigger::Connect), Connecting, "{from}");
        }
    }
}
