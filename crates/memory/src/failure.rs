//! The database's failures, in the terms of the contract.

use hob_core::MemoryError;
use hob_db::DatabaseError;

pub(crate) fn store_failed(error: DatabaseError) -> MemoryError {
    MemoryError::Store(Box::new(error))
}
