//! Which of the hosts that may be asked is asked. Pure.

/// A host that may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostCandidate {
    pub(super) index: usize,
    /// Requests it works on.
    pub(super) in_flight: usize,
    /// How much it is the home of this conversation.
    pub(super) weight: u64,
}

/// Whether a request has a cache to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheAffinity {
    Home,
    None,
}

/// A host that works on so many requests more than the idlest is left, if that is also half as much again. Below that, what
/// the cache saves is worth more than a place nearer to the front: engines work on several requests at once.
const WORTH_MOVING: usize = 4;

/// Chooses: the conversation's home, unless another is clearly less loaded; else the least loaded.
pub(super) fn choose(candidates: &[HostCandidate], loyalty: CacheAffinity) -> Option<usize> {
    let idlest = candidates.iter().min_by_key(|host| (host.in_flight, std::cmp::Reverse(host.weight)))?;
    let home = candidates.iter().max_by_key(|host| host.weight)?;
    let more = home.in_flight.saturating_sub(idlest.in_flight);
    let is_overrun = more > WORTH_MOVING && more * 2 > idlest.in_flight;
    match loyalty {
        CacheAffinity::Home if !is_overrun => Some(home.index),
        CacheAffinity::Home | CacheAffinity::None => Some(idlest.index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts by their load; the first is home.
    fn loaded(in_flight: &[usize]) -> Vec<HostCandidate> {
        let host = |(index, in_flight): (usize, &usize)| HostCandidate {
            index,
            in_flight: *in_flight,
            weight: 1000 - index as u64,
        };
        in_flight.iter().enumerate().map(host).collect()
    }

    #[test]
    fn a_conversation_leaves_its_home_only_for_a_clearly_idler_host() {
        for (in_flight, chosen) in [
            (&[0, 0, 0][..], 0),
            (&[4, 0, 0], 0),
            (&[5, 0, 0], 1),
            (&[5, 3, 0], 2),
            (&[5, 1, 1], 0),
            (&[20, 15, 16], 0),
            (&[24, 16, 16], 0),
            (&[25, 16, 16], 1),
            (&[100, 90, 95], 0),
        ] {
            assert_eq!(choose(&loaded(in_flight), CacheAffinity::Home), Some(chosen), "{in_flight:?}");
        }
    }

    #[test]
    fn who_has_no_cache_goes_to_the_least_loaded() {
        for (in_flight, chosen) in [(&[1, 0, 2][..], 1), (&[0, 0, 0], 0), (&[3, 2, 1], 2)] {
            assert_eq!(choose(&loaded(in_flight), CacheAffinity::None), Some(chosen), "{in_flight:?}");
        }
        assert_eq!(choose(&[], CacheAffinity::None), None);
        assert_eq!(choose(&[], CacheAffinity::Home), None);
    }
}
