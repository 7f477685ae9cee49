//! `[savings.prices]`: prices of cloud models that override the built-in ones.

use std::collections::BTreeMap;

use toml::de::DeValue;

use crate::settings_schema::{Exposure, Keys, Kind, Section, Typed};

/// Far above any price there is, and low enough for exact sums.
const HIGHEST: f64 = 1000.0;

/// Millionths of a dollar.
const MICRO: f64 = 1e6;

/// Settings of the savings.
#[derive(Debug, Clone, Default)]
pub struct SavingsConfig {
    /// By the name of the model.
    pub prices: BTreeMap<String, TokenPrice>,
}

/// A price in millionths of a dollar per million tokens: a whole number, so that sums of it are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenPrice {
    /// Of the tokens sent.
    pub input: u64,
    /// Of the tokens received.
    pub output: u64,
}

const PRICE: Kind<TokenPrice> = Kind {
    expected: "dollars per million tokens from 0 to 1000, with up to six decimals, such as { input = 1.75, output = 14.0 }",
    read: |typed| {
        let table = typed.value.as_table().filter(|table| table.len() == 2)?;
        let part = |name: &str| micro_dollars(table.get(name)?.get_ref());
        Some(TokenPrice { input: part("input")?, output: part("output")? })
    },
    write: |price| {
        let dollars = |micro: u64| micro as f64 / MICRO;
        format!("{{ input = {:?}, output = {:?} }}", dollars(price.input), dollars(price.output))
    },
    exposure: Exposure::Open,
};

/// `None` when it is no whole number of them, as rounding it would make every sum wrong by a little.
fn micro_dollars(value: &DeValue<'_>) -> Option<u64> {
    let dollars = Typed { value, home: None }.number().filter(|dollars| (0.0..=HIGHEST).contains(dollars))?;
    let micro = (dollars * MICRO).round();
    (micro / MICRO == dollars).then_some(micro as u64)
}

impl Section for SavingsConfig {
    fn keys<K: Keys>(&mut self, keys: &mut K) {
        let SavingsConfig { prices } = self;
        keys.table(
            "prices",
            prices,
            PRICE,
            "Dollars per million tokens, by model, such as { \"gpt-5.2\" = { input = 1.75, output = 14.0 } }.",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::read_as;

    #[test]
    fn a_price_is_read_to_the_last_decimal() {
        let read = |typed: &str| read_as(&PRICE, typed).map(|price| (price.input, price.output));
        assert_eq!(read("{ input = 1.75, output = 14 }"), Some((1_750_000, 14_000_000)));
        assert_eq!(read("{ output = 0.000001, input = 999.999999 }"), Some((999_999_999, 1)));
        assert_eq!(read("{ input = 0, output = 1000 }"), Some((0, 1_000_000_000)));
    }

    #[test]
    fn a_price_has_both_parts_and_nothing_else() {
        for bad in [
            "1.75",
            "{}",
            "{ input = 1 }",
            "{ input = 1, outptu = 2 }",
            "{ input = 1, output = 2, cached = 3 }",
            "{ input = -1, output = 2 }",
            "{ input = 1000.5, output = 2 }",
            "{ input = 0.0000001, output = 2 }",
            "{ input = nan, output = 2 }",
            "{ input = '1', output = 2 }",
        ] {
            assert_eq!(read_as(&PRICE, bad), None, "{bad}");
        }
    }
}
