//! Cloud prices. The only file with prices.

use crate::savings::Dollars;

/// The date of the table.
const AS_OF: &str = "2026-11-15";

/// Dollars per million tokens, in and out, in millionths.
const STANDARD: [(&str, Price); 3] = [
    ("gpt-5.2", Price { input: 1_750_000, output: 14_000_000 }),
    ("claude-opus-4.6", Price { input: 5_000_000, output: 25_000_000 }),
    ("gemini-3.1-pro", Price { input: 2_000_000, output: 12_000_000 }),
];

/// Suffixes of a model name that do not change its price.
const SAME_PRICE: [&str; 2] = ["latest", "preview"];

/// The price in millionths of a dollar per million tokens, which is also the price of one token in 10⁻¹² dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    pub input: u64,
    pub output: u64,
}

impl Price {
    /// The price of prompt tokens. Cached tokens count in full, because their prices differ too much.
    pub fn of_input(self, tokens: u64) -> Dollars {
        Dollars::from_pico(u128::from(tokens) * u128::from(self.input))
    }

    pub fn of_output(self, tokens: u64) -> Dollars {
        Dollars::from_pico(u128::from(tokens) * u128::from(self.output))
    }
}

/// A cloud model and its price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PricedModel {
    /// `openai`, `anthropic` or `google`.
    pub provider: &'static str,
    /// The display name.
    pub label: String,
    pub price: Price,
}

/// The models to compare with, and their prices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prices {
    models: Vec<PricedModel>,
}

impl Prices {
    /// The table of this file.
    pub fn standard() -> Self {
        let mut prices = Prices { models: Vec::new() };
        for (label, price) in STANDARD {
            prices.set(label, price);
        }
        prices
    }

    /// Sets the price of a model, or adds a model.
    pub fn set(&mut self, label: &str, price: Price) {
        let known = self.models.iter_mut().find(|model| plain(&model.label) == plain(label));
        match known {
            Some(model) => model.price = price,
            None => {
                self.models.push(PricedModel { provider: provider(label), label: label.to_owned(), price });
            }
        }
    }

    /// The price of a model. Providers have several names for a model, such as `gpt-5.2-2025-12-11`; a name that could be another
    /// model, such as `gpt-5.2-mini`, has no known price.
    pub fn of(&self, model: &str) -> Option<Price> {
        let asked = plain(model);
        let same = |label: &str| match asked.strip_prefix(&plain(label)) {
            Some("") => true,
            Some(rest) => rest.strip_prefix('-').is_some_and(changes_no_price),
            None => false,
        };
        self.models.iter().find(|model| same(&model.label)).map(|model| model.price)
    }

    pub fn models(&self) -> &[PricedModel] {
        &self.models
    }

    pub fn as_of(&self) -> &'static str {
        AS_OF
    }
}

/// The provider of a model, by the same rule as for requests.
fn provider(model: &str) -> &'static str {
    if model.contains("claude") {
        "anthropic"
    } else if model.contains("gemini") {
        "google"
    } else {
        "openai"
    }
}

/// The normalised name: `models/Gemini-3.1-Pro` and `gemini-3-1-pro` are the same.
fn plain(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default();
    name.trim().to_ascii_lowercase().replace('.', "-")
}

/// Whether a suffix only names a build of the model: a date, or one of a few words.
fn changes_no_price(ending: &str) -> bool {
    let digits = ending.bytes().filter(u8::is_ascii_digit).count();
    let date = digits == 8 && ending.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    date || SAME_PRICE.contains(&ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_one_price_under_all_its_names() {
        let prices = Prices::standard();
        for (names, input) in [
            (["gpt-5.2", "gpt-5.2-2025-12-11", "openai/gpt-5.2"], 1_750_000),
            (["claude-opus-4.6", "claude-opus-4-6", "claude-opus-4-6-20260205"], 5_000_000),
            (["gemini-3.1-pro", "models/gemini-3.1-pro-preview", "Gemini-3.1-Pro-latest"], 2_000_000),
        ] {
            for name in names {
                assert_eq!(prices.of(name).map(|price| price.input), Some(input), "{name}");
            }
        }
    }

    #[test]
    fn a_model_with_a_similar_name_has_no_known_price() {
        let prices = Prices::standard();
        for name in ["gpt-5.2-mini", "gpt-5", "gpt-5.20", "claude-opus-4", "gemini-3.1-pro-2", "gpt-5.2-", ""]
        {
            assert_eq!(prices.of(name), None, "{name}");
        }
    }

    #[test]
    fn the_owners_prices_override_the_table_and_may_add_models() {
        let mut prices = Prices::standard();
        prices.set("GPT-5.2", Price { input: 1, output: 2 });
        prices.set("claude-haiku-5", Price { input: 3, output: 4 });
        let labels: Vec<(&str, &str)> =
            prices.models().iter().map(|model| (model.provider, model.label.as_str())).collect();
        assert_eq!(
            labels,
            [
                ("openai", "gpt-5.2"),
                ("anthropic", "claude-opus-4.6"),
                ("google", "gemini-3.1-pro"),
                ("anthropic", "claude-haiku-5")
            ]
        );
        assert_eq!(prices.of("gpt-5.2"), Some(Price { input: 1, output: 2 }));
        assert_eq!(prices.of("claude-haiku-5"), Some(Price { input: 3, output: 4 }));
    }
}
