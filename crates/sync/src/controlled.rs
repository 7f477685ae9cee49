//! Locks with the interface of `parking_lot` that a scheduler controls.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

use shuttle::rand::{Rng, thread_rng};
use shuttle::{sync, thread};

/// A wait of at most this long may end before anyone wakes it. A longer wait ends only when it is woken, so that a wake that
/// is forgotten shows as a deadlock.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(1);

/// How often other threads may run before a wait times out.
const MAX_YIELDS: u32 = 3;

/// A lock.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    inner: sync::Mutex<T>,
}

/// A held lock.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` only while a condition variable waits.
    held: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub const fn new(value: T) -> Self {
        Mutex { inner: sync::Mutex::new(value) }
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, held: Some(self.lock_inner()) }
    }

    fn lock_inner(&self) -> sync::MutexGuard<'_, T> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.held {
            Some(held) => held,
            None => unreachable!("the guard is borrowed while it waits"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.held {
            Some(held) => held,
            None => unreachable!("the guard is borrowed while it waits"),
        }
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: sync::Condvar,
}

impl Condvar {
    pub const fn new() -> Self {
        Condvar { inner: sync::Condvar::new() }
    }

    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    pub fn notify_all(&self) {
        self.inner.notify_all();
    }

    /// Waits while the condition holds. The scheduler decides whether a short wait times out.
    pub fn wait_while_for<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut condition: impl FnMut(&mut T) -> bool,
        timeout: Duration,
    ) {
        let yields = (timeout <= LONGEST_TIMEOUT && thread_rng().gen_bool(0.5))
            .then(|| thread_rng().gen_range(0..=MAX_YIELDS));
        match yields {
            Some(yields) => {
                for _ in 0..yields {
                    if !condition(&mut **guard) {
                        return;
                    }
                    guard.held = None;
                    thread::yield_now();
                    guard.held = Some(guard.mutex.lock_inner());
                }
            }
            None => {
                while condition(&mut **guard) {
                    if let Some(held) = guard.held.take() {
                        guard.held = Some(self.inner.wait(held).unwrap_or_else(PoisonError::into_inner));
                    }
                }
            }
        }
    }
}
