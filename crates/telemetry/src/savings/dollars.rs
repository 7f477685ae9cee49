//! Exact amounts of money.

use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Serialize, Serializer};

const PICO_PER_DOLLAR: f64 = 1e12;

/// An amount in US dollars. Prices have at most six decimals per million tokens, so the price of a token is an integer in units
/// of 10⁻¹² dollars, and sums are never rounded. Serialises as a number.
///
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dollars {
    pico: u128,
}

impl Dollars {
    pub const ZERO: Dollars = Dollars { pico: 0 };

    pub fn from_pico(pico: u128) -> Self {
        Dollars { pico }
    }

    pub fn pico(self) -> u128 {
        self.pico
    }

    /// For display.
    pub fn as_f64(self) -> f64 {
        self.pico as f64 / PICO_PER_DOLLAR
    }
}

impl Add for Dollars {
    type Output = Dollars;

    fn add(self, other: Dollars) -> Dollars {
        Dollars { pico: self.pico.saturating_add(other.pico) }
    }
}

impl AddAssign for Dollars {
    fn add_assign(&mut self, other: Dollars) {
        *self = *self + other;
    }
}

impl Sum for Dollars {
    fn sum<I: Iterator<Item = Dollars>>(amounts: I) -> Dollars {
        amounts.fold(Dollars::ZERO, Add::add)
    }
}

impl Serialize for Dollars {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}
