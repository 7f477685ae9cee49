//! Converts a BERT model of sentence-transformers to GGUF: weights as safetensors, a WordPiece vocabulary and a configuration.
//!
//! The matrices become Q8_0: for all-MiniLM-L6-v2 that is 28 % of the bytes and 1.5 times as fast on a CPU, with vectors whose
//! cosine to the original is above 0.998. The sources are not trusted: no allocation exceeds their length, and errors are
//! explained. Equal sources give equal files. Knows nothing of llama.cpp except its file format, and nothing of the origin of the
//! sources.

mod bert;
mod error;
mod gguf_file;
mod q8;
mod safetensors;
mod vocabulary;

use std::io::{self, Read, Seek, Write};

use self::bert::{Settings, TensorSource};
pub use self::error::ConvertError;
use self::gguf_file::{GgufFile, Storage, TensorInfo};
use self::safetensors::Safetensors;
use self::vocabulary::Vocabulary;

pub struct BertFiles<'a, R> {
    /// The display name.
    pub name: &'a str,
    /// `config.json`.
    pub config: &'a [u8],
    /// `vocab.txt`.
    pub vocabulary: &'a [u8],
    /// `model.safetensors`.
    pub weights: R,
}

/// Writes the GGUF file. `progress` gets the bytes of weights done and in total, and may end it with an error.
pub fn bert_to_gguf<R: Read + Seek>(
    files: BertFiles<'_, R>,
    out: impl Write,
    mut progress: impl FnMut(u64, u64) -> io::Result<()>,
) -> Result<(), ConvertError> {
    let settings = Settings::read(files.config)?;
    let vocabulary = Vocabulary::read(files.vocabulary, settings.vocab_size)?;
    let mut weights = Safetensors::open(files.weights)?;

    let mut file = GgufFile::default();
    bert::describe(&mut file, files.name, &settings, &vocabulary);
    let sources = bert::tensors(&settings);
    for source in &sources {
        file.tensor(TensorInfo {
            name: source.to.clone(),
            shape: source.shape.clone(),
            storage: source.storage,
        });
    }
    let total = sources.iter().map(TensorSource::bytes).sum();
    let mut done = 0;
    let mut writing = file.write(out).map_err(ConvertError::Write)?;
    for source in &sources {
        let numbers = weights.floats(&source.from, &source.shape)?;
        let bytes = match source.storage {
            Storage::F32 => numbers.iter().flat_map(|number| number.to_le_bytes()).collect(),
            Storage::Q8_0 => q8::quantise(&numbers),
        };
        writing.tensor(&bytes).map_err(ConvertError::Write)?;
        done += source.bytes();
        progress(done, total).map_err(ConvertError::Write)?;
    }
    writing.finish().map_err(ConvertError::Write)
}
