//! Numbers and switches.

use std::time::Duration;

use super::text::quote;
use crate::settings_schema::{Exposure, Kind, Typed};

/// Far above any sensible setting, and far below what a semaphore or a channel cannot hold.
const MOST: usize = 1_000_000;

/// A year. Longer waits gain nothing, and some would overflow a clock.
const LONGEST: Duration = Duration::from_secs(31_536_000);

pub(crate) const FLAG: Kind<bool> = Kind {
    expected: "true or false",
    read: |typed| typed.value.as_bool(),
    write: bool::to_string,
    exposure: Exposure::Open,
};

pub(crate) const PORT: Kind<u16> = Kind {
    expected: "a number from 1 to 65535",
    read: |typed| typed.integer().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0),
    write: u16::to_string,
    exposure: Exposure::Open,
};

pub(crate) const COUNT: Kind<usize> = Kind {
    expected: "a whole number from 1 to 1000000",
    read: |typed| count(typed).filter(|count| *count > 0),
    write: usize::to_string,
    exposure: Exposure::Open,
};

pub(crate) const COUNT_OR_NONE: Kind<usize> =
    Kind { expected: "a whole number from 0 to 1000000", read: count, ..COUNT };

/// A number of layers; `None` if Hob decides.
pub(crate) const LAYERS: Kind<Option<usize>> = Kind {
    expected: "\"auto\", or a whole number from 0 to 1000000",
    read: |typed| match typed.text() {
        Some(text) => (text.trim() == AUTO).then_some(None),
        None => count(typed).map(Some),
    },
    write: |layers| layers.map_or_else(|| quote(AUTO), |layers| layers.to_string()),
    exposure: Exposure::Open,
};

const AUTO: &str = "auto";

pub(crate) const SHARE: Kind<f64> = Kind {
    expected: "a number from 0.0 to 1.0",
    read: |typed| typed.number().filter(|share| (0.0..=1.0).contains(share)),
    write: |share| format!("{share:?}"),
    exposure: Exposure::Open,
};

pub(crate) const SECONDS: Kind<Duration> = Kind {
    expected: "a number of seconds above 0 and up to 31536000 (a year)",
    read: |typed| seconds(typed).filter(|duration| !duration.is_zero()),
    write: |duration| format!("{:?}", duration.as_secs_f64()),
    exposure: Exposure::Open,
};

pub(crate) const SECONDS_OR_NONE: Kind<Duration> =
    Kind { expected: "a number of seconds from 0 to 31536000 (a year)", read: seconds, ..SECONDS };

fn count(typed: &Typed<'_>) -> Option<usize> {
    typed.integer().and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= MOST)
}

fn seconds(typed: &Typed<'_>) -> Option<Duration> {
    // Also refuses negative and infinite values, and NaN.
    Duration::try_from_secs_f64(typed.number()?).ok().filter(|duration| *duration <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_port_is_a_number_from_1_to_65535() {
        assert_eq!(read_as(&PORT, "1"), Some(1));
        assert_eq!(read_as(&PORT, "0xffff"), Some(65535));
        for bad in ["0", "65536", "-1", "80.0", "\"80\"", "true", "99999999999999999999999999"] {
            assert_eq!(read_as(&PORT, bad), None, "{bad}");
        }
    }

    #[test]
    fn seconds_may_have_a_decimal_point_but_must_be_a_real_span() {
        assert_eq!(read_as(&SECONDS, "2"), Some(Duration::from_secs(2)));
        assert_eq!(read_as(&SECONDS, "0.25"), Some(Duration::from_millis(250)));
        for bad in
            ["0", "0.0", "1e-12", "-1", "-0.5", "nan", "inf", "-inf", "1e300", "31536001", "\"5\"", "[5]"]
        {
            assert_eq!(read_as(&SECONDS, bad), None, "{bad}");
        }
    }

    #[test]
    fn a_share_is_between_none_and_all() {
        assert_eq!(read_as(&SHARE, "0"), Some(0.0));
        assert_eq!(read_as(&SHARE, "0.25"), Some(0.25));
        assert_eq!(read_as(&SHARE, "1.0"), Some(1.0));
        for bad in ["-0.1", "1.1", "nan", "inf", "\"0.5\"", "true"] {
            assert_eq!(read_as(&SHARE, bad), None, "{bad}");
        }
    }

    #[test]
    fn layers_are_a_number_or_left_to_hob() {
        assert_eq!(read_as(&LAYERS, "\"auto\""), Some(None));
        assert_eq!(read_as(&LAYERS, "0"), Some(Some(0)));
        assert_eq!(read_as(&LAYERS, "33"), Some(Some(33)));
        assert_eq!(read_as(&LAYERS, "\"all\""), None);
        assert_eq!(read_as(&LAYERS, "-1"), None);
        assert_eq!([(LAYERS.write)(&None), (LAYERS.write)(&Some(7))], ["\"auto\"", "7"]);
    }

    #[test]
    fn where_zero_means_at_once_it_is_allowed() {
        assert_eq!(read_as(&SECONDS_OR_NONE, "0"), Some(Duration::ZERO));
        assert_eq!(read_as(&SECONDS_OR_NONE, "-1"), None);
        assert_eq!(read_as(&COUNT_OR_NONE, "0"), Some(0));
        assert_eq!(read_as(&COUNT, "0"), None);
        assert_eq!(read_as(&COUNT, "1000001"), None);
    }
}
