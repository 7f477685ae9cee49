//! Figures and names of hardware as text.

/// Bytes in GB of 2^30 bytes, to one decimal.
pub(super) fn gigabytes(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 30) * 10.0).round() / 10.0
}

/// The text on one line and without control characters: names come from other programs, and are shown on terminals and
/// written into comments.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect::<String>()
        .trim()
        .to_owned()
}
