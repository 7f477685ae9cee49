//! The named API keys of a home directory, and what a call costs.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, LimitFailure};
use hob_core::engine::CLOUD;
use hob_db::LazyDatabase;
use hob_keys::{CallCost, KeyOptions, KeyService, PriceFn, SqliteKeyStore, StoreFailure};
use hob_telemetry::Prices;

use crate::databases::hob_database;
use crate::startup::telemetry::prices;

/// The keys in `home`. Creates nothing until a key is created.
pub fn open_keys(config: &Config, home: &Path) -> Arc<KeyService> {
    key_service(config, hob_database(home))
}

/// The keys in a database.
pub(crate) fn key_service(config: &Config, database: LazyDatabase) -> Arc<KeyService> {
    let on_failure = match config.server.limit_failure {
        LimitFailure::Refuse => StoreFailure::Refuse,
        LimitFailure::Allow => StoreFailure::Allow,
    };
    let options = KeyOptions {
        price: price_of(prices(config)),
        on_failure,
        ..KeyOptions::new(Arc::new(SqliteKeyStore::new(database)))
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
