//! A writer of GGUF files, for tests.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

pub const U32: u32 = 4;
pub const TEXT: u32 = 8;
pub const ARRAY: u32 = 9;

#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    U8(u8),
    I32(i32),
    U32(u32),
    U64(u64),
    F32(f32),
    Flag(bool),
    Text(String),
    Numbers(Vec<u32>),
    Texts(Vec<String>),
}

#[derive(Debug, Clone)]
pub struct Tensor {
    pub name: String,
    pub shape: Vec<u64>,
    pub kind: u32,
    /// Bytes of its data.
    pub bytes: u64,
}

/// A file to be.
#[derive(Debug, Clone)]
pub struct Gguf {
    pub version: u32,
    pub entries: Vec<(String, Entry)>,
    pub tensors: Vec<Tensor>,
}

impl Gguf {
    pub fn new() -> Self {
        Gguf { version: 3, entries: Vec::new(), tensors: Vec::new() }
    }

    pub fn with(mut self, key: &str, entry: Entry) -> Self {
        self.entries.push((key.to_owned(), entry));
        self
    }

    /// A tensor of `elements` 32-bit numbers.
    pub fn tensor(mut self, name: &str, elements: u64) -> Self {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape: vec![elements],
            kind: 0,
            bytes: 4 * elements,
        });
        self
    }

    pub fn write(&self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(self.version.to_le_bytes());
        out.extend((self.tensors.len() as u64).to_le_bytes());
        out.extend((self.entries.len() as u64).to_le_bytes());
        for (key, entry) in &self.entries {
            text(&mut out, key);
            write_entry(&mut out, entry);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            text(&mut out, &tensor.name);
            out.extend((tensor.shape.len() as u32).to_le_bytes());
            for length in &tensor.shape {
                out.extend(length.to_le_bytes());
            }
            out.extend(tensor.kind.to_le_bytes());
            out.extend(u64::to_le_bytes(offset));
            offset = (offset + tensor.bytes).next_multiple_of(32);
        }
        if let Some(last) = self.tensors.last() {
            let start = out.len().next_multiple_of(32);
            let padding = last.bytes.next_multiple_of(32) - last.bytes;
            let end = start as u64 + offset - padding;
            // Every place different, so that a part in the wrong place is noticed.
            let data = (out.len() as u64..end).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8);
            out.extend(data);
        }
        out
    }
}

fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    let mut kind = |number: u32| out.extend(number.to_le_bytes());
    match entry {
        Entry::U8(number) => {
            kind(0);
            out.push(*number);
        }
        Entry::I32(number) => {
            kind(5);
            out.extend(number.to_le_bytes());
        }
        Entry::U32(number) => {
            kind(U32);
            out.extend(number.to_le_bytes());
        }
        Entry::U64(number) => {
            kind(10);
            out.extend(number.to_le_bytes());
        }
        Entry::F32(number) => {
            kind(6);
            out.extend(number.to_le_bytes());
        }
        Entry::Flag(flag) => {
            kind(7);
            out.push(u8::from(*flag));
        }
        Entry::Text(value) => {
            kind(TEXT);
            text(out, value);
        }
        Entry::Numbers(numbers) => {
            kind(ARRAY);
            kind(U32);
            out.extend((numbers.len() as u64).to_le_bytes());
            numbers.iter().for_each(|number| out.extend(number.to_le_bytes()));
        }
        Entry::Texts(texts) => {
            kind(ARRAY);
            kind(TEXT);
            out.extend((texts.len() as u64).to_le_bytes());
            texts.iter().for_each(|value| text(out, value));
        }
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

pub fn words(value: &str) -> Entry {
    Entry::Text(value.to_owned())
}

/// A small llama with everything that a real one has.
pub fn llama() -> Gguf {
    Gguf::new()
        .with("general.architecture", words("llama"))
        .with("general.name", words("Tiny"))
        .with("general.license", words("apache-2.0"))
        .with("general.file_type", Entry::U32(15))
        .with("llama.context_length", Entry::U32(8192))
        .with("llama.embedding_length", Entry::U32(576))
        .with("llama.block_count", Entry::U32(30))
        .with("llama.attention.head_count", Entry::U32(9))
        .with("llama.attention.head_count_kv", Entry::U32(3))
        .with("llama.rope.freq_base", Entry::F32(1e5))
        .with("tokenizer.ggml.tokens", Entry::Texts(vec!["a".into(), "b".into(), "c".into()]))
        .with("tokenizer.ggml.add_bos_token", Entry::Flag(false))
        .with("tokenizer.chat_template", words(&"{{ message }}".repeat(400)))
        .tensor("token_embd.weight", 100)
        .tensor("output.weight", 50)
}

/// A model file of a few megabytes, so that it can break off in the middle. `which` is 1 or 2: same size, other content.
pub fn model(which: usize) -> Vec<u8> {
    static MODELS: [LazyLock<Vec<u8>>; 2] =
        [LazyLock::new(|| write_model(1)), LazyLock::new(|| write_model(2))];
    MODELS[which - 1].clone()
}

fn write_model(seed: u64) -> Vec<u8> {
    llama().with("seed", Entry::U64(seed)).tensor("big", 1 << 20).write()
}

/// One file of a model in several.
pub fn shard(number: u32, count: u32) -> Vec<u8> {
    let file = match number {
        1 => llama(),
        _ => Gguf::new().tensor("more.weight", 1000 * u64::from(number)),
    };
    file.with("split.no", Entry::U32(number - 1)).with("split.count", Entry::U32(count)).write()
}

pub fn sha256(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The names of a directory, without what is hidden.
pub fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    names
}

/// The real model that `./dev test` provides.
pub fn real_model() -> PathBuf {
    std::env::var_os("HOB_TEST_MODEL").expect("HOB_TEST_MODEL names a GGUF file; './dev test' sets it").into()
}
