//! What the keys need from the rest of the program.

use std::sync::Arc;

use hob_core::{Clock, SystemClock};

use crate::store::KeyStore;

/// What a call costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallCost {
    /// Whatever it uses.
    Free,
    NanoDollars(u64),
    /// A cloud model without a known price.
    Unknown,
}

/// What a call to an engine costs: engine, model, prompt tokens, completion tokens.
pub type PriceFn = Arc<dyn Fn(&str, &str, u64, u64) -> CallCost + Send + Sync>;

/// What happens to a request whose limits cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StoreFailure {
    #[default]
    Refuse,
    Allow,
}

pub struct KeyOptions {
    pub store: Arc<dyn KeyStore>,
    pub price: PriceFn,
    pub on_failure: StoreFailure,
    pub clock: Arc<dyn Clock>,
    /// The engines that a key can name; empty to accept every name.
    pub engines: Vec<&'static str>,
}

impl KeyOptions {
    /// Without prices and engines: every call is free, and every name is accepted.
    pub fn new(store: Arc<dyn KeyStore>) -> Self {
        KeyOptions {
            store,
            price: Arc::new(|_, _, _, _| CallCost::Free),
            on_failure: StoreFailure::default(),
            clock: Arc::new(SystemClock),
            engines: Vec::new(),
        }
    }
}
