//! The text format of Prometheus. Pure functions over values.

use std::fmt::{Display, Write};

use hob_telemetry::metrics::{BOUNDS, Histogram};

/// Builds the text: one metric family after the other, each with its name, type and help text.
#[derive(Default)]
pub(crate) struct MetricsText {
    text: String,
    name: &'static str,
}

/// The labels of a sample.
type Labels<'a> = [(&'static str, &'a str)];

impl MetricsText {
    pub(crate) fn counter(&mut self, name: &'static str, help: &str) {
        self.family(name, help, "counter");
    }

    pub(crate) fn gauge(&mut self, name: &'static str, help: &str) {
        self.family(name, help, "gauge");
    }

    pub(crate) fn histogram(&mut self, name: &'static str, help: &str) {
        self.family(name, help, "histogram");
    }

    /// Adds a sample to the current family.
    pub(crate) fn sample(&mut self, labels: &Labels<'_>, value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Adds the samples of a histogram to the current family.
    pub(crate) fn buckets(&mut self, labels: &Labels<'_>, histogram: &Histogram) {
        let counts = histogram.cumulative();
        for (bound, count) in BOUNDS.iter().zip(counts) {
            self.line("_bucket", labels, Some(&bound.to_string()), count);
        }
        let all = counts[BOUNDS.len()];
        self.line("_bucket", labels, Some("+Inf"), all);
        self.line("_sum", labels, None, histogram.sum());
        self.line("_count", labels, None, all);
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    fn family(&mut self, name: &'static str, help: &str, kind: &str) {
        self.name = name;
        // Writing into a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, suffix: &str, labels: &Labels<'_>, bound: Option<&str>, value: impl Display) {
        self.text.push_str(self.name);
        self.text.push_str(suffix);
        let mut separator = '{';
        for (name, value) in labels.iter().copied().chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(self.text, "{separator}{name}=\"");
            escape(&mut self.text, value);
            self.text.push('"');
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// Escapes a label value, so that it cannot end its line.
fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_cannot_end_its_line() {
        let mut out = MetricsText::default();
        out.counter("c_total", "Counts.");
        out.sample(&[("model", "a\"} 1\nb\\")], 2);
        out.sample(&[], 0.5);
        let expected = "# HELP c_total Counts.\n# TYPE c_total counter\nc_total{model=\"a\\\"} 1\\nb\\\\\"} 2\nc_total 0.5\n";
        assert_eq!(out.into_text(), expected);
    }

    #[test]
    fn a_histogram_counts_upwards_to_all() {
        let mut out = MetricsText::default();
        let histogram = Histogram::default();
        histogram.observe(std::time::Duration::from_millis(2_000));
        out.histogram("h", "Times.");
        out.buckets(&[("route", "/x")], &histogram);
        let text = out.into_text();
        for line in [
            "h_bucket{route=\"/x\",le=\"1\"} 0",
            "h_bucket{route=\"/x\",le=\"2.5\"} 1",
            "h_bucket{route=\"/x\",le=\"+Inf\"} 1",
            "h_sum{route=\"/x\"} 2",
            "h_count{route=\"/x\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
