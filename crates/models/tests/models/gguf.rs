//! Headers: what is written reads back, and nothing that is not a header does harm.

use std::time::{Duration, Instant};

use hob_models::gguf::{GgufSplit, PerLayer};
use hob_models::{ContextShape, GgufError, GgufHeader, KvPrecision, MemoryEstimate, MemoryNeeds};
use proptest::prelude::*;

use crate::files::{ARRAY, Entry, Gguf, TEXT, Tensor, U32, llama, real_model, shard, words};

/// For this many tokens in four conversations.
fn estimate(header: &GgufHeader, cells: u64) -> MemoryEstimate {
    let shape = ContextShape { cells, slots: 4, batch: 128, kv: KvPrecision::F16 };
    MemoryNeeds::of(header, 1_000_000).estimate(shape)
}

fn read(bytes: &[u8]) -> Result<GgufHeader, GgufError> {
    GgufHeader::read(bytes)
}

#[test]
fn a_header_reads_back() {
    let file = llama().write();
    let header = read(&file).unwrap();
    assert_eq!(
        header,
        GgufHeader {
            version: 3,
            architecture: Some("llama".into()),
            name: Some("Tiny".into()),
            license: Some("apache-2.0".into()),
            quantization: Some("Q4_K_M"),
            parameters: 150,
            tensors: 2,
            context_length: Some(8192),
            embedding_length: Some(576),
            block_count: Some(30),
            head_count: Some(PerLayer::Same(9)),
            head_count_kv: Some(PerLayer::Same(3)),
            key_length: None,
            value_length: None,
            has_latent_cache: false,
            shared_kv_layers: 0,
            feed_forward_length: None,
            recurrence: None,
            expert_count: None,
            vocabulary: Some(3),
            has_chat_template: true,
            is_causal: true,
            is_embedding: false,
            split: None,
            input_bytes: 400,
            output_bytes: 200,
            projector: None,
            expected_size: file.len() as u64,
        }
    );
    let older = Gguf { version: 2, ..llama() };
    assert_eq!(read(&older.write()).unwrap(), GgufHeader { version: 2, ..header });
}

#[test]
fn the_real_model_has_its_published_properties() {
    let (header, size) = GgufHeader::read_file(&real_model()).unwrap();
    assert_eq!(header.architecture.as_deref(), Some("llama"));
    assert_eq!(header.quantization, Some("Q4_1"));
    assert_eq!(header.context_length, Some(8192));
    assert_eq!(header.vocabulary, Some(49152));
    assert!(header.has_chat_template);
    assert_eq!(header.parameters / 1_000_000, 134);
    // The tables of tensor sizes are right if the weights end where the file does.
    assert_eq!(header.expected_size, size);
}

#[test]
fn numbers_may_differ_from_layer_to_layer() {
    let file = Gguf::new()
        .with("general.architecture", words("x"))
        .with("x.block_count", Entry::U64(3))
        .with("x.embedding_length", Entry::I32(64))
        .with("x.attention.head_count", Entry::U8(4))
        .with("x.attention.head_count_kv", Entry::Numbers(vec![4, 2, 0]));
    let header = read(&file.write()).unwrap();
    assert_eq!(header.head_count_kv, Some(PerLayer::Each(vec![4, 2, 0])));
    // Six heads in all, 16 numbers each for key and value, two bytes a number, 10 tokens rounded up.
    assert_eq!(estimate(&header, 10).kv_cache, 6 * (16 + 16) * 2 * 256);
}

#[test]
fn memory_is_weights_and_cache_and_buffers() {
    let header = read(&llama().write()).unwrap();
    let short = estimate(&header, 8192);
    assert_eq!(short.weights, 1_000_000);
    // 30 layers, 3 heads of 64 for key and for value, f16.
    assert_eq!(short.kv_cache, 30 * 3 * (64 + 64) * 2 * 8192);
    assert!(short.compute > 0 && short.library > 0);
    assert_eq!(short.total(), short.weights + short.kv_cache + short.compute + short.library);
    let longer = estimate(&header, 16384);
    assert_eq!((longer.kv_cache, longer.library), (2 * short.kv_cache, short.library));
    let needs = MemoryNeeds::of(&header, 0);
    assert_eq!(needs.conversation(8192, KvPrecision::F16), short.kv_cache);
    // 34 bytes for 32 numbers.
    assert_eq!(needs.conversation(8192, KvPrecision::Q8) * 64, short.kv_cache * 34);
}

#[test]
fn recurrent_layers_have_a_state_for_each_conversation() {
    let model = |kind: &str| {
        Gguf::new()
            .with("general.architecture", words(kind))
            .with(&format!("{kind}.block_count"), Entry::U32(4))
            .with(&format!("{kind}.embedding_length"), Entry::U32(64))
            .with(&format!("{kind}.attention.head_count"), Entry::U32(4))
    };
    let state = |inner: u64, state: u64, conv: u64, groups: u64| {
        (inner * state + (conv - 1) * (inner + 2 * groups * state)) * 4
    };
    let with_ssm = |file: Gguf, kind: &str| {
        file.with(&format!("{kind}.ssm.inner_size"), Entry::U32(128))
            .with(&format!("{kind}.ssm.state_size"), Entry::U32(16))
            .with(&format!("{kind}.ssm.conv_kernel"), Entry::U32(4))
            .with(&format!("{kind}.ssm.group_count"), Entry::U32(2))
    };
    // Layers without heads have the state.
    let hybrid = model("jamba").with("jamba.attention.head_count_kv", Entry::Numbers(vec![0, 2, 0, 0]));
    let header = read(&with_ssm(hybrid, "jamba").write()).unwrap();
    let expected = 2 * (16 + 16) * 2 * 256 + 4 * 3 * state(128, 16, 4, 2);
    assert_eq!(estimate(&header, 100).kv_cache, expected);
    // Every second layer has a cache.
    let hybrid = model("qwen3next")
        .with("qwen3next.attention.head_count_kv", Entry::U32(2))
        .with("qwen3next.full_attention_interval", Entry::U32(2));
    let header = read(&with_ssm(hybrid, "qwen3next").write()).unwrap();
    let expected = 2 * 2 * (16 + 16) * 2 * 256 + 4 * 2 * state(128, 16, 4, 2);
    assert_eq!(estimate(&header, 100).kv_cache, expected);
    // No cache at all.
    let header = read(&with_ssm(model("mamba"), "mamba").write()).unwrap();
    assert!(header.recurrence.is_some());
}

#[test]
fn compressed_and_shared_caches_are_smaller() {
    let model = || {
        Gguf::new()
            .with("general.architecture", words("x"))
            .with("x.block_count", Entry::U32(4))
            .with("x.embedding_length", Entry::U32(64))
            .with("x.attention.head_count", Entry::U32(4))
            .with("x.attention.head_count_kv", Entry::U32(1))
            .with("x.attention.key_length", Entry::U32(24))
            .with("x.attention.value_length", Entry::U32(16))
    };
    let cache = |file: Gguf| estimate(&read(&file.write()).unwrap(), 256).kv_cache;
    assert_eq!(cache(model()), 4 * (24 + 16) * 2 * 256);
    assert_eq!(cache(model().with("x.attention.key_length_mla", Entry::U32(12))), 4 * 24 * 2 * 256);
    assert_eq!(cache(model().with("x.attention.shared_kv_layers", Entry::U32(3))), (24 + 16) * 2 * 256);
}

#[test]
fn an_embedding_model_has_no_cache() {
    let file = Gguf::new()
        .with("general.architecture", words("nomic-bert"))
        .with("nomic-bert.block_count", Entry::U32(12))
        .with("nomic-bert.embedding_length", Entry::U32(768))
        .with("nomic-bert.attention.head_count", Entry::U32(12))
        .with("nomic-bert.attention.causal", Entry::Flag(false));
    let header = read(&file.write()).unwrap();
    assert!(header.is_embedding && !header.is_causal);
    assert_eq!(estimate(&header, 2048).kv_cache, 0);
}

#[test]
fn the_quantisation_is_that_of_most_bytes_if_unknown() {
    let mut file = Gguf::new().with("general.architecture", words("x"));
    file = file.tensor("norm", 8);
    file.tensors.push(Tensor { name: "weights".into(), shape: vec![256, 4], kind: 12, bytes: 4 * 144 });
    let bytes = file.write();
    let header = read(&bytes).unwrap();
    assert_eq!(header.quantization, Some("Q4_K"));
    assert_eq!(header.parameters, 8 + 1024);
    assert_eq!(header.expected_size, bytes.len() as u64);
}

#[test]
fn a_truncated_file_says_how_much_is_missing() {
    let file = llama().write();
    let header = read(&file).unwrap();
    let size = file.len() as u64;
    assert_eq!(header.missing_bytes(size), None);
    assert_eq!(header.missing_bytes(size + 1), None);
    assert_eq!(header.missing_bytes(size - 7), Some(7));
}

#[test]
fn parts_of_a_model_have_their_number() {
    let header = read(&shard(2, 3)).unwrap();
    assert_eq!(header.split, Some(GgufSplit { number: 1, count: 3 }));
    assert_eq!(header.architecture, None);
}

#[test]
fn files_mistaken_for_models_are_named() {
    let said = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert!(said(b"version https://git-lfs.github.com/spec/v1\n").contains("Git LFS pointer"));
    assert!(said(b"<!DOCTYPE html>").contains("a web page"));
    assert!(said(b"PK\x03\x04....").contains("a zip archive"));
    assert!(said(b"GG").contains("too short"));
    assert!(said(b"").contains("too short"));
    assert!(said(b"GGUF\x01\0\0\0").contains("version 1"));
    assert!(said(b"GGUF\0\0\0\x03").contains("big-endian"));
    assert!(said(b"GGUF\x03\0\0\0\x01").contains("ends inside its header"));
}

#[test]
fn a_directory_is_not_a_model() {
    let dir = tempfile::tempdir().unwrap();
    let error = GgufHeader::read_file(dir.path()).unwrap_err();
    assert!(error.to_string().contains("not a file"), "{error}");
}

/// A header that claims `tensors` and `entries`, followed by `rest`.
fn claiming(tensors: u64, entries: u64, rest: &[&[u8]]) -> Vec<u8> {
    let counts = [tensors.to_le_bytes(), entries.to_le_bytes()].concat();
    [b"GGUF\x03\0\0\0", &counts[..], &rest.concat()].concat()
}

const KEY: &[u8] = b"\x01\0\0\0\0\0\0\0k";

#[test]
fn hostile_lengths_end_at_once() {
    let huge = u64::MAX.to_le_bytes();
    let (text, array, number) = (TEXT.to_le_bytes(), ARRAY.to_le_bytes(), U32.to_le_bytes());
    let nested: Vec<u8> = [&array[..], &1_u64.to_le_bytes()].concat().repeat(100_000);
    let hostile: Vec<(&str, Vec<u8>)> = vec![
        ("tensors", claiming(u64::MAX, 0, &[])),
        ("entries", claiming(0, u64::MAX, &[])),
        ("key", claiming(0, 1, &[&huge])),
        ("text", claiming(0, 1, &[KEY, &text, &huge])),
        ("numbers", claiming(0, 1, &[KEY, &array, &number, &huge])),
        ("texts", claiming(0, 1, &[KEY, &array, &text, &huge])),
        ("arrays", claiming(0, 1, &[KEY, &array, &array, &huge])),
        ("nested", claiming(0, 1, &[KEY, &array, &nested])),
        ("kind", claiming(0, 1, &[KEY, &99_u32.to_le_bytes()])),
        ("dimensions", claiming(1, 0, &[KEY, &u32::MAX.to_le_bytes()])),
        ("shape", claiming(1, 0, &[KEY, &4_u32.to_le_bytes(), &huge.repeat(4), &[0; 12]])),
        ("offset", claiming(1, 0, &[KEY, &1_u32.to_le_bytes(), &[1; 8], &[0; 4], &huge])),
    ];
    for (what, bytes) in hostile {
        let began = Instant::now();
        assert!(read(&bytes).is_err(), "{what}");
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
    }
}

#[test]
fn an_endless_header_is_refused() {
    // Endless empty texts of eight bytes each.
    let start = claiming(0, 1, &[KEY, &ARRAY.to_le_bytes(), &TEXT.to_le_bytes(), &u64::MAX.to_le_bytes()]);
    let endless = std::io::Read::chain(&start[..], std::io::BufReader::new(std::io::repeat(0)));
    assert!(matches!(GgufHeader::read(endless), Err(GgufError::TooBig { what: "its own length", .. })));
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        any::<u8>().prop_map(Entry::U8),
        any::<i32>().prop_map(Entry::I32),
        any::<u32>().prop_map(Entry::U32),
        any::<u64>().prop_map(Entry::U64),
        any::<f32>().prop_map(Entry::F32),
        any::<bool>().prop_map(Entry::Flag),
        ".{0,20}".prop_map(Entry::Text),
        prop::collection::vec(any::<u32>(), 0..5).prop_map(Entry::Numbers),
        prop::collection::vec(".{0,5}", 0..5).prop_map(Entry::Texts),
    ]
}

/// Any file with any entries, among them those that mean something, and any tensors.
fn file() -> impl Strategy<Value = Gguf> {
    let key = prop_oneof![
        Just("general.name".to_owned()),
        Just("x.context_length".to_owned()),
        Just("split.count".to_owned()),
        Just("tokenizer.ggml.tokens".to_owned()),
        "[a-z.]{1,12}",
    ];
    (prop::collection::btree_map(key, entry(), 0..8), prop::collection::vec(1_u64..200, 0..5)).prop_map(
        |(entries, tensors)| {
            let mut file = Gguf::new().with("general.architecture", words("x"));
            file.entries.extend(entries);
            tensors.iter().fold(file, |file, length| file.tensor("t", *length))
        },
    )
}

proptest! {
    #[test]
    fn written_headers_can_be_read(file in file()) {
        let bytes = file.write();
        let header = read(&bytes).unwrap();
        let entry = |key: &str| file.entries.iter().find(|(known, _)| known == key).map(|(_, entry)| entry);
        prop_assert_eq!(header.expected_size, bytes.len() as u64);
        prop_assert_eq!(header.tensors, file.tensors.len() as u64);
        prop_assert_eq!(header.parameters, file.tensors.iter().map(|tensor| tensor.shape[0]).sum::<u64>());
        let context = match entry("x.context_length") {
            Some(Entry::U8(number)) => Some(u64::from(*number)),
            Some(Entry::U32(number)) => Some(u64::from(*number)),
            Some(Entry::U64(number)) => Some(*number),
            Some(Entry::I32(number)) => u64::try_from(*number).ok(),
            _ => None,
        };
        prop_assert_eq!(header.context_length, context);
        let name = match entry("general.name") {
            Some(Entry::Text(name)) if !name.is_empty() => Some(name.clone()),
            _ => None,
        };
        prop_assert_eq!(header.name, name);
    }

    #[test]
    fn a_truncated_file_is_an_error_or_says_what_is_missing(file in file(), at in any::<prop::sample::Index>()) {
        let bytes = file.write();
        let cut = at.index(bytes.len());
        match read(&bytes[..cut]) {
            Ok(header) => prop_assert_eq!(header.missing_bytes(cut as u64), Some((bytes.len() - cut) as u64)),
            Err(error) => prop_assert!(matches!(error, GgufError::CutShort | GgufError::Foreign(_)), "{}", error),
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(&bytes);
        // And with a head that lets them get further.
        let _ = read(&[b"GGUF\x03\0\0\0\x02\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0", &bytes[..]].concat());
    }

    #[test]
    fn a_damaged_file_never_panics(file in file(), damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = file.write();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(header) = read(&bytes) {
            // Arithmetic over hostile numbers must not overflow either.
            let shape = ContextShape { cells: u64::MAX, slots: u64::MAX, batch: u64::MAX, kv: KvPrecision::Q8 };
            let _ = MemoryNeeds::of(&header, u64::MAX).estimate(shape).total();
        }
    }
}
