//! From published files to a GGUF file: a tiny model that is right, and many that are not.

use std::io::Cursor;

use hob_models::GgufHeader;
use hob_models::convert::{BertFiles, ConvertError, bert_to_gguf};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const VOCABULARY: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nhouse\n##s\n";

fn config() -> Value {
    json!({
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": 32,
        "intermediate_size": 64,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 16,
        "num_attention_heads": 2,
        "num_hidden_layers": 1,
        "type_vocab_size": 2,
        "vocab_size": 7,
    })
}

/// The tensors of the model above.
fn shapes() -> Vec<(String, Vec<u64>)> {
    let mut shapes = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![7, 32]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![16, 32]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, 32]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![32]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![32]),
    ];
    for (name, rows, columns) in [
        ("attention.self.query", 32, 32),
        ("attention.self.key", 32, 32),
        ("attention.self.value", 32, 32),
        ("attention.output.dense", 32, 32),
        ("intermediate.dense", 64, 32),
        ("output.dense", 32, 64),
    ] {
        shapes.push((format!("encoder.layer.0.{name}.weight"), vec![rows, columns]));
        shapes.push((format!("encoder.layer.0.{name}.bias"), vec![rows]));
    }
    for name in ["attention.output.LayerNorm", "output.LayerNorm"] {
        shapes.push((format!("encoder.layer.0.{name}.weight"), vec![32]));
        shapes.push((format!("encoder.layer.0.{name}.bias"), vec![32]));
    }
    shapes
}

/// The header of a safetensors file, and its numbers.
fn weights() -> (Map<String, Value>, Vec<u8>) {
    let mut header = Map::from_iter([("__metadata__".to_owned(), json!({ "format": "pt" }))]);
    let mut data = Vec::new();
    for (name, shape) in shapes() {
        let start = data.len();
        let count = shape.iter().product::<u64>();
        data.extend((0..count).flat_map(|at| ((at % 17) as f32 / 16.0 - 0.5).to_le_bytes()));
        let entry = json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(name, entry);
    }
    (header, data)
}

fn safetensors(header: &Map<String, Value>, data: &[u8]) -> Vec<u8> {
    let header = serde_json::to_vec(header).unwrap();
    [&(header.len() as u64).to_le_bytes()[..], &header, data].concat()
}

fn convert(config: &Value, weights: &[u8]) -> Result<Vec<u8>, ConvertError> {
    let mut out = Vec::new();
    let config = config.to_string();
    let files = BertFiles {
        name: "Tiny",
        config: config.as_bytes(),
        vocabulary: VOCABULARY.as_bytes(),
        weights: Cursor::new(weights),
    };
    bert_to_gguf(files, &mut out, |_, _| Ok(()))?;
    Ok(out)
}

/// What is said of a model whose header was changed.
fn complaint(change: impl FnOnce(&mut Map<String, Value>)) -> String {
    let (mut header, data) = weights();
    change(&mut header);
    convert(&config(), &safetensors(&header, &data)).unwrap_err().to_string()
}

#[test]
fn a_published_model_is_converted_and_can_be_read() {
    let (header, data) = weights();
    let file = convert(&config(), &safetensors(&header, &data)).unwrap();
    let read = GgufHeader::read(Cursor::new(&file)).unwrap();
    assert_eq!(read.expected_size.next_multiple_of(32), file.len() as u64);
    assert_eq!((read.architecture.as_deref(), read.name.as_deref()), (Some("bert"), Some("Tiny")));
    assert_eq!((read.quantization, read.context_length, read.vocabulary), (Some("Q8_0"), Some(16), Some(7)));
    assert!(read.is_embedding && !read.is_causal && !read.has_chat_template);
    let parameters: u64 = shapes().iter().map(|(_, shape)| shape.iter().product::<u64>()).sum();
    assert_eq!((read.parameters, read.tensors), (parameters, shapes().len() as u64));
    assert_eq!(convert(&config(), &safetensors(&header, &data)).unwrap(), file, "the same from the same");
}

#[test]
fn progress_is_reported_and_may_end_the_conversion() {
    let (header, data) = weights();
    let weights = safetensors(&header, &data);
    let config = config().to_string();
    let files = || BertFiles {
        name: "Tiny",
        config: config.as_bytes(),
        vocabulary: VOCABULARY.as_bytes(),
        weights: Cursor::new(&weights),
    };
    let mut last = (0, 0);
    bert_to_gguf(files(), std::io::sink(), |done, total| {
        last = (done, total);
        Ok(())
    })
    .unwrap();
    assert_eq!(last, (data.len() as u64, data.len() as u64));
    let stopped = bert_to_gguf(files(), std::io::sink(), |_, _| Err(std::io::Error::other("enough")));
    assert!(stopped.unwrap_err().to_string().contains("enough"));
}

#[test]
fn weights_that_do_not_fit_are_named() {
    const QUERY: &str = "encoder.layer.0.attention.self.query.weight";
    let missing = complaint(|header| drop(header.remove(QUERY)));
    assert_eq!(missing, format!("its model.safetensors is not valid: '{QUERY}' is missing"));
    let other_shape = complaint(|header| header[QUERY]["shape"] = json!([16, 64]));
    assert!(other_shape.contains("has the shape [16, 64], but must have [32, 32]"), "{other_shape}");
    let other_type = complaint(|header| header[QUERY]["dtype"] = json!("BF16"));
    assert!(other_type.contains("has the type BF16"), "{other_type}");
    for offsets in
        [json!([0, u64::MAX]), json!([u64::MAX, 4096]), json!([8, 8]), json!([1_000_000, 1_004_096])]
    {
        let elsewhere = complaint(|header| header[QUERY]["data_offsets"] = offsets.clone());
        assert!(elsewhere.contains("are not valid"), "{offsets}: {elsewhere}");
    }
    let nonsense = complaint(|header| header[QUERY] = json!("a tensor"));
    assert!(nonsense.contains(QUERY), "{nonsense}");
}

#[test]
fn invalid_numbers_are_refused() {
    let (header, mut data) = weights();
    data[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
    let error = convert(&config(), &safetensors(&header, &data)).unwrap_err().to_string();
    assert!(error.contains("has missing or invalid numbers"), "{error}");
}

#[test]
fn a_header_with_a_wrong_length_is_refused_cheaply() {
    for length in [0_u64, 1 << 20, 1 << 40, u64::MAX] {
        let file = [&length.to_le_bytes()[..], b"{}"].concat();
        let error = convert(&config(), &file).unwrap_err();
        assert!(matches!(error, ConvertError::Bad { .. }), "{error}");
    }
    assert!(convert(&config(), b"short").unwrap_err().to_string().contains("too short"));
}

#[test]
fn a_configuration_of_another_kind_or_size_is_refused() {
    let (header, data) = weights();
    for (key, value) in [
        ("model_type", json!("roberta")),
        ("hidden_act", json!("relu")),
        ("position_embedding_type", json!("relative_key")),
        ("hidden_size", json!(0)),
        ("hidden_size", json!(33)),
        ("hidden_size", json!(4_000_000_000_u32)),
        ("num_hidden_layers", json!(100_000)),
        ("num_attention_heads", json!(3)),
        ("vocab_size", json!(-1)),
        ("vocab_size", json!(8)),
        ("layer_norm_eps", json!(0)),
    ] {
        let mut config = config();
        config[key] = value.clone();
        let error = convert(&config, &safetensors(&header, &data)).unwrap_err();
        assert!(matches!(error, ConvertError::Bad { .. }), "{key} = {value}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_damaged_file_never_panics(
        damage in prop::collection::vec((0_usize..4000, any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
    ) {
        let (header, data) = weights();
        let mut file = safetensors(&header, &data);
        for (at, byte) in damage {
            file[at] = byte;
        }
        let _ = convert(&config(), &file);
        let _ = convert(&config(), &file[..cut.index(file.len())]);
    }
}
