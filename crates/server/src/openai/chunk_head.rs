//! The constant part of the chunks of one stream, which is rendered once.

use std::ops::Range;

use crate::json::push_json;

/// `data: {…,"choices":[`, the beginning of every chunk.
pub(super) struct ChunkHead {
    bytes: Vec<u8>,
    /// Where the model stands.
    model: Range<usize>,
}

impl ChunkHead {
    pub(super) fn new(object: &str, id: &str, created: u64, model: &str) -> Self {
        let mut bytes = Vec::with_capacity(160 + model.len());
        bytes.extend_from_slice(b"data: {\"id\":");
        push_json(&mut bytes, id);
        bytes.extend_from_slice(b",\"object\":");
        push_json(&mut bytes, object);
        bytes.extend_from_slice(b",\"created\":");
        push_json(&mut bytes, &created);
        bytes.extend_from_slice(b",\"model\":");
        let start = bytes.len();
        push_json(&mut bytes, model);
        let model = start..bytes.len();
        bytes.extend_from_slice(b",\"choices\":[");
        ChunkHead { bytes, model }
    }

    pub(super) fn set_model(&mut self, model: &str) {
        let mut json = Vec::with_capacity(2 + model.len());
        push_json(&mut json, model);
        let end = self.model.start + json.len();
        self.bytes.splice(self.model.clone(), json);
        self.model.end = end;
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_that_answers_takes_the_place_of_the_one_that_was_asked_for() {
        let mut head = ChunkHead::new("text_completion", "cmpl-1", 7, "default");
        for model in ["a longer name than that", "m\"", ""] {
            head.set_model(model);
            let expected = ChunkHead::new("text_completion", "cmpl-1", 7, model);
            assert_eq!((head.bytes(), &head.model), (expected.bytes(), &expected.model));
        }
    }
}
