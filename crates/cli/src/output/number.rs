//! Numbers formatted for people.

use std::fmt::Display;
use std::time::Duration;

use hob_telemetry::Energy;

/// Memory in units of 2^10, 2^20 and 2^30 bytes, as the makers of graphics cards count it.
pub fn memory(bytes: u64) -> String {
    let kilobytes = bytes as f64 / 1024.0;
    let megabytes = kilobytes / 1024.0;
    if bytes < 1000 {
        format!("{bytes} B")
    } else if kilobytes < 999.5 {
        format!("{kilobytes:.0} KB")
    } else if megabytes < 999.5 {
        format!("{megabytes:.0} MB")
    } else {
        format!("{:.1} GB", megabytes / 1024.0)
    }
}

/// Tokens in a second, such as `8.5 tokens/s`, `85 tokens/s`.
pub fn speed(tokens_per_second: f64) -> String {
    let places = usize::from(tokens_per_second < 9.95);
    format!("{tokens_per_second:.places$} tokens/s")
}

/// A number of weights, such as `7.6B`.
pub fn weights(count: u64) -> String {
    let count = count as f64;
    for (size, unit) in [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")] {
        if count >= size {
            let shown = format!("{:.1}", count / size);
            return format!("{}{unit}", shown.strip_suffix(".0").unwrap_or(&shown));
        }
    }
    count.to_string()
}

/// A length of context, such as `128k`.
pub fn tokens(count: u64) -> String {
    if count >= 1024 && count.is_multiple_of(1024) { format!("{}k", count / 1024) } else { count.to_string() }
}

/// Such as `85 ms`, `1.25 s`.
pub fn seconds(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 0.0095 {
        format!("{:.1} ms", seconds * 1e3)
    } else if seconds < 0.9995 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// In what people are billed by, once there is enough of it: `850 J`, `12.5 Wh`, `3.40 kWh`.
pub fn energy(energy: Energy) -> String {
    let joules = energy.joules();
    let (amount, unit) = match joules {
        few if few < 3600.0 => (few, "J"),
        some if some < 3.6e6 => (some / 3600.0, "Wh"),
        many => (many / 3.6e6, "kWh"),
    };
    let places = if amount < 10.0 { 2 } else { usize::from(amount < 100.0) };
    format!("{amount:.places$} {unit}")
}

/// `1 model`, `2 models`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let plural = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Dollars to the cent; of less than a cent, the two digits that matter.
pub fn money(dollars: f64) -> String {
    if dollars == 0.0 || dollars >= 0.00995 {
        format!("${dollars:.2}")
    } else if dollars >= 0.000995 {
        format!("${dollars:.4}")
    } else if dollars >= 0.0001 {
        format!("${dollars:.5}")
    } else {
        "<$0.0001".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([98_363_034, 5_200_000_000, 0].map(memory), ["94 MB", "4.8 GB", "0 B"]);
        assert_eq!(
            [999, 1_000, 45_056, 1_023_487, 1_023_488, 1_048_051_712].map(memory),
            ["999 B", "1 KB", "44 KB", "999 KB", "1 MB", "1.0 GB"]
        );
        assert_eq!([134_515_008, 7_000_000_000, 1_500, 12].map(weights), ["134.5M", "7B", "1.5K", "12"]);
        assert_eq!([131_072, 2048, 4000, 512].map(tokens), ["128k", "2k", "4000", "512"]);
        assert_eq!([8.46, 9.96, 85.4].map(speed), ["8.5 tokens/s", "10 tokens/s", "85 tokens/s"]);
        assert_eq!(counted(1, "model"), "1 model");
        assert_eq!(counted(0, "model"), "0 models");
    }

    #[test]
    fn money_is_in_cents_as_long_as_there_is_one() {
        let shown = [0.0, 0.000_099, 0.000_123, 0.000_996, 0.003_728, 0.009_96, 0.034, 1234.5].map(money);
        let expected = ["$0.00", "<$0.0001", "$0.00012", "$0.0010", "$0.0037", "$0.01", "$0.03", "$1234.50"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn energy_is_in_the_unit_that_fits() {
        let shown = [0, 1_250_000, 850_000_000, 45_000_000_000, 12_240_000_000_000]
            .map(|microjoules| energy(Energy::from_microjoules(microjoules)));
        assert_eq!(shown, ["0.00 J", "1.25 J", "850 J", "12.5 Wh", "3.40 kWh"]);
    }

    #[test]
    fn times_have_as_many_digits_as_they_need() {
        let shown = [0, 1_234, 85_400, 999_400, 999_600, 61_000_000]
            .map(|microseconds| seconds(Duration::from_micros(microseconds)));
        assert_eq!(shown, ["0.0 ms", "1.2 ms", "85 ms", "999 ms", "1.00 s", "61.00 s"]);
    }
}
