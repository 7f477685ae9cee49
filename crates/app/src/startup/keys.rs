//! The named API keys, and what a call costs.

use std::sync::Arc;

use hob_config::{Config, EngineName, LimitFailure};
use hob_core::engine::CLOUD;
use hob_db::Storage;
use hob_keys::{CallCost, KeyOptions, KeyService, PriceFn, StoreFailure, key_store};
use hob_telemetry::Prices;

use crate::startup::telemetry::prices;

/// The keys in a database. Creates nothing until a key is created, and asks no server.
pub fn key_service(config: &Config, storage: impl Into<Storage>) -> Arc<KeyService> {
    let on_failure = match config.server.limit_failure {
        LimitFailure::Refuse => StoreFailure::Refuse,
        LimitFailure::Allow => StoreFailure::Allow,
    };
    let options = KeyOptions {
        price: price_of(prices(config)),
        on_failure,
        engines: EngineName::ALL.map(EngineName::as_str).to_vec(),
        ..KeyOptions::new(key_store(storage))
    };
    Arc::new(KeyService::new(options))
}

/// Local calls are free. A cloud call costs what its record will say.
fn price_of(prices: Prices) -> PriceFn {
    Arc::new(move |engine, model, prompt, completion| {
        if engine != CLOUD {
            return CallCost::Free;
        }
        let Some(price) = prices.of(model) else { return CallCost::Unknown };
        let pico = (price.of_input(prompt) + price.of_output(completion)).pico();
        CallCost::NanoDollars(u64::try_from(pico.div_ceil(1_000)).unwrap_or(u64::MAX))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cloud_calls_cost_money_and_only_known_prices_are_known() {
        let price = price_of(Prices::standard());
        assert_eq!(price("ollama", "qwen3:8b", 1_000, 1_000), CallCost::Free);
        assert_eq!(price(CLOUD, "a-model-without-a-price", 1_000, 1_000), CallCost::Unknown);
        let known = Prices::standard().models().first().map(|model| model.label.clone());
        let known = known.expect("a price list");
        assert!(matches!(price(CLOUD, &known, 1_000, 1_000), CallCost::NanoDollars(1..)), "{known}");
    }
}
