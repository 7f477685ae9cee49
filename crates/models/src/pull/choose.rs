//! Chooses the files of a model in a repository. Pure.

use std::collections::BTreeMap;

use crate::checksum::Checksum;
use crate::names::{self, Shard};
use crate::projector::is_projector_name;

/// A good compromise of quality and size.
const DEFAULT_QUANTIZATION: &str = "Q4_K_M";

/// The quantisations of projectors, the best compromise first.
const PROJECTOR_QUANTIZATIONS: [&str; 4] = ["Q8_0", "F16", "BF16", "F32"];

/// A file in the list of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HubFile {
    /// In the repository.
    pub path: String,
    pub size: u64,
    pub sha256: Option<Checksum>,
    /// Changes with the content: the checksum, or the hub's own version.
    pub version: String,
}

/// A model in a repository: one file, or all of its parts in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HubCandidate {
    /// The name without folders, numbers and extension.
    pub stem: String,
    /// The same with folders.
    path: String,
    pub files: Vec<HubFile>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Undecided {
    /// There is no such file; these exist.
    NoSuchFile(Vec<String>),
    /// These match equally well.
    Ambiguous(Vec<String>),
}

/// The models in a repository. Incomplete sets are skipped.
pub(super) fn candidates(files: Vec<HubFile>) -> Vec<HubCandidate> {
    let mut groups: BTreeMap<(String, u32), BTreeMap<u32, HubFile>> = BTreeMap::new();
    for file in files {
        let path = names::without_extension(&file.path);
        if path.len() == file.path.len() {
            continue;
        }
        let shard =
            Shard::parse(path).unwrap_or_else(|| Shard { stem: path.to_owned(), number: 1, count: 1 });
        let group = groups.entry((shard.stem, shard.count)).or_default();
        group.insert(shard.number, file);
    }
    groups
        .into_iter()
        .filter(|((_, count), parts)| parts.len() == *count as usize)
        .map(|((path, _), parts)| HubCandidate {
            stem: path.rsplit('/').next().unwrap_or(&path).to_owned(),
            path,
            files: parts.into_values().collect(),
        })
        .collect()
}

/// The model that `wanted` names by file or quantisation, or the default one.
pub(super) fn choose(candidates: Vec<HubCandidate>, wanted: Option<&str>) -> Result<HubCandidate, Undecided> {
    let Some(wanted) = wanted else {
        // Vision projectors are separate files, and not models.
        let mut models = candidates;
        models.retain(|candidate| !is_projector_name(&candidate.stem));
        let usual = pick(&models, |model| has_quantization(&model.stem, DEFAULT_QUANTIZATION));
        return match (usual, models.len()) {
            (Ok(model), _) => Ok(model),
            (Err(_), 1) => Ok(models.remove(0)),
            (Err(_), 0) => Err(Undecided::NoSuchFile(Vec::new())),
            (Err(_), _) => Err(Undecided::Ambiguous(stems(&models))),
        };
    };
    let path = names::without_extension(wanted);
    // The name of one part selects all parts.
    let path = Shard::parse(path).map_or_else(|| path.to_owned(), |shard| shard.stem);
    let is_wanted = |file: &HubFile| {
        file.path.eq_ignore_ascii_case(wanted)
            || file.path.rsplit('/').next().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
    };
    // A repository may have the same model in one file and in several.
    let named = pick(&candidates, |model| model.files.iter().any(is_wanted));
    named
        .or_else(|_| {
            pick(&candidates, |model| {
                model.path.eq_ignore_ascii_case(&path) || model.stem.eq_ignore_ascii_case(&path)
            })
        })
        .or_else(|_| pick(&candidates, |model| has_quantization(&model.stem, &path)))
}

/// The projector for a model of the repository: the file `wanted`, or the best one.
pub(super) fn projector(
    candidates: Vec<HubCandidate>,
    model: &HubCandidate,
    wanted: Option<&str>,
) -> Option<HubFile> {
    if is_projector_name(&model.stem) {
        return None;
    }
    let mut found: Vec<HubCandidate> = candidates
        .into_iter()
        .filter(|candidate| is_projector_name(&candidate.stem) && candidate.files.len() == 1)
        .collect();
    let rank = |candidate: &HubCandidate| {
        let is_wanted = wanted.is_some_and(|file| candidate.files.iter().any(|found| found.path == file));
        let place = PROJECTOR_QUANTIZATIONS.iter().position(|known| has_quantization(&candidate.stem, known));
        (!is_wanted, place.unwrap_or(PROJECTOR_QUANTIZATIONS.len()))
    };
    found.sort_by_key(rank);
    found.into_iter().next()?.files.into_iter().next()
}

fn pick(
    candidates: &[HubCandidate],
    fits: impl Fn(&HubCandidate) -> bool,
) -> Result<HubCandidate, Undecided> {
    let fitting: Vec<&HubCandidate> = candidates.iter().filter(|candidate| fits(candidate)).collect();
    match fitting[..] {
        [only] => Ok(only.clone()),
        [] => Err(Undecided::NoSuchFile(stems(candidates))),
        _ => Err(Undecided::Ambiguous(stems(fitting))),
    }
}

fn stems<'a>(candidates: impl IntoIterator<Item = &'a HubCandidate>) -> Vec<String> {
    candidates.into_iter().map(|model| model.path.clone()).collect()
}

/// Whether a name such as `llama-3.2-1b-Q4_K_M` has this quantisation, and not a longer one.
fn has_quantization(stem: &str, wanted: &str) -> bool {
    let (stem, wanted) = (stem.to_ascii_uppercase(), wanted.to_ascii_uppercase());
    stem.match_indices(&wanted).any(|(at, _)| {
        let before = stem[..at].chars().next_back();
        let after = stem[at + wanted.len()..].chars().next();
        before.is_none_or(|c| matches!(c, '-' | '.' | '_')) && after.is_none_or(|c| matches!(c, '-' | '.'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(paths: &[&str]) -> Vec<HubCandidate> {
        let file =
            |path: &&str| HubFile { path: (*path).to_owned(), size: 1, sha256: None, version: String::new() };
        candidates(paths.iter().map(file).collect())
    }

    fn chosen(paths: &[&str], wanted: Option<&str>) -> Result<Vec<String>, Undecided> {
        choose(repository(paths), wanted).map(|model| model.files.into_iter().map(|file| file.path).collect())
    }

    const USUAL: &[&str] =
        &["README.md", "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-IQ4_XS.gguf", "m-Q8_0.gguf", "mmproj-m-f16.gguf"];

    #[test]
    fn by_default_the_usual_quantisation_or_the_only_file_is_chosen() {
        assert_eq!(chosen(USUAL, None).unwrap(), ["m-Q4_K_M.gguf"]);
        assert_eq!(chosen(&["x-q8_0.gguf", "mmproj-x.gguf"], None).unwrap(), ["x-q8_0.gguf"]);
        assert_eq!(
            chosen(&["x-Q8_0.gguf", "x-Q2_K.gguf"], None),
            Err(Undecided::Ambiguous(vec!["x-Q2_K".into(), "x-Q8_0".into()]))
        );
        assert_eq!(chosen(&["model.safetensors"], None), Err(Undecided::NoSuchFile(vec![])));
    }

    #[test]
    fn a_file_or_a_quantisation_can_be_named_ignoring_case() {
        assert_eq!(chosen(USUAL, Some("q8_0")).unwrap(), ["m-Q8_0.gguf"]);
        assert_eq!(chosen(USUAL, Some("M-q4_k_s.GGUF")).unwrap(), ["m-Q4_K_S.gguf"]);
        assert_eq!(chosen(USUAL, Some("mmproj-m-f16")).unwrap(), ["mmproj-m-f16.gguf"]);
        // `Q4_K` is in the name of both, and is the quantisation of neither.
        assert!(matches!(
            chosen(USUAL, Some("Q4_K")),
            Err(Undecided::NoSuchFile(choices)) if choices.len() == 5
        ));
        assert_eq!(
            chosen(USUAL, Some("m")),
            Err(Undecided::Ambiguous(vec![
                "m-IQ4_XS".into(),
                "m-Q4_K_M".into(),
                "m-Q4_K_S".into(),
                "m-Q8_0".into(),
                "mmproj-m-f16".into()
            ]))
        );
    }

    #[test]
    fn a_projector_is_chosen_with_its_model() {
        let with = |paths: &[&str], wanted: Option<&str>| {
            let candidates = repository(paths);
            let model = choose(candidates.clone(), None).unwrap();
            projector(candidates, &model, wanted).map(|file| file.path)
        };
        let files = ["m-Q4_K_M.gguf", "mmproj-m-F32.gguf", "mmproj-m-Q8_0.gguf", "mmproj-m-bf16.gguf"];
        assert_eq!(with(&files, None).as_deref(), Some("mmproj-m-Q8_0.gguf"));
        assert_eq!(with(&files, Some("mmproj-m-F32.gguf")).as_deref(), Some("mmproj-m-F32.gguf"));
        assert_eq!(with(&["m-Q4_K_M.gguf", "mmproj.gguf"], None).as_deref(), Some("mmproj.gguf"));
        assert_eq!(with(&["m-Q4_K_M.gguf"], None), None);
        let candidates = repository(&files);
        let alone = choose(candidates.clone(), Some("mmproj-m-F32")).unwrap();
        assert_eq!(projector(candidates, &alone, None), None);
    }

    #[test]
    fn parts_are_complete_and_in_order_or_skipped() {
        let parts = ["d/x-Q4_0-00002-of-00002.gguf", "d/x-Q4_0-00001-of-00002.gguf"];
        let whole = ["d/x-Q4_0-00001-of-00002.gguf", "d/x-Q4_0-00002-of-00002.gguf"];
        assert_eq!(chosen(&parts, None).unwrap(), whole);
        assert_eq!(chosen(&parts, Some("d/x-Q4_0-00002-of-00002.gguf")).unwrap(), whole);
        assert_eq!(chosen(&parts, Some("Q4_0")).unwrap(), whole);
        assert_eq!(chosen(&parts[..1], None), Err(Undecided::NoSuchFile(vec![])));
        let both = [parts[0], parts[1], "d/x-Q4_0.gguf"];
        assert_eq!(chosen(&both, Some("x-Q4_0.gguf")).unwrap(), ["d/x-Q4_0.gguf"]);
        assert_eq!(chosen(&both, Some("x-Q4_0-00001-of-00002.gguf")).unwrap(), whole);
    }
}
