//! What the keys need from the rest of the program.

use std::sync::Arc;

use hob_core::{Clock, SystemClock};

use crate::metered::{CallCost, PriceFn, StoreFailure};
use crate::store::KeyStore;

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
