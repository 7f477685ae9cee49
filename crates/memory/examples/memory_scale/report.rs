//! The figures, as a table and as JSON.

use serde::Serialize;

use crate::common::measure::SearchTimes;

/// Median and 95th percentile in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Latency {
    pub p50_ms: f64,
    pub p95_ms: f64,
}

impl Latency {
    pub fn of(times: &SearchTimes) -> Self {
        Latency { p50_ms: times.milliseconds(0.5), p95_ms: times.milliseconds(0.95) }
    }
}

#[derive(Debug, Serialize)]
pub struct Row {
    pub chunks: usize,
    pub chunks_per_second: f64,
    pub megabytes_per_second: f64,
    /// Processor time in microseconds per chunk: to read it, on all cores, and to write it, on one thread.
    pub reading_us: f64,
    pub writing_us: f64,
    /// The peak memory after indexing.
    pub indexing_memory_mb: f64,
    pub vectors_per_second: f64,
    pub database_mb: f64,
    /// The first search by meaning of a process.
    pub load_vectors_ms: f64,
    pub words_question: Latency,
    pub words_keywords: Latency,
    pub vector: Latency,
    pub hybrid: Latency,
    /// The share of the ten nearest vectors that are found.
    pub vector_recall: f64,
    pub searching_memory_mb: f64,
}

pub fn print_head() {
    println!(
        "{:>9} {:>9} {:>13} {:>6} {:>7} {:>8} {:>7} {:>15} {:>15} {:>15} {:>15} {:>7}",
        "chunks",
        "chunks/s",
        "read/write us",
        "MB/s",
        "RSS MB",
        "disk MB",
        "load ms",
        "question p50/95",
        "keywords p50/95",
        "vector p50/95",
        "hybrid p50/95",
        "recall"
    );
}

pub fn print(row: &Row) {
    let pair = |latency: Latency| format!("{:.1}/{:.1} ms", latency.p50_ms, latency.p95_ms);
    println!(
        "{:>9} {:>9.0} {:>13} {:>6.1} {:>7.0} {:>8.0} {:>7.0} {:>15} {:>15} {:>15} {:>15} {:>7.3}",
        row.chunks,
        row.chunks_per_second,
        format!("{:.0}/{:.0}", row.reading_us, row.writing_us),
        row.megabytes_per_second,
        row.indexing_memory_mb,
        row.database_mb,
        row.load_vectors_ms,
        pair(row.words_question),
        pair(row.words_keywords),
        pair(row.vector),
        pair(row.hybrid),
        row.vector_recall,
    );
}

/// The peak memory of this process; 0 if unknown.
pub fn peak_memory() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0
}

/// The processor time of this process in seconds; 0 if unknown.
pub fn processor_time() -> f64 {
    /// Linux counts in hundredths of a second.
    const TICKS: f64 = 100.0;
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field is the name in brackets, which may contain blanks.
    let fields = status.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / TICKS
}
