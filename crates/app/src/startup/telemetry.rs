//! The recorded calls, according to the configuration.

use hob_config::Config;
use hob_telemetry::{Price, Prices, TelemetryOptions};

pub fn telemetry_options(config: &Config) -> TelemetryOptions {
    let telemetry = &config.telemetry;
    TelemetryOptions {
        enabled: telemetry.enabled,
        retention_days: u32::try_from(telemetry.retention_days).unwrap_or(u32::MAX),
        metrics: telemetry.metrics,
        energy: telemetry.energy,
        prices: prices(config),
    }
}

pub(crate) fn prices(config: &Config) -> Prices {
    let mut prices = Prices::standard();
    for (model, price) in &config.savings.prices {
        prices.set(model, Price { input: price.input, output: price.output });
    }
    prices
}
