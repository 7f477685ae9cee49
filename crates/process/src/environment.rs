//! The environment of a program that Hob starts: only the variables that it needs. Hob's own environment contains API keys and
//! whatever else the owner's shell has, so this is a list of what is passed on, not of what is removed.

use std::ffi::{OsStr, OsString};

/// Variables that some kinds of programs need. None of them is passed on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Where shared libraries are. Without them a program may not even start.
    Libraries,
    /// What every program may expect: paths, home, temporary files, language, time zone. Includes the libraries.
    Basics,
    /// Proxies and certificate authorities.
    Network,
    /// Python and its package index.
    Python,
    /// Node.js and its package registry.
    Node,
    /// Graphics cards, threads and the settings of llama.cpp.
    Compute,
    /// Docker and Podman. Without proxies: Podman passes them on into the container.
    Containers,
}

/// Windows starts no program without the last three.
const LIBRARIES: &str =
    "LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH SYSTEMROOT SYSTEMDRIVE WINDIR";

/// Those from `TEMP` on are of Windows.
const BASICS: &str = "PATH HOME USER LOGNAME SHELL LANG LANGUAGE LC_* TZ TZDIR TMPDIR \
    TEMP TMP PATHEXT COMSPEC USERPROFILE APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES";

const NETWORK: &str = "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy \
    SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS";

const PYTHON: &str = "PIP_* PIP_KEYRING_PROVIDER UV_* UV_KEYRING_PROVIDER VIRTUAL_ENV PYENV_* ASDF_* \
    XDG_CONFIG_HOME XDG_CACHE_HOME";

const NODE: &str = "npm_config_* NPM_CONFIG_* NPM_TOKEN NODE_OPTIONS VOLTA_HOME ASDF_*";

const COMPUTE: &str = "CUDA_* NVIDIA_* HIP_* ROCR_* ROCM_* HSA_* VK_* GGML_* LLAMA_* OMP_* GOMP_* KMP_* MKL_* \
    OPENBLAS_* SYCL_* ONEAPI_* ZE_*";

const CONTAINERS: &str = "DOCKER_* CONTAINER_HOST CONTAINER_SSHKEY CONTAINERS_* PODMAN_* STORAGE_* \
    REGISTRY_AUTH_FILE BUILDAH_ISOLATION XDG_RUNTIME_DIR XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME \
    DBUS_SESSION_BUS_ADDRESS SSH_AUTH_SOCK";

/// Words in the names of secrets. A pattern matches no such name: `UV_*` does not pass `UV_PUBLISH_TOKEN` on.
const SECRET_WORDS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "_AUTH"];

impl Need {
    /// The names of its variables. A trailing `*` matches any rest of a name that is not a secret's.
    fn names(self) -> impl Iterator<Item = &'static str> {
        let lists: &[&'static str] = match self {
            Need::Libraries => &[LIBRARIES],
            Need::Basics => &[LIBRARIES, BASICS],
            Need::Network => &[NETWORK],
            Need::Python => &[PYTHON],
            Need::Node => &[NODE],
            Need::Compute => &[COMPUTE],
            Need::Containers => &[CONTAINERS],
        };
        lists.iter().flat_map(|list| list.split_whitespace())
    }

    fn covers(self, name: &str) -> bool {
        self.names().any(|known| match known.strip_suffix('*') {
            Some(beginning) => {
                name.get(..beginning.len()).is_some_and(|start| is_same(start, beginning)) && !is_secret(name)
            }
            None => is_same(name, known),
        })
    }
}

/// On Windows, `Path` and `PATH` are the same.
fn is_same(name: &str, known: &str) -> bool {
    if cfg!(windows) { name.eq_ignore_ascii_case(known) } else { name == known }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(*word))
}

/// A program whose environment contains only what these needs name. The caller adds more with `env`.
pub fn command(program: impl AsRef<OsStr>, needs: &[Need]) -> tokio::process::Command {
    tokio::process::Command::from(std_command(program, needs))
}

/// The same as [`command`], for threads that block.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that starts programs, with an empty environment"
)]
pub fn std_command(program: impl AsRef<OsStr>, needs: &[Need]) -> std::process::Command {
    let mut command = std::process::Command::new(program);
    command.env_clear().envs(passed_on(std::env::vars_os(), needs));
    command
}

fn passed_on(
    environment: impl Iterator<Item = (OsString, OsString)>,
    needs: &[Need],
) -> impl Iterator<Item = (OsString, OsString)> {
    environment
        .filter(move |(name, _)| name.to_str().is_some_and(|name| needs.iter().any(|need| need.covers(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Need; 7] = [
        Need::Libraries,
        Need::Basics,
        Need::Network,
        Need::Python,
        Need::Node,
        Need::Compute,
        Need::Containers,
    ];

    fn names(environment: &[&str], needs: &[Need]) -> Vec<String> {
        let environment = environment.iter().map(|name| (OsString::from(name), OsString::from("value")));
        passed_on(environment, needs).map(|(name, _)| name.into_string().expect("text")).collect()
    }

    #[test]
    fn no_need_passes_on_a_key_or_an_unknown_variable() {
        let secrets = [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "HOB_API_KEY",
            "HF_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "DATABASE_URL",
            "SOME_SECRET",
            "PATHOLOGY",
            "LC",
            "",
        ];
        assert_eq!(names(&secrets, &ALL), [] as [&str; 0]);
    }

    #[test]
    fn a_pattern_passes_on_no_secret_and_a_whole_name_does() {
        let secrets = [
            "LLAMA_API_KEY",
            "LLAMA_CLOUD_API_KEY",
            "VK_ACCESS_TOKEN",
            "UV_PUBLISH_TOKEN",
            "npm_config__auth",
            "UV_INDEX_PRIVATE_PASSWORD",
            "PIP_CREDENTIALS",
            "DOCKER_PASSWORD",
            "DOCKER_CONTENT_TRUST_ROOT_PASSPHRASE",
            "STORAGE_ACCOUNT_KEY",
            "STORAGE_CLIENT_SECRET",
            "npm_config_//registry.npmjs.org/:_authToken",
        ];
        assert_eq!(names(&secrets, &ALL), [] as [&str; 0]);
        let named = ["NPM_TOKEN", "CONTAINER_SSHKEY", "PIP_KEYRING_PROVIDER", "UV_KEYRING_PROVIDER"];
        assert_eq!(names(&named, &ALL), named);
    }

    #[test]
    fn a_program_gets_what_its_needs_name_and_nothing_else() {
        let ours =
            ["PATH", "HOME", "LC_ALL", "HTTPS_PROXY", "PIP_INDEX_URL", "CUDA_VISIBLE_DEVICES", "DOCKER_HOST"];
        assert_eq!(names(&ours, &[]), [] as [&str; 0]);
        assert_eq!(names(&ours, &[Need::Basics]), ["PATH", "HOME", "LC_ALL"]);
        let pip = [Need::Basics, Need::Network, Need::Python];
        assert_eq!(names(&ours, &pip), ["PATH", "HOME", "LC_ALL", "HTTPS_PROXY", "PIP_INDEX_URL"]);
        assert_eq!(names(&ours, &[Need::Compute]), ["CUDA_VISIBLE_DEVICES"]);
        assert_eq!(names(&ours, &[Need::Containers]), ["DOCKER_HOST"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_not_text_is_not_passed_on() {
        use std::os::unix::ffi::OsStringExt;

        let odd = OsString::from_vec(b"PIP_\xff".to_vec());
        assert_eq!(passed_on([(odd, OsString::new())].into_iter(), &ALL).count(), 0);
    }
}
