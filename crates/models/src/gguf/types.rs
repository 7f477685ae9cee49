//! The tables of the format: tensor types and quantisations.

/// One way of storing tensors: `block` elements take `bytes`.
struct TensorType {
    name: &'static str,
    block: u64,
    bytes: u64,
}

const fn row(name: &'static str, block: u64, bytes: u64) -> Option<TensorType> {
    Some(TensorType { name, block, bytes })
}

/// By their number in a file. Gaps are withdrawn types.
const TENSOR_TYPES: [Option<TensorType>; 43] = [
    row("F32", 1, 4),
    row("F16", 1, 2),
    row("Q4_0", 32, 18),
    row("Q4_1", 32, 20),
    None,
    None,
    row("Q5_0", 32, 22),
    row("Q5_1", 32, 24),
    row("Q8_0", 32, 34),
    row("Q8_1", 32, 36),
    row("Q2_K", 256, 84),
    row("Q3_K", 256, 110),
    row("Q4_K", 256, 144),
    row("Q5_K", 256, 176),
    row("Q6_K", 256, 210),
    row("Q8_K", 256, 292),
    row("IQ2_XXS", 256, 66),
    row("IQ2_XS", 256, 74),
    row("IQ3_XXS", 256, 98),
    row("IQ1_S", 256, 50),
    row("IQ4_NL", 32, 18),
    row("IQ3_S", 256, 110),
    row("IQ2_S", 256, 82),
    row("IQ4_XS", 256, 136),
    row("I8", 1, 1),
    row("I16", 1, 2),
    row("I32", 1, 4),
    row("I64", 1, 8),
    row("F64", 1, 8),
    row("IQ1_M", 256, 56),
    row("BF16", 1, 2),
    None,
    None,
    None,
    row("TQ1_0", 256, 54),
    row("TQ2_0", 256, 66),
    None,
    None,
    None,
    row("MXFP4", 32, 17),
    row("NVFP4", 64, 36),
    row("Q1_0", 128, 18),
    row("Q2_0", 64, 18),
];

/// The bytes of a tensor: `None` for an unknown type, `Some(None)` for an overflow.
pub(super) fn tensor_size(kind: u32, elements: u64) -> Option<Option<u64>> {
    let known = TENSOR_TYPES.get(kind as usize)?.as_ref()?;
    Some(elements.div_ceil(known.block).checked_mul(known.bytes))
}

/// The bytes of each tensor type.
pub(super) struct TensorTypes([u64; TENSOR_TYPES.len()]);

impl Default for TensorTypes {
    fn default() -> Self {
        TensorTypes([0; TENSOR_TYPES.len()])
    }
}

impl TensorTypes {
    pub fn add(&mut self, kind: u32, bytes: u64) {
        if let Some(sum) = self.0.get_mut(kind as usize) {
            *sum = sum.saturating_add(bytes);
        }
    }

    /// The type with the most bytes.
    pub fn dominant(&self) -> Option<&'static str> {
        let most = self.0.iter().zip(&TENSOR_TYPES).max_by_key(|(bytes, _)| **bytes);
        most.filter(|(bytes, _)| **bytes > 0).and_then(|(_, known)| known.as_ref()).map(|known| known.name)
    }
}

/// The name of `general.file_type`, which also distinguishes mixtures.
pub(super) fn file_type_name(file_type: u64) -> Option<&'static str> {
    // Set by converters that guessed the type.
    const GUESSED: u64 = 1024;
    Some(match file_type & !GUESSED {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4",
        39 => "NVFP4",
        40 => "Q1_0",
        41 => "Q2_0",
        _ => return None,
    })
}
