//! The names of models for a pull.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::catalogue::{self, CatalogueEntry};

/// A model, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PullSpec {
    /// One of the built-in list.
    Catalogue(&'static CatalogueEntry),
    /// `hf:owner/repo[:file or quantisation]`, or the hub's address of it.
    Hub(HubSpec),
    /// A GGUF file on this machine.
    File(PathBuf),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSpec {
    /// `owner/repo`.
    pub repo: String,
    /// A file's name or a quantisation such as `Q4_K_M`.
    pub wanted: Option<String>,
}

/// Why a name is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PullSpecError {
    #[error(
        "'{name}' is not in the built-in list, which 'hob model list --available' shows. Other models: \
         hf:owner/repo[:file or quantisation], found with 'hob model search', or the path of a .gguf file."
    )]
    Unknown { name: String },
    #[error("'{text}' has no repository. Write hf:owner/repo, or hf:owner/repo:Q4_K_M for one quantisation.")]
    Repository { text: String },
    #[error(
        "'{text}' is not a .gguf file of the branch main. Write hf:owner/repo:file.gguf, or the address \
         https://huggingface.co/owner/repo/blob/main/file.gguf."
    )]
    FileAddress { text: String },
}

impl FromStr for PullSpec {
    type Err = PullSpecError;

    fn from_str(text: &str) -> Result<Self, PullSpecError> {
        let text = text.trim();
        let no_repository = || PullSpecError::Repository { text: text.to_owned() };
        if let Some(rest) = text.strip_prefix("hf:") {
            return parse_hub(rest).map(PullSpec::Hub).ok_or_else(no_repository);
        }
        if let Some(rest) = after_hub(text) {
            let Some((repo, revision, file)) = file_address(rest) else {
                return parse_hub(rest).map(PullSpec::Hub).ok_or_else(no_repository);
            };
            if revision != "main" || !is_gguf(Path::new(file)) {
                return Err(PullSpecError::FileAddress { text: text.to_owned() });
            }
            return parse_hub(&format!("{repo}:{file}")).map(PullSpec::Hub).ok_or_else(no_repository);
        }
        if let Some(entry) = catalogue::find(text) {
            return Ok(PullSpec::Catalogue(entry));
        }
        let path = PathBuf::from(text);
        if is_gguf(&path) || text.contains(std::path::is_separator) {
            return Ok(PullSpec::File(path));
        }
        Err(PullSpecError::Unknown { name: text.to_owned() })
    }
}

fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// What follows the hub's address as a browser shows it. Such an address may end with a slash or name the main branch.
fn after_hub(text: &str) -> Option<&str> {
    let address = text.strip_prefix("https://").unwrap_or(text);
    let rest = ["hf.co/", "huggingface.co/"].iter().find_map(|host| address.strip_prefix(host))?;
    let rest = rest.trim_end_matches('/');
    Some(rest.strip_suffix("/tree/main").unwrap_or(rest))
}

/// The repository, the revision and the file of an address of one file: `owner/repo/blob/main/file.gguf`. Its link for the download has
/// `resolve` instead of `blob`, and may end with `?download=true`.
fn file_address(rest: &str) -> Option<(&str, &str, &str)> {
    let (repo, place) = ["/blob/", "/resolve/"].iter().find_map(|word| rest.split_once(word))?;
    let (revision, file) = place.split_once('/')?;
    Some((repo, revision, file.split_once('?').map_or(file, |(file, _)| file)))
}

fn parse_hub(text: &str) -> Option<HubSpec> {
    let (repo, wanted) = match text.split_once(':') {
        Some((repo, wanted)) => (repo, Some(wanted)),
        None => (text, None),
    };
    let (owner, name) = repo.split_once('/')?;
    // They become part of an address, so special characters are not allowed.
    let proper = |word: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !word.is_empty() && word.len() <= 96 && word.bytes().all(allowed) && !word.starts_with('.')
    };
    (proper(owner) && proper(name) && wanted != Some(""))
        .then(|| HubSpec { repo: repo.to_owned(), wanted: wanted.map(str::to_owned) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(repo: &str, wanted: Option<&str>) -> PullSpec {
        PullSpec::Hub(HubSpec { repo: repo.into(), wanted: wanted.map(str::to_owned) })
    }

    #[test]
    fn names_hubs_and_paths_are_distinguished() {
        let read = |text: &str| PullSpec::from_str(text).unwrap();
        assert_eq!(read("SmolLM2-135M-instruct"), PullSpec::Catalogue(catalogue::STARTER));
        assert!(matches!(read("qwen3:8b"), PullSpec::Catalogue(entry) if entry.name == "qwen3-8b"));
        assert_eq!(read("hf:Qwen/Qwen2.5-GGUF"), hub("Qwen/Qwen2.5-GGUF", None));
        assert_eq!(read(" hf:a/b:Q8_0 "), hub("a/b", Some("Q8_0")));
        assert_eq!(read("hf:a/b:dir/x.gguf"), hub("a/b", Some("dir/x.gguf")));
        assert_eq!(read("hf.co/a/b:Q8_0"), hub("a/b", Some("Q8_0")));
        for address in
            ["huggingface.co/a/b", "https://huggingface.co/a/b", "https://huggingface.co/a/b/tree/main/"]
        {
            assert_eq!(read(address), hub("a/b", None), "{address}");
        }
        for address in [
            "https://huggingface.co/a/b/blob/main/dir/x-Q8_0.gguf",
            "https://huggingface.co/a/b/resolve/main/dir/x-Q8_0.gguf?download=true",
            "hf.co/a/b/blob/main/dir/x-Q8_0.gguf",
        ] {
            assert_eq!(read(address), hub("a/b", Some("dir/x-Q8_0.gguf")), "{address}");
        }
        assert_eq!(read("x.gguf"), PullSpec::File("x.gguf".into()));
        assert_eq!(read("./x"), PullSpec::File("./x".into()));
    }

    #[test]
    fn an_unknown_name_says_where_names_are() {
        let error = PullSpec::from_str("gpt-9").unwrap_err().to_string();
        assert!(error.contains("'gpt-9'") && error.contains("hob model list --available"), "{error}");
    }

    #[test]
    fn the_address_of_another_file_says_which_form_works() {
        for address in ["huggingface.co/a/b/blob/v2/x.gguf", "https://huggingface.co/a/b/blob/main/README.md"]
        {
            let error = PullSpec::from_str(address).unwrap_err().to_string();
            assert!(error.contains(address) && error.contains("hf:owner/repo:file.gguf"), "{error}");
        }
    }

    #[test]
    fn a_repository_cannot_lead_elsewhere() {
        for bad in [
            "hf:",
            "hf:a",
            "hf:a/",
            "hf:/b",
            "hf:a/b/c",
            "hf:../b",
            "hf:a/..",
            "hf:a/b?x",
            "hf:a/b:",
            "hf:a%2f/b",
            "hf:é/b",
            "hf.co/a",
            "https://huggingface.co/a/b/discussions",
            "https://huggingface.co/a/b/blob/main",
            "https://huggingface.co/a/blob/main/x.gguf",
            "https://huggingface.co/../b/blob/main/x.gguf",
            "hf:a/b/blob/main/x.gguf",
        ] {
            assert!(matches!(PullSpec::from_str(bad), Err(PullSpecError::Repository { .. })), "{bad}");
        }
    }
}
