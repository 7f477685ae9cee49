//! FNV-1a, a hash that is the same in every process and version. It does not resist attacks.

/// The hash of nothing.
pub const START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash with one more byte. Callers that hash much may give eight bytes at a time, which is another hash.
pub const fn fnv1a(hash: u64, bytes: u64) -> u64 {
    (hash ^ bytes).wrapping_mul(0x0000_0100_0000_01b3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hashes_are_those_of_the_specification() {
        let hash = |text: &str| text.bytes().fold(START, |hash, byte| fnv1a(hash, byte.into()));
        assert_eq!(["", "a", "foobar"].map(hash), [START, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8]);
    }
}
