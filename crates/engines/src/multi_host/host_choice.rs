//! Which of the available hosts gets a request. Pure.

/// An available host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostCandidate {
    pub(super) index: usize,
    /// Its number of active requests.
    pub(super) in_flight: usize,
    /// Its weight for this conversation.
    pub(super) weight: u64,
}

/// Whether a cached prefix is worth going back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheAffinity {
    Home,
    None,
}

/// A request leaves the home of its conversation for the least loaded host if the home has more than this many
/// additional requests, and at least half as many again. Below that, the cache saves more time than a shorter queue:
/// engines work on several requests at once.
const MAX_EXTRA_LOAD: usize = 4;

/// Chooses the conversation's home, unless another host is clearly less loaded; without affinity, the least loaded
/// host.
pub(super) fn choose(candidates: &[HostCandidate], loyalty: CacheAffinity) -> Option<usize> {
    let least_loaded =
        candidates.iter().min_by_key(|host| (host.in_flight, std::cmp::Reverse(host.weight)))?;
    let home = candidates.iter().max_by_key(|host| host.weight)?;
    let more = home.in_flight.saturating_sub(least_loaded.in_flight);
    let is_overloaded = more > MAX_EXTRA_LOAD && more * 2 > least_loaded.in_flight;
    match loyalty {
        CacheAffinity::Home if !is_overloaded => Some(home.index),
        CacheAffinity::Home | CacheAffinity::None => Some(least_loaded.index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts by their load. The first is the home.
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
    fn a_request_without_a_cache_goes_to_the_least_loaded_host() {
        for (in_flight, chosen) in [(&[1, 0, 2][..], 1), (&[0, 0, 0], 0), (&[3, 2, 1], 2)] {
            assert_eq!(choose(&loaded(in_flight), CacheAffinity::None), Some(chosen), "{in_flight:?}");
        }
        assert_eq!(choose(&[], CacheAffinity::None), None);
        assert_eq!(choose(&[], CacheAffinity::Home), None);
    }
}
