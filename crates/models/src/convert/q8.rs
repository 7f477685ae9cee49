//! Q8_0: numbers in eight bits each, in blocks of 32 with one scale.

/// Numbers that share a scale.
pub(super) const BLOCK: usize = 32;

/// A scale of two bytes, and a byte for each number.
pub(super) const BLOCK_BYTES: usize = 2 + BLOCK;

/// The numbers must be finite and fill whole blocks.
pub(super) fn quantise(numbers: &[f32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(numbers.len() / BLOCK * BLOCK_BYTES);
    for block in numbers.chunks_exact(BLOCK) {
        let largest = block.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scale = largest / 127.0;
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        bytes.extend(half(scale).to_le_bytes());
        // Within ±127 because of the scale.
        bytes.extend(block.iter().map(|number| ((number * inverse).round() as i8).cast_unsigned()));
    }
    bytes
}

/// The bits of the nearest 16-bit float to a number that is not negative; ties go to the even one.
fn half(number: f32) -> u16 {
    /// The largest value; larger numbers are stored as this.
    const LARGEST: f32 = 65504.0;
    /// The smallest normal number.
    const SMALLEST_NORMAL: f32 = 6.103_515_6e-5;
    /// The step between subnormal numbers.
    const STEP: f32 = 5.960_464_5e-8;
    if number >= LARGEST {
        return 0x7bff;
    }
    if number < SMALLEST_NORMAL {
        return (number / STEP).round_ties_even() as u16;
    }
    let bits = number.to_bits();
    // Drops 13 of the 23 bits of the fraction; a carry correctly raises the exponent.
    let rounded = bits + 0x0fff + ((bits >> 13) & 1);
    // The exponent bias changes from 127 to 15. The result fits into 15 bits.
    ((rounded >> 13) - ((127 - 15) << 10)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the bits of a 16-bit float that is not negative stand for.
    fn value(bits: u16) -> f32 {
        let fraction = f32::from(bits & 0x3ff) / 1024.0;
        match i32::from(bits >> 10) {
            0 => fraction * 2.0_f32.powi(-14),
            exponent => (1.0 + fraction) * 2.0_f32.powi(exponent - 15),
        }
    }

    #[test]
    fn every_half_and_its_neighbourhood_round_to_it() {
        for bits in 0..0x7bff_u16 {
            let (this, next) = (value(bits), value(bits + 1));
            assert_eq!(half(this), bits);
            let middle = f32::midpoint(this, next);
            let even = bits + (bits & 1);
            assert_eq!(half(middle), even, "the middle between {this} and {next}");
            assert_eq!(half(middle.next_down()), bits);
            assert_eq!(half(middle.next_up()), bits + 1);
        }
        assert_eq!(half(f32::MAX), 0x7bff);
    }

    #[test]
    fn numbers_are_exact_within_half_a_step() {
        let numbers: Vec<f32> = (0..64).map(|at| ((at * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let bytes = quantise(&numbers);
        assert_eq!(bytes.len(), 2 * BLOCK_BYTES);
        for (block, stored) in numbers.chunks(BLOCK).zip(bytes.chunks(BLOCK_BYTES)) {
            let scale = value(u16::from_le_bytes([stored[0], stored[1]]));
            for (number, byte) in block.iter().zip(&stored[2..]) {
                let back = f32::from(byte.cast_signed()) * scale;
                assert!((number - back).abs() <= scale * 0.56, "{number} became {back}");
            }
        }
    }

    #[test]
    fn zeros_stay_zeros() {
        assert_eq!(quantise(&[0.0; BLOCK]), [0; BLOCK_BYTES]);
    }
}
