//! What to do about a model that no engine has.

use hob_models::{PullSpec, catalogue};
use strsim::jaro_winkler;

/// Names with at least this similarity, up to 1.0, are suggested.
const ALIKE: f64 = 0.8;

/// The maximum number of suggestions.
const MOST_OFFERS: usize = 3;

/// The hint for an engine that has only the models `available`, as a sentence without a full stop.
pub fn how_to_get(engine: &str, model: &str, available: &[String]) -> String {
    // Hob downloads models only for these. It may be a pool that contains one of them.
    let takes_downloads = ["ollama", "embedded"].iter().any(|key| engine.contains(key));
    if takes_downloads && is_downloadable(model) {
        return format!("Download it with 'hob model pull {model}', or see 'hob model list'");
    }
    match near(model, available.iter().map(String::as_str)).as_slice() {
        [] if !takes_downloads => "See 'hob model list'".to_owned(),
        [] => match near_download(model) {
            Some(other) => format!(
                "A model with a similar name can be downloaded: 'hob model pull {other}'. See also 'hob model list'"
            ),
            None => "See 'hob model list', or 'hob model list --available' for models to download".to_owned(),
        },
        near => format!("Did you mean {}? See 'hob model list'", near.join(", ")),
    }
}

/// Whether `hob model pull` surely knows the name. An Ollama may know others.
pub fn is_downloadable(model: &str) -> bool {
    matches!(model.parse(), Ok(PullSpec::Catalogue(_) | PullSpec::Hub(_)))
}

/// The model of the built-in list whose name is most similar.
fn near_download(model: &str) -> Option<&'static str> {
    near_downloads(model).first().copied()
}

/// The models of the built-in list with similar names, the best first.
pub fn near_downloads(model: &str) -> Vec<&'static str> {
    near(model, catalogue().map(|entry| entry.short_name))
}

/// The names that resemble it most, the best first.
pub fn near<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let mut near: Vec<(f64, &str)> = names
        .map(|known| (jaro_winkler(&name, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.into_iter().map(|(_, known)| known).take(MOST_OFFERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_suggests_the_model() {
        let known = ["qwen3:8b", "llama3.2:latest", "SmolLM2:latest", "qwen3:4b"];
        assert_eq!(near("lama3.2", known.into_iter()), ["llama3.2:latest"]);
        assert_eq!(near("smolm2", known.into_iter()), ["SmolLM2:latest"]);
        assert_eq!(near("qwen3:14b", known.into_iter()), ["qwen3:4b", "qwen3:8b"]);
        assert_eq!(near("gpt-oss", known.into_iter()), [""; 0]);
    }

    #[test]
    fn only_a_known_model_is_offered_for_download() {
        let available = ["mistral:7b".to_owned()];
        for (engine, model, expected) in [
            ("ollama", "qwen3:8b", "Download it with 'hob model pull qwen3:8b', or see 'hob model list'"),
            (
                "the pool (vllm, ollama)",
                "hf:owner/repo",
                "Download it with 'hob model pull hf:owner/repo', or see 'hob model list'",
            ),
            ("vllm", "qwen3:8b", "See 'hob model list'"),
            ("ollama", "mistal:7b", "Did you mean mistral:7b? See 'hob model list'"),
            (
                "embedded",
                "gwen3:8b",
                "A model with a similar name can be downloaded: 'hob model pull qwen3:8b'. See also 'hob model list'",
            ),
            (
                "ollama",
                "nope",
                "See 'hob model list', or 'hob model list --available' for models to download",
            ),
        ] {
            assert_eq!(how_to_get(engine, model, &available), expected, "{engine} {model}");
        }
    }
}
