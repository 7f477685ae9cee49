//! Fractions of bounded integers.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

/// A fraction in lowest terms; the denominator is positive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact {
    numerator: BigInt,
    denominator: BigInt,
}

/// Enough for 3,000 digits. Operations on such numbers take microseconds.
pub const MAX_BITS: u64 = 10_000;

/// Larger fractions become approximations, because each step would make them longer.
const MAX_DENOMINATOR_BITS: u64 = 2_000;

/// Why a result is not exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inexact {
    /// The numerator is too large.
    TooLarge,
    /// The denominator is too large.
    TooFine,
}

impl Exact {
    pub fn integer(value: impl Into<BigInt>) -> Self {
        Exact { numerator: value.into(), denominator: BigInt::from(1) }
    }

    /// Brings a fraction to its lowest terms. The denominator must not be zero.
    pub fn fraction(numerator: BigInt, denominator: BigInt) -> Result<Self, Inexact> {
        let divisor = match denominator.sign() {
            Sign::Minus => -common_divisor(&numerator, &denominator),
            Sign::NoSign | Sign::Plus => common_divisor(&numerator, &denominator),
        };
        let lowest = Exact { numerator: numerator / &divisor, denominator: denominator / divisor };
        if lowest.denominator.bits() > MAX_DENOMINATOR_BITS {
            Err(Inexact::TooFine)
        } else if lowest.numerator.bits() > MAX_BITS {
            Err(Inexact::TooLarge)
        } else {
            Ok(lowest)
        }
    }

    pub fn as_integer(&self) -> Option<&BigInt> {
        (self.denominator == BigInt::from(1)).then_some(&self.numerator)
    }

    pub fn parts(&self) -> (&BigInt, &BigInt) {
        (&self.numerator, &self.denominator)
    }

    pub fn is_zero(&self) -> bool {
        self.numerator.sign() == Sign::NoSign
    }

    pub fn is_negative(&self) -> bool {
        self.numerator.sign() == Sign::Minus
    }

    pub fn negated(&self) -> Self {
        Exact { numerator: -&self.numerator, denominator: self.denominator.clone() }
    }

    pub fn add(&self, other: &Self) -> Result<Self, Inexact> {
        let numerator = &self.numerator * &other.denominator + &other.numerator * &self.denominator;
        Self::fraction(numerator, &self.denominator * &other.denominator)
    }

    pub fn multiply(&self, other: &Self) -> Result<Self, Inexact> {
        Self::fraction(&self.numerator * &other.numerator, &self.denominator * &other.denominator)
    }

    /// `other` must not be zero.
    pub fn divide(&self, other: &Self) -> Result<Self, Inexact> {
        Self::fraction(&self.numerator * &other.denominator, &self.denominator * &other.numerator)
    }

    pub fn floor(&self) -> BigInt {
        let quotient = &self.numerator / &self.denominator;
        let is_rounded_up = self.is_negative() && self.as_integer().is_none();
        if is_rounded_up { quotient - 1 } else { quotient }
    }

    /// A power with an integer exponent that is not negative. Its size is checked before it is computed.
    pub fn power(&self, exponent: &BigInt) -> Result<Self, Inexact> {
        let one = BigInt::from(1);
        if self.denominator == one && self.numerator.bits() <= 1 {
            // 0, 1 and -1 stay small for any exponent.
            let is_odd = exponent.bit(0);
            let result = match (self.numerator.sign(), exponent.sign()) {
                (_, Sign::NoSign) => 1,
                (Sign::NoSign, _) => 0,
                (Sign::Minus, _) if is_odd => -1,
                _ => 1,
            };
            return Ok(Self::integer(result));
        }
        let exponent = u32::try_from(exponent).map_err(|_| Inexact::TooLarge)?;
        // A number of n bits is at least 2^(n-1), a lower bound for its power.
        let least_bits = |base: &BigInt| base.bits().saturating_sub(1).saturating_mul(exponent.into());
        if least_bits(&self.numerator) > MAX_BITS {
            return Err(Inexact::TooLarge);
        }
        if least_bits(&self.denominator) > MAX_BITS {
            return Err(Inexact::TooFine);
        }
        Self::fraction(self.numerator.pow(exponent), self.denominator.pow(exponent))
    }

    pub fn compare(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }

    /// The nearest f64, possibly infinite.
    pub fn to_f64(&self) -> f64 {
        if let Some(integer) = self.as_integer() {
            return to_f64(integer);
        }
        // Both sides may exceed the range of f64 although their quotient does not: keep 64 significant bits, and scale by a power
        // of two.
        let shift = 64 + self.denominator.bits();
        let quotient = (&self.numerator << shift) / &self.denominator;
        let surplus = quotient.bits().saturating_sub(64);
        let kept = to_f64(&(quotient >> surplus));
        let exponent = i32::try_from(surplus).unwrap_or(i32::MAX) - i32::try_from(shift).unwrap_or(i32::MAX);
        // In two steps, because the power itself may exceed the range of f64.
        kept * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2)
    }
}

/// The nearest f64: the standard library parses decimal digits exactly.
fn to_f64(integer: &BigInt) -> f64 {
    integer.to_string().parse().unwrap_or(f64::INFINITY)
}

/// Euclid's algorithm.
fn common_divisor(left: &BigInt, right: &BigInt) -> BigInt {
    let (mut left, mut right) = (left.magnitude().clone(), right.magnitude().clone());
    while right.bits() > 0 {
        let remainder = &left % &right;
        left = std::mem::replace(&mut right, remainder);
    }
    BigInt::from(left)
}
