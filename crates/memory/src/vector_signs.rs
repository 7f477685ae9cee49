//! The signs of all vectors of one model in memory: a first pass over a million takes milliseconds.

use std::collections::HashSet;

use crate::vector_quantization::code_words;

/// The version of the vectors in a database. Both numbers only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CodesVersion {
    /// The last id of a vector.
    pub(crate) added: i64,
    /// The last entry in the list of deleted vectors.
    pub(crate) removed: i64,
}

impl CodesVersion {
    /// Whether it is newer than `other`.
    pub(crate) fn is_after(self, other: CodesVersion) -> bool {
        self.added > other.added || self.removed > other.removed
    }
}

/// Ordered by id.
#[derive(Debug, Default)]
pub(crate) struct VectorSigns {
    /// The id of the model.
    pub(crate) model: i64,
    /// The version of the codes.
    pub(crate) version: CodesVersion,
    words_each: usize,
    ids: Vec<i64>,
    words: Vec<u64>,
}

impl VectorSigns {
    pub(crate) fn of_model(model: i64, dimensions: usize) -> Self {
        VectorSigns { model, words_each: code_words(dimensions), ..VectorSigns::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Appends a code. A code with another length is ignored.
    pub(crate) fn push(&mut self, id: i64, code: impl Iterator<Item = u64>) {
        let before = self.words.len();
        self.words.extend(code);
        if self.words.len() == before + self.words_each {
            self.ids.push(id);
        } else {
            self.words.truncate(before);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.ids.clear();
        self.words.clear();
    }

    /// Removes codes, and frees memory if much of it is unused.
    pub(crate) fn remove(&mut self, gone: &HashSet<i64>) {
        let each = self.words_each;
        let mut kept = 0;
        for index in 0..self.ids.len() {
            if gone.contains(&self.ids[index]) {
                continue;
            }
            if kept < index {
                self.ids[kept] = self.ids[index];
                self.words.copy_within(index * each..(index + 1) * each, kept * each);
            }
            kept += 1;
        }
        self.ids.truncate(kept);
        self.words.truncate(kept * each);
        if self.words.capacity() / 2 > self.words.len() {
            self.ids.shrink_to_fit();
            self.words.shrink_to_fit();
        }
    }

    fn distances(&self, code: &[u64]) -> Vec<u16> {
        match self.words_each {
            6 => distances::<6>(code, &self.words),
            12 => distances::<12>(code, &self.words),
            16 => distances::<16>(code, &self.words),
            other => self.words.chunks_exact(other).map(|other| distance(code, other)).collect(),
        }
    }

    /// The ids of at least `count` nearest codes.
    pub(crate) fn nearest(&self, code: &[u64], count: usize) -> Vec<i64> {
        if self.words_each == 0 || code.len() != self.words_each {
            return Vec::new();
        }
        let distances = self.distances(code);
        let farthest = farthest_of_nearest(&distances, 64 * self.words_each, count);
        let near = distances.iter().zip(&self.ids).filter(|(distance, _)| **distance <= farthest);
        near.map(|(_, id)| *id).collect()
    }

    /// The ids of at least `count` nearest codes among those with these ids, or of all of them.
    pub(crate) fn nearest_among(&self, code: &[u64], count: usize, own: &HashSet<i64>) -> Vec<i64> {
        if self.words_each == 0 || code.len() != self.words_each {
            return Vec::new();
        }
        let all = self.distances(code).into_iter().zip(self.ids.iter().copied());
        let (distances, ids): (Vec<u16>, Vec<i64>) = all.filter(|(_, id)| own.contains(id)).unzip();
        let farthest = farthest_of_nearest(&distances, 64 * self.words_each, count);
        let near = distances.into_iter().zip(ids).filter(|(distance, _)| *distance <= farthest);
        near.map(|(_, id)| id).collect()
    }
}

/// The distances to many codes. A constant length makes it several times as fast.
fn distances<const WORDS: usize>(code: &[u64], words: &[u64]) -> Vec<u16> {
    let (codes, _) = words.as_chunks::<WORDS>();
    code.first_chunk::<WORDS>()
        .map(|code| codes.iter().map(|other| distance(code, other)).collect())
        .unwrap_or_default()
}

fn distance(one: &[u64], other: &[u64]) -> u16 {
    one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones() as u16).sum()
}

/// The distance that includes `count` codes.
fn farthest_of_nearest(distances: &[u16], bits: usize, count: usize) -> u16 {
    let mut histogram = vec![0_usize; bits + 1];
    for distance in distances {
        histogram[usize::from(*distance)] += 1;
    }
    let mut sum = 0;
    let found = histogram.iter().position(|number| {
        sum += number;
        sum >= count
    });
    found.unwrap_or(bits) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(words: &[u64]) -> VectorSigns {
        let mut codes = VectorSigns::of_model(1, 64);
        for (index, word) in words.iter().enumerate() {
            codes.push(index as i64 + 1, [*word].into_iter());
        }
        codes
    }

    #[test]
    fn the_nearest_are_found_and_equals_are_not_separated() {
        let codes = codes(&[0b1111, 0b0001, 0b0011, 0b0101, u64::MAX]);
        assert_eq!(codes.nearest(&[0b0001], 1), [2]);
        assert_eq!(codes.nearest(&[0b0001], 2), [2, 3, 4], "two are equally near");
        assert_eq!(codes.nearest(&[0], 100), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_nearest_of_some_are_found_however_near_the_others_are() {
        let codes = codes(&[0b1111, 0b0001, 0b0011, 0b0101, u64::MAX]);
        assert_eq!(codes.nearest_among(&[0b0001], 1, &HashSet::from([1, 5, 99])), [1]);
        assert_eq!(codes.nearest_among(&[0b0001], 9, &HashSet::from([1, 5])), [1, 5]);
        assert_eq!(codes.nearest_among(&[0b0001], 9, &HashSet::new()), [0; 0]);
        assert_eq!(codes.nearest_among(&[1, 2], 9, &HashSet::from([1])), [0; 0]);
    }

    #[test]
    fn codes_of_common_lengths_are_compared_like_all_others() {
        for dimensions in [320, 384, 768, 1024] {
            let mut codes = VectorSigns::of_model(1, dimensions);
            let words = dimensions / 64;
            for id in 1..=9 {
                codes.push(id, std::iter::repeat_n((1 << id) - 1, words));
            }
            assert_eq!(codes.nearest(&vec![0b11_1111; words], 2), [5, 6, 7], "{dimensions}");
        }
    }

    #[test]
    fn a_code_of_another_length_does_not_match() {
        let mut codes = codes(&[1]);
        codes.push(9, [1, 2].into_iter());
        codes.push(10, std::iter::empty());
        assert_eq!(codes.ids, [1]);
        assert_eq!(codes.nearest(&[1, 2], 5), [0; 0]);
    }

    #[test]
    fn removed_codes_do_not_affect_others_and_free_memory() {
        for dimensions in [64, 320] {
            let words = dimensions / 64;
            let mut codes = VectorSigns::of_model(1, dimensions);
            for id in 1..=1_000 {
                codes.push(id, std::iter::repeat_n(id as u64, words));
            }
            codes.remove(&(1..=1_000).filter(|id| id % 100 != 7).chain([4711]).collect());
            assert_eq!(codes.ids, [7, 107, 207, 307, 407, 507, 607, 707, 807, 907]);
            assert_eq!(codes.nearest(&vec![607; words], 1), [607], "{dimensions}");
            assert!(codes.words.capacity() < 100 * words, "{}", codes.words.capacity());
            codes.remove(&HashSet::new());
            assert_eq!(codes.len(), 10);
        }
    }
}
