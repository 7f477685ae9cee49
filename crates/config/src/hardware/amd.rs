//! AMD's cards, by `rocm-smi`. Its JSON has changed its spelling between versions.

use serde_json::{Map, Value};

use crate::hardware::format::gigabytes;
use crate::hardware::gpu::{Adapter, Adapters, GpuVendor};
use crate::hardware::probe::{ProbeError, ask};

/// Desktop processors carry a display unit with about half a gigabyte set aside, on which no model runs.
const LEAST_VRAM_GB: f64 = 1.0;

pub(super) async fn look() -> Result<Adapters, ProbeError> {
    let arguments = ["--showproductname", "--showmeminfo", "vram", "--json"];
    Ok(ask("rocm-smi", &arguments).await?.as_deref().map(parse).unwrap_or_default())
}

/// False for AMD's display units; other vendors' cards are not this module's business.
pub(super) fn is_worth_using(adapter: &Adapter) -> bool {
    adapter.vendor != GpuVendor::Amd || adapter.vram_gb.is_none_or(|vram| vram >= LEAST_VRAM_GB)
}

fn parse(output: &str) -> Adapters {
    // Warnings, such as one about a suspended card, come before the JSON or after it.
    let Some(start) = output.find('{') else {
        return Adapters::new();
    };
    let mut values = serde_json::Deserializer::from_str(&output[start..]).into_iter();
    let Some(Ok(Value::Object(report))) = values.next() else {
        return Adapters::new();
    };
    let mut cards: Vec<(u32, Adapter)> = report
        .iter()
        .filter_map(|(name, fields)| {
            Some((name.strip_prefix("card")?.parse().ok()?, card(fields.as_object()?)))
        })
        .collect();
    cards.sort_by_key(|(number, _)| *number);
    cards.into_iter().map(|(_, card)| card).collect()
}

fn card(fields: &Map<String, Value>) -> Adapter {
    let model = ["card series", "card model"]
        .into_iter()
        .find_map(|key| field(fields, key).filter(|name| is_name(name)));
    let vram = field(fields, "vram total memory (b)").and_then(|bytes| bytes.parse().ok());
    Adapter {
        vendor: GpuVendor::Amd,
        model: model.unwrap_or_else(|| "AMD GPU".to_owned()),
        vram_gb: vram.map(gigabytes),
    }
}

/// The value of `key`, however its letters are cased, as text.
fn field(fields: &Map<String, Value>, key: &str) -> Option<String> {
    match fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(key))?.1 {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Some versions give a device id in the place of a name.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.eq_ignore_ascii_case("n/a") && !text.starts_with("0x")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cards(sample: &str) -> Vec<(String, Option<f64>)> {
        parse(sample).into_iter().map(|adapter| (adapter.model, adapter.vram_gb)).collect()
    }

    #[test]
    fn both_spellings_of_the_report_are_read() {
        assert_eq!(
            cards(include_str!("samples/rocm-5.json")),
            [("Radeon RX 7900 XTX".to_owned(), Some(24.0)), ("AMD Radeon Graphics".to_owned(), Some(0.5))]
        );
        let instinct = ("AMD Instinct MI300X OAM".to_owned(), Some(192.0));
        assert_eq!(cards(include_str!("samples/rocm-6.json")), vec![instinct; 2]);
    }

    #[test]
    fn a_warning_before_the_report_and_a_missing_name_do_no_harm() {
        assert_eq!(
            cards(include_str!("samples/rocm-asleep.txt")),
            [("Radeon Instinct MI50 32GB".to_owned(), Some(32.0)), ("AMD GPU".to_owned(), None)]
        );
    }

    #[test]
    fn cards_come_in_the_order_of_their_numbers() {
        let report = r#"{"card10": {"Card Series": "c"}, "card2": {"Card Series": "b"}, "card0": {"Card Series": "a"}}"#;
        let names: Vec<String> = cards(report).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn garbage_is_no_card() {
        for output in [
            include_str!("samples/rocm-no-driver.txt"),
            "",
            "{",
            "[]",
            "{\"card0\": 7}",
            "{\"cardX\": {}}",
            "{\"system\": {\"Driver version\": \"6.10.5\"}}",
        ] {
            assert_eq!(cards(output), [], "{output:?}");
        }
        assert_eq!(cards(&"{\"card0\":".repeat(10_000)), []);
    }
}
