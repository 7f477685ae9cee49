//! Filling the gap between a prompt and a suffix at servers that only continue a text: the prompt is written with the
//! model's own markers. Which markers a model has is found out with the server's tokenizer: a marker is one token.

/// The order in which a model reads the texts around the gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GapOrder {
    PrefixFirst,
    SuffixFirst,
}

/// The markers of a family of models.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GapMarkers {
    prefix: &'static str,
    suffix: &'static str,
    /// Empty where the last text is followed by the answer at once.
    middle: &'static str,
    order: GapOrder,
}

const fn markers(prefix: &'static str, suffix: &'static str, middle: &'static str) -> GapMarkers {
    GapMarkers { prefix, suffix, middle, order: GapOrder::PrefixFirst }
}

/// The families, the most common first.
pub(super) const KNOWN: [GapMarkers; 6] = [
    // Qwen, CodeGemma, Granite 4.
    markers("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
    // StarCoder, Granite 3.
    markers("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
    // DeepSeek.
    markers("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"),
    // GLM.
    markers("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
    // Code Llama.
    markers("▁<PRE>", "▁<SUF>", "▁<MID>"),
    // Codestral.
    GapMarkers { prefix: "[PREFIX]", suffix: "[SUFFIX]", middle: "", order: GapOrder::SuffixFirst },
];

impl GapMarkers {
    /// The markers that must be one token each.
    pub(super) fn each(&self) -> impl Iterator<Item = &'static str> + use<> {
        [self.prefix, self.suffix, self.middle].into_iter().filter(|marker| !marker.is_empty())
    }

    /// The text to continue.
    pub(super) fn prompt(&self, prefix: &str, suffix: &str) -> String {
        let (before, after) = (format!("{}{prefix}", self.prefix), format!("{}{suffix}", self.suffix));
        match self.order {
            GapOrder::PrefixFirst => format!("{before}{after}{}", self.middle),
            GapOrder::SuffixFirst => format!("{after}{before}{}", self.middle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_follows_the_text_before_the_gap_or_the_marker_of_the_middle() {
        assert_eq!(KNOWN[0].prompt("a(", ")b"), "<|fim_prefix|>a(<|fim_suffix|>)b<|fim_middle|>");
        assert_eq!(KNOWN[5].prompt("a(", ")b"), "[SUFFIX])b[PREFIX]a(");
        assert_eq!(KNOWN[5].each().collect::<Vec<_>>(), ["[PREFIX]", "[SUFFIX]"]);
    }
}
