//! A projector file with random weights. llama.cpp loads and runs it like a real one; only what it sees has no meaning.
//!
//! Pictures: two layers, and 16 vectors for a picture, or one for each 28 × 28 pixels. Sound: a Whisper encoder of one layer, and 750
//! vectors for up to 30 seconds.

use std::io;
use std::path::Path;

/// The vectors of a picture.
pub const PICTURE_VECTORS: u64 = 16;

/// The vectors of up to 30 seconds of sound.
pub const SOUND_VECTORS: u64 = 750;

/// The width of its own layers.
const WIDTH: u64 = 32;
const FEED_FORWARD: u64 = 64;
const HEADS: u32 = 4;
const PATCH: u64 = 14;
const MEL_BINS: u64 = 80;
const SOUND_POSITIONS: u64 = 1500;

/// The numbers of the format for types.
const U32: u32 = 4;
const F32: u32 = 6;
const FLAG: u32 = 7;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const TENSOR_F32: u32 = 0;
const TENSOR_F16: u32 = 1;

/// How a model reads the vectors of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureOrder {
    /// One after the other, as LLaVA.
    Row,
    /// With two coordinates, as Qwen2-VL. The model must have positions of several coordinates.
    Grid,
    /// All at once, as Gemma 3.
    Whole,
}

/// A projector to be.
#[derive(Debug, Clone, Copy)]
pub struct TinyProjector {
    pub order: PictureOrder,
    /// The width of the model that it is for.
    pub model_width: u32,
    pub sees: bool,
    pub hears: bool,
    /// The pixels of a patch in the header; 14 fits the weights.
    pub patch_size: u32,
    /// The width of the vectors in between; 16 fits the weights.
    pub inner_width: u64,
}

impl TinyProjector {
    /// One that sees and hears.
    pub fn new(model_width: u32) -> Self {
        TinyProjector {
            order: PictureOrder::Row,
            model_width,
            sees: true,
            hears: true,
            patch_size: PATCH as u32,
            inner_width: 16,
        }
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = File::default();
        file.text("general.architecture", "clip");
        file.text("general.type", "mmproj");
        file.flag("clip.has_vision_encoder", self.sees);
        file.flag("clip.has_audio_encoder", self.hears);
        file.flag("clip.use_gelu", true);
        if self.sees {
            self.vision(&mut file);
        }
        if self.hears {
            self.audio(&mut file);
        }
        std::fs::write(path, file.bytes())
    }

    fn encoder(&self, file: &mut File, kind: &str, layers: u32) {
        let number = |name: &str| format!("clip.{kind}.{name}");
        file.number(&number("embedding_length"), WIDTH as u32);
        file.number(&number("feed_forward_length"), FEED_FORWARD as u32);
        file.number(&number("block_count"), layers);
        file.number(&number("attention.head_count"), HEADS);
        file.number(&number("projection_dim"), self.model_width);
        file.float(&number("attention.layer_norm_epsilon"), 1e-5);
        let prefix = &kind[..1];
        for layer in 0..layers {
            let name = |part: &str| format!("{prefix}.blk.{layer}.{part}");
            for part in ["attn_q", "attn_k", "attn_v", "attn_out"] {
                file.weights(&name(&format!("{part}.weight")), &[WIDTH, WIDTH]);
                // Whisper has no bias here.
                if part != "attn_k" || kind == "vision" {
                    file.weights(&name(&format!("{part}.bias")), &[WIDTH]);
                }
            }
            for part in ["ln1", "ln2"] {
                file.ones(&name(&format!("{part}.weight")), &[WIDTH]);
                file.weights(&name(&format!("{part}.bias")), &[WIDTH]);
            }
            file.weights(&name("ffn_up.weight"), &[WIDTH, FEED_FORWARD]);
            file.weights(&name("ffn_up.bias"), &[FEED_FORWARD]);
            file.weights(&name("ffn_down.weight"), &[FEED_FORWARD, WIDTH]);
            file.weights(&name("ffn_down.bias"), &[WIDTH]);
        }
    }

    fn vision(&self, file: &mut File) {
        let width = u64::from(self.model_width);
        let (kind, side) = match self.order {
            PictureOrder::Row => ("mlp", 4),
            PictureOrder::Grid => ("qwen2vl_merger", 4),
            PictureOrder::Whole => ("gemma3", 16),
        };
        file.text("clip.vision.projector_type", kind);
        file.number("clip.vision.image_size", side * PATCH as u32);
        file.number("clip.vision.patch_size", self.patch_size);
        file.floats("clip.vision.image_mean", &[0.5; 3]);
        file.floats("clip.vision.image_std", &[0.5; 3]);
        self.encoder(file, "vision", 2);
        file.weights("v.patch_embd.weight", &[PATCH, PATCH, 3, WIDTH]);
        match self.order {
            PictureOrder::Row => {
                file.weights("v.position_embd.weight", &[WIDTH, PICTURE_VECTORS]);
                file.weights("mm.0.weight", &[WIDTH, 16]);
            }
            PictureOrder::Grid => {
                file.weights("v.patch_embd.weight.1", &[PATCH, PATCH, 3, WIDTH]);
                file.weights("mm.0.weight", &[4 * WIDTH, 16]);
            }
            PictureOrder::Whole => {
                file.weights("v.position_embd.weight", &[WIDTH, u64::from(side * side)]);
                file.ones("v.post_ln.weight", &[WIDTH]);
                file.weights("v.post_ln.bias", &[WIDTH]);
                file.weights("mm.input_projection.weight", &[width, WIDTH]);
                file.ones("mm.soft_emb_norm.weight", &[WIDTH]);
                return;
            }
        }
        file.weights("mm.0.bias", &[16]);
        file.weights("mm.2.weight", &[self.inner_width, width]);
        file.weights("mm.2.bias", &[width]);
    }

    fn audio(&self, file: &mut File) {
        let width = u64::from(self.model_width);
        file.text("clip.audio.projector_type", "qwen2a");
        file.number("clip.audio.num_mel_bins", MEL_BINS as u32);
        self.encoder(file, "audio", 1);
        // llama.cpp needs 16 bits here.
        file.half_weights("a.conv1d.1.weight", &[3, MEL_BINS, WIDTH]);
        file.weights("a.conv1d.1.bias", &[1, WIDTH]);
        file.half_weights("a.conv1d.2.weight", &[3, WIDTH, WIDTH]);
        file.weights("a.conv1d.2.bias", &[1, WIDTH]);
        file.weights("a.position_embd.weight", &[WIDTH, SOUND_POSITIONS]);
        file.ones("a.post_ln.weight", &[WIDTH]);
        file.weights("a.post_ln.bias", &[WIDTH]);
        file.weights("mm.a.fc.weight", &[WIDTH, width]);
        file.weights("mm.a.fc.bias", &[width]);
    }
}

/// A GGUF file to be.
#[derive(Default)]
struct File {
    entries: Vec<u8>,
    entry_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
    seed: u32,
}

impl File {
    fn entry(&mut self, key: &str, kind: u32) {
        self.entry_count += 1;
        put_text(&mut self.entries, key);
        self.entries.extend(kind.to_le_bytes());
    }

    fn text(&mut self, key: &str, value: &str) {
        self.entry(key, TEXT);
        put_text(&mut self.entries, value);
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.entry(key, FLAG);
        self.entries.push(value.into());
    }

    fn number(&mut self, key: &str, value: u32) {
        self.entry(key, U32);
        self.entries.extend(value.to_le_bytes());
    }

    fn float(&mut self, key: &str, value: f32) {
        self.entry(key, F32);
        self.entries.extend(value.to_le_bytes());
    }

    fn floats(&mut self, key: &str, values: &[f32]) {
        self.entry(key, ARRAY);
        self.entries.extend(F32.to_le_bytes());
        self.entries.extend((values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| self.entries.extend(value.to_le_bytes()));
    }

    /// Random numbers, the same in every run.
    fn weights(&mut self, name: &str, shape: &[u64]) {
        let numbers = self.random(shape);
        self.tensor(name, shape, TENSOR_F32);
        numbers.iter().for_each(|number| self.data.extend(number.to_le_bytes()));
    }

    fn ones(&mut self, name: &str, shape: &[u64]) {
        self.tensor(name, shape, TENSOR_F32);
        (0..shape.iter().product()).for_each(|_| self.data.extend(1_f32.to_le_bytes()));
    }

    fn half_weights(&mut self, name: &str, shape: &[u64]) {
        let numbers = self.random(shape);
        self.tensor(name, shape, TENSOR_F16);
        numbers.iter().for_each(|number| self.data.extend(half(*number).to_le_bytes()));
    }

    /// Numbers whose size fits a layer that reads as many as the first dimension has.
    fn random(&mut self, shape: &[u64]) -> Vec<f32> {
        let count: u64 = shape.iter().product();
        let fan_in: u64 = if shape.len() > 2 { shape[..shape.len() - 1].iter().product() } else { shape[0] };
        let size = 1.7 / (fan_in as f32).sqrt();
        let mut next = || {
            self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (self.seed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next() * size).collect()
    }

    /// Its data follows.
    fn tensor(&mut self, name: &str, shape: &[u64], kind: u32) {
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self.tensor_count += 1;
        put_text(&mut self.tensors, name);
        self.tensors.extend((shape.len() as u32).to_le_bytes());
        shape.iter().for_each(|length| self.tensors.extend(length.to_le_bytes()));
        self.tensors.extend(kind.to_le_bytes());
        self.tensors.extend((self.data.len() as u64).to_le_bytes());
    }

    fn bytes(self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend(self.tensor_count.to_le_bytes());
        out.extend(self.entry_count.to_le_bytes());
        out.extend(self.entries);
        out.extend(self.tensors);
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(self.data);
        out.resize(out.len().next_multiple_of(32), 0);
        out
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// The 16 bits of a number between -1 and 1.
fn half(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = (bits >> 23 & 0xFF) as i32 - 127 + 15;
    if exponent <= 0 { sign } else { sign | (exponent as u16) << 10 | (bits >> 13 & 0x3FF) as u16 }
}
