//! Locks, atomic numbers, channels and threads. Knows nothing of what is locked.
//!
//! In a usual build these are the types of `parking_lot` and of the standard library, at no cost. In a build with
//! `--cfg shuttle` a scheduler controls them, so that a test can run threads in thousands of different orders, and run a
//! failed order again. Code whose threads must not disturb each other takes its locks from here.

#[cfg(shuttle)]
mod controlled;
#[cfg(shuttle)]
mod explore;

#[cfg(not(shuttle))]
pub use parking_lot::{Condvar, Mutex, MutexGuard};
#[cfg(not(shuttle))]
pub use std::sync::{RwLock, atomic, mpsc};
#[cfg(not(shuttle))]
pub use std::thread;

#[cfg(shuttle)]
pub use controlled::{Condvar, Mutex, MutexGuard};
#[cfg(shuttle)]
pub use explore::explore;
#[cfg(shuttle)]
pub use shuttle::sync::{RwLock, atomic, mpsc};
#[cfg(shuttle)]
pub use shuttle::{future, thread};
