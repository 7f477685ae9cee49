//! Text with the word frequencies of natural language: few words are everywhere, most are rare.

use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Different words.
const VOCABULARY: usize = 60_000;

/// About one chunk with its heading: unknown words have three tokens each.
const WORDS_PER_PARAGRAPH: usize = 120;
const PARAGRAPHS_PER_FILE: usize = 100;

/// Generates the same text every time.
pub struct Author {
    words: Vec<String>,
    /// Cumulative word frequencies.
    sums: Vec<f64>,
    random: fastrand::Rng,
    lots: usize,
}

impl Author {
    pub fn new() -> Self {
        let mut random = fastrand::Rng::with_seed(7);
        let words = (0..VOCABULARY).map(|_| word(&mut random)).collect();
        let mut sum = 0.0;
        let sums = (0..VOCABULARY)
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7);
                sum
            })
            .collect();
        Author { words, sums, random, lots: 0 }
    }

    /// Writes files with about `chunks` chunks.
    pub fn write_files(&mut self, directory: &Path, chunks: usize) -> std::io::Result<PathBuf> {
        self.lots += 1;
        let lot = directory.join(format!("lot{}", self.lots));
        std::fs::create_dir(&lot)?;
        let mut left = chunks;
        while left > 0 {
            let paragraphs = left.min(PARAGRAPHS_PER_FILE);
            left -= paragraphs;
            let mut text = String::new();
            for _ in 0..paragraphs {
                let title = self.pick();
                // Writing to a string cannot fail.
                let _ = writeln!(text, "## {title} {}\n", self.pick());
                for number in 0..WORDS_PER_PARAGRAPH {
                    text.push_str(&self.pick());
                    text.push_str(if number % 12 == 11 { ". " } else { " " });
                }
                text.push_str("\n\n");
            }
            std::fs::write(lot.join(format!("{left}.md")), text)?;
        }
        Ok(lot)
    }

    /// Six words as in the text: most of them are common.
    pub fn questions(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| (0..6).map(|_| self.pick()).collect::<Vec<_>>().join(" ") + "?").collect()
    }

    /// Two or three words of medium frequency.
    pub fn keywords(&mut self, count: usize) -> Vec<String> {
        let mut one = || self.words[self.random.usize(100..20_000)].clone();
        (0..count).map(|number| (0..2 + number % 2).map(|_| one()).collect::<Vec<_>>().join(" ")).collect()
    }

    fn pick(&mut self) -> String {
        let at = self.random.f64() * self.sums[VOCABULARY - 1];
        self.words[self.sums.partition_point(|sum| *sum < at).min(VOCABULARY - 1)].clone()
    }
}

fn word(random: &mut fastrand::Rng) -> String {
    let syllables = random.usize(2..5);
    let mut letter = |letters: &str| letters.as_bytes()[random.usize(..letters.len())] as char;
    (0..syllables).flat_map(|_| [letter("bcdfghklmnprstvz"), letter("aeiou")]).collect()
}
