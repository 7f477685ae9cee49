//! The database's failures, in the terms of the contract.

use hob_core::MemoryError;
use hob_store::StoreError;

pub(crate) fn store_failed(error: StoreError) -> MemoryError {
    MemoryError::Store(Box::new(error))
}
