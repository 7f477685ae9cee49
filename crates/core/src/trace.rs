//! The trace context of the header `traceparent` (W3C Trace Context).

use std::fmt;

/// A place in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// Names the trace; never zero.
    pub trace: u128,
    /// Names the piece of work; never zero.
    pub span: u64,
    /// Whether the trace is sampled.
    pub sampled: bool,
}

impl TraceParent {
    /// Reads the header. `None` for a malformed one: the standard requires a new trace then, not an error.
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = text.trim().split('-');
        let version = hex(fields.next()?, 2)?;
        let trace = hex(fields.next()?, 32).filter(|trace| *trace != 0)?;
        let span = hex(fields.next()?, 16).filter(|span| *span != 0)?;
        let flags = hex(fields.next()?, 2)?;
        // A later version may say more, this one may not; and 255 is none.
        let is_readable = version != 0xff && (version > 0 || fields.next().is_none());
        let span = u64::try_from(span).ok()?;
        is_readable.then_some(TraceParent { trace, span, sampled: flags & 1 == 1 })
    }
}

/// The header's value.
impl fmt::Display for TraceParent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.sampled))
    }
}

/// So many digits in lower case, and nothing else.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_fit = text.len() == digits && text.bytes().all(is_hex);
    is_fit.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_survives_a_round_trip() {
        let parent = TraceParent::parse(EXAMPLE).unwrap();
        assert_eq!(
            parent,
            TraceParent {
                trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
                span: 0x00f0_67aa_0ba9_02b7,
                sampled: true
            }
        );
        assert_eq!(parent.to_string(), EXAMPLE);
        let unsampled = TraceParent { sampled: false, ..parent };
        assert_eq!(TraceParent::parse(&unsampled.to_string()), Some(unsampled));
    }

    #[test]
    fn a_later_version_may_say_more_than_we_know() {
        let later = format!("{}-what-the-future-holds", EXAMPLE.replacen("00", "01", 1));
        assert!(TraceParent::parse(&later).is_some());
        assert_eq!(TraceParent::parse(&format!("{EXAMPLE}-more")), None);
    }

    #[test]
    fn what_is_malformed_is_no_parent() {
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47361-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }
}
