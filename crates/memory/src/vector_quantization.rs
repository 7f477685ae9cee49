//! Quantizes vectors to bytes, and to their signs. Pure.

/// A vector of length 1 as integers, to be multiplied by `scale`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Quantized {
    pub(crate) scale: f32,
    pub(crate) bytes: Vec<u8>,
}

/// Scales a vector to length 1. An invalid vector becomes 0.
pub(crate) fn normalize(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_normal() {
        return vec![0.0; vector.len()];
    }
    vector.iter().map(|number| number / length).collect()
}

pub(crate) fn quantize(normal: &[f32]) -> Quantized {
    let largest = normal.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
    let scale = if largest > 0.0 { largest / f32::from(i8::MAX) } else { 1.0 };
    let bytes = normal.iter().map(|number| (number / scale).round() as i8 as u8).collect();
    Quantized { scale, bytes }
}

/// The cosine of the angle between a vector of length 1 and a quantized one.
pub(crate) fn similarity(normal: &[f32], scale: f32, bytes: &[u8]) -> f32 {
    let sum: f32 = normal.iter().zip(bytes).map(|(number, byte)| number * f32::from(*byte as i8)).sum();
    sum * scale
}

/// The number of 64-bit words for the signs of a vector.
pub(crate) fn code_words(dimensions: usize) -> usize {
    dimensions.div_ceil(64)
}

/// The signs, one bit for each number.
pub(crate) fn code(vector: &[f32]) -> Vec<u64> {
    let word = |part: &[f32]| {
        part.iter().enumerate().fold(0, |word, (bit, number)| word | (u64::from(*number > 0.0) << bit))
    };
    vector.chunks(64).map(word).collect()
}

pub(crate) fn to_bytes(code: &[u64]) -> Vec<u8> {
    code.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn from_bytes(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_quantized_vector_is_nearly_equal(vector in prop::collection::vec(-10.0_f32..10.0, 384)) {
            prop_assume!(vector.iter().any(|number| number.abs() > 0.01));
            let normal = normalize(&vector);
            let Quantized { scale, bytes } = quantize(&normal);
            let itself = similarity(&normal, scale, &bytes);
            prop_assert!((itself - 1.0).abs() < 0.01, "{itself}");
        }

        #[test]
        fn a_code_survives_the_database(vector in prop::collection::vec(-1.0_f32..1.0, 1..200)) {
            let code = code(&vector);
            prop_assert_eq!(code.len(), code_words(vector.len()));
            prop_assert_eq!(from_bytes(&to_bytes(&code)).collect::<Vec<_>>(), code);
        }
    }

    #[test]
    fn an_invalid_vector_does_no_harm() {
        for broken in [[0.0; 3], [f32::NAN; 3], [f32::INFINITY; 3]] {
            let Quantized { scale, bytes } = quantize(&normalize(&broken));
            assert_eq!(similarity(&[1.0, 0.0, 0.0], scale, &bytes), 0.0);
        }
    }
}
