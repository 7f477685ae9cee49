//! Statistics formatted for people. Pure.

use std::time::Duration;

use hob_telemetry::Dollars;
use hob_telemetry::{CallFigures, LatencySummary};

use crate::output::number::{self, counted, seconds};
use crate::output::table::Column;

/// The columns of [`cells`].
pub const COLUMNS: [Column; 9] = [
    Column::Numbers("CALLS"),
    Column::Numbers("FAILED"),
    Column::Numbers("TOKENS IN"),
    Column::Numbers("TOKENS OUT"),
    Column::Numbers("MEAN"),
    Column::Numbers("P50"),
    Column::Numbers("P95"),
    Column::Numbers("FIRST TOKEN"),
    Column::Numbers("COST"),
];

/// The column of [`energy`], for where some was measured.
pub const ENERGY: Column = Column::Numbers("ENERGY");

/// Figures as cells of a table. What is not known is a dash.
pub fn cells(figures: &CallFigures) -> [String; 9] {
    let of = |timing: Option<LatencySummary>, part: fn(LatencySummary) -> Duration| {
        timing.map_or_else(|| "-".to_owned(), |timing| seconds(part(timing)))
    };
    [
        figures.calls.to_string(),
        figures.failures.to_string(),
        figures.prompt_tokens.to_string(),
        figures.completion_tokens.to_string(),
        of(figures.latency, |timing| timing.mean),
        of(figures.latency, |timing| timing.p50),
        of(figures.latency, |timing| timing.p95),
        of(figures.first_token, |timing| timing.mean),
        cost(figures),
    ]
}

/// A timing in a line.
pub fn timing(timing: LatencySummary) -> String {
    let LatencySummary { mean, p50, p95 } = timing;
    format!("mean {}, p50 {}, p95 {}", seconds(mean), seconds(p50), seconds(p95))
}

/// What the calls cost. A mark shows that the price of some is not known.
pub fn cost(figures: &CallFigures) -> String {
    let known = match figures.cost {
        Dollars::ZERO if figures.unpriced > 0 => return "?".to_owned(),
        Dollars::ZERO => return "-".to_owned(),
        amount => number::money(amount.as_f64()),
    };
    if figures.unpriced > 0 { format!("{known}+?") } else { known }
}

/// What the calls used, as far as it was measured.
pub fn energy(figures: &CallFigures) -> String {
    figures.energy.map_or_else(|| "-".to_owned(), number::energy)
}

/// The same as a sentence; `None` when nothing was measured.
pub fn measured(figures: &CallFigures) -> Option<String> {
    let used = number::energy(figures.energy?);
    Some(format!("{used}, measured for {} of {}", figures.measured, counted(figures.calls, "call")))
}

/// A bar for each count, the highest for the largest, and a dot for none.
pub fn sparkline(counts: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = counts.iter().copied().max().unwrap_or(0);
    let bar = |count: u64| match count {
        0 => '·',
        // In 128 bits, as eight times a large count may not fit in 64.
        count => {
            let height = (u128::from(count) * 8).div_ceil(u128::from(most));
            BARS[usize::try_from(height - 1).unwrap_or(0).min(7)]
        }
    };
    counts.iter().copied().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_shows_the_shape_and_tells_none_from_few() {
        assert_eq!(sparkline(&[0, 1, 4, 8]), "·▁▄█");
        assert_eq!(sparkline(&[1, 1_000]), "▁█");
        assert_eq!(sparkline(&[5]), "█");
        assert_eq!(sparkline(&[0, 0]), "··");
        assert_eq!(sparkline(&[u64::MAX, u64::MAX / 2, 1]), "█▄▁");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn energy_says_how_many_calls_it_is_of() {
        let energy = Some(hob_telemetry::Energy::from_microjoules(45_000_000_000));
        let figures = CallFigures { calls: 12, measured: 10, energy, ..CallFigures::default() };
        assert_eq!(measured(&figures).as_deref(), Some("12.5 Wh, measured for 10 of 12 calls"));
        assert_eq!((super::energy(&figures).as_str(), measured(&CallFigures::default())), ("12.5 Wh", None));
    }

    #[test]
    fn a_price_that_is_not_known_is_not_zero() {
        let shown = |pico, unpriced| {
            cost(&CallFigures { cost: Dollars::from_pico(pico), unpriced, ..CallFigures::default() })
        };
        assert_eq!(shown(0, 0), "-");
        assert_eq!(shown(0, 2), "?");
        assert_eq!(shown(1, 0), "<$0.0001");
        assert_eq!(shown(12_300_000_000, 1), "$0.01+?");
        assert_eq!(shown(4_560_000_000_000, 0), "$4.56");
    }
}
