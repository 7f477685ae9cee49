//! The commands that update an installation. Pure: they are shown to the user, who runs them.

use std::path::Path;

use crate::address::ReleaseAddress;
use crate::installation::{InstallMethod, Installation};
use crate::release::LatestRelease;

/// Stands for the address of a release that is not known.
pub const UNKNOWN_ADDRESS: &str = "ADDRESS";

/// What the names of a release's files say about this machine.
struct Platform {
    /// `x86_64` or `aarch64`.
    machine: &'static str,
    debian: &'static str,
    npm: &'static str,
}

impl Platform {
    /// Of a processor as Rust names it.
    fn of(architecture: &str) -> Self {
        match architecture {
            "aarch64" => Platform { machine: "aarch64", debian: "arm64", npm: "arm64" },
            _ => Platform { machine: "x86_64", debian: "amd64", npm: "x64" },
        }
    }
}

/// Commands for a shell, in their order. Without a known release, names of files contain the word VERSION.
pub fn update_steps(
    installation: &Installation,
    architecture: &str,
    release: Option<(&ReleaseAddress, &LatestRelease)>,
) -> Vec<String> {
    let platform = Platform::of(architecture);
    let file = |ending: &str, name: &str| ReleaseFile::find(release, ending, name);
    match installation.method {
        InstallMethod::Debian => {
            let ending = format!("_{}.deb", platform.debian);
            let package = file(&ending, &format!("hob_VERSION{ending}"));
            package.then(|path| format!("sudo apt install {path}"))
        }
        InstallMethod::Uv => vec![format!("uv tool install --force {}", wheel(release, &platform))],
        InstallMethod::Pipx => vec![format!("pipx install --force {}", wheel(release, &platform))],
        InstallMethod::Pip => vec![format!("pip install --upgrade {}", wheel(release, &platform))],
        InstallMethod::Npm => {
            let ending = format!("-linux-{}.tgz", platform.npm);
            vec![format!("npm install -g {}", file(&ending, &format!("hob-VERSION{ending}")).place())]
        }
        InstallMethod::Homebrew => {
            let formula = file("hob.rb", "hob.rb");
            let copied = r#""$(brew --repository local/hob)/Formula/hob.rb""#;
            let copy = match &formula {
                ReleaseFile::Web(url) => format!("curl -fsSL -o {copied} {url}"),
                ReleaseFile::Here(path) => format!("cp {path} {copied}"),
            };
            vec![copy, "brew upgrade local/hob/hob".to_owned()]
        }
        InstallMethod::Script | InstallMethod::Archive => script_steps(Some(&installation.prefix), release),
        InstallMethod::Container => {
            let ending = format!("-{}-image.tar", platform.machine);
            let image = file(&ending, &format!("hob-VERSION{ending}"));
            image.then(|path| format!("podman load -i {path}"))
        }
        InstallMethod::Cargo => {
            vec!["git pull".to_owned(), "cargo install --locked --path crates/cli".to_owned()]
        }
        InstallMethod::Checkout => vec!["git pull".to_owned(), "./dev serve".to_owned()],
        // Its directory may belong to another program, so the script uses its own.
        InstallMethod::Unknown => script_steps(None, release),
    }
}

/// The script installs over any installation with the same prefix; `None` is its usual prefix.
fn script_steps(prefix: Option<&Path>, release: Option<(&ReleaseAddress, &LatestRelease)>) -> Vec<String> {
    let prefix = prefix.map(|prefix| format!(" --prefix {}", shell_word(&prefix.display().to_string())));
    let arguments = prefix.as_deref().unwrap_or_default();
    vec![match release {
        Some((address @ ReleaseAddress::Web(_), _)) => {
            // The shell reads the script from the pipe, so arguments need `-s`.
            let shell = if arguments.is_empty() { "sh" } else { "sh -s --" };
            format!(
                "curl -fsSL {} | HOB_INSTALL_URL={} {shell}{arguments}",
                shell_word(&address.of_file("install.sh")),
                shell_word(&address.to_string()),
            )
        }
        Some((address @ ReleaseAddress::Directory(_), _)) => format!(
            "HOB_INSTALL_URL={} sh {}{arguments}",
            shell_word(&address.to_string()),
            shell_word(&address.of_file("install.sh")),
        ),
        None => format!("HOB_INSTALL_URL={UNKNOWN_ADDRESS} sh install.sh{arguments}"),
    }]
}

fn wheel(release: Option<(&ReleaseAddress, &LatestRelease)>, platform: &Platform) -> String {
    let ending = format!("_{}.whl", platform.machine);
    ReleaseFile::find(release, &ending, &format!("hob-VERSION-py3-none-manylinux{ending}")).place()
}

/// A file of the release, as a word of a shell.
enum ReleaseFile {
    Web(String),
    Here(String),
}

impl ReleaseFile {
    /// The file whose name ends so, else one in the current directory with this name.
    fn find(release: Option<(&ReleaseAddress, &LatestRelease)>, ending: &str, name: &str) -> Self {
        let found = release.and_then(|(address, latest)| Some((address, latest.file(ending)?)));
        match found {
            Some((address @ ReleaseAddress::Web(_), name)) => {
                ReleaseFile::Web(shell_word(&address.of_file(name)))
            }
            Some((address @ ReleaseAddress::Directory(_), name)) => {
                ReleaseFile::Here(shell_word(&address.of_file(name)))
            }
            None => ReleaseFile::Here(format!("./{name}")),
        }
    }

    fn place(self) -> String {
        let (ReleaseFile::Web(place) | ReleaseFile::Here(place)) = self;
        place
    }

    /// A download, if it is needed, and the command with the path of the file.
    fn then(self, command: impl Fn(&str) -> String) -> Vec<String> {
        match self {
            ReleaseFile::Web(url) => {
                let name = url.trim_matches('\'').rsplit('/').next().unwrap_or_default();
                vec![format!("curl -fLO {url}"), command(&format!("./{name}"))]
            }
            ReleaseFile::Here(path) => vec![command(&path)],
        }
    }
}

/// A text as one word of a shell, without a meaning of its own.
fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-:@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latest() -> LatestRelease {
        let files = [
            "hob_0.2.0_amd64.deb",
            "hob-0.2.0-py3-none-manylinux_2_36_x86_64.whl",
            "hob-0.2.0-linux-x64.tgz",
            "hob-0.2.0-x86_64-image.tar",
            "hob.rb",
        ];
        LatestRelease {
            version: "0.2.0".parse().expect("a version"),
            date: String::new(),
            notes: String::new(),
            files: files.map(str::to_owned).into(),
        }
    }

    fn installed(method: InstallMethod) -> Installation {
        Installation {
            method,
            program: "/home/ann/my tools/bin/hob".into(),
            prefix: "/home/ann/my tools".into(),
            release_url: None,
        }
    }

    /// All commands for a release on the web.
    fn steps(method: InstallMethod) -> String {
        let address = ReleaseAddress::parse("https://example.org/hob").expect("an address");
        update_steps(&installed(method), "x86_64", Some((&address, &latest()))).join("\n")
    }

    #[test]
    fn each_installation_is_updated_in_its_own_way() {
        for (method, expected) in [
            (
                InstallMethod::Debian,
                "curl -fLO https://example.org/hob/hob_0.2.0_amd64.deb\nsudo apt install ./hob_0.2.0_amd64.deb",
            ),
            (
                InstallMethod::Uv,
                "uv tool install --force https://example.org/hob/hob-0.2.0-py3-none-manylinux_2_36_x86_64.whl",
            ),
            (
                InstallMethod::Pip,
                "pip install --upgrade https://example.org/hob/hob-0.2.0-py3-none-manylinux_2_36_x86_64.whl",
            ),
            (InstallMethod::Npm, "npm install -g https://example.org/hob/hob-0.2.0-linux-x64.tgz"),
            (
                InstallMethod::Homebrew,
                "curl -fsSL -o \"$(brew --repository local/hob)/Formula/hob.rb\" https://example.org/hob/hob.rb\n\
                 brew upgrade local/hob/hob",
            ),
            (
                InstallMethod::Script,
                "curl -fsSL https://example.org/hob/install.sh | HOB_INSTALL_URL=https://example.org/hob sh -s -- \
                 --prefix '/home/ann/my tools'",
            ),
            (
                InstallMethod::Container,
                "curl -fLO https://example.org/hob/hob-0.2.0-x86_64-image.tar\npodman load -i ./hob-0.2.0-x86_64-image.tar",
            ),
            (InstallMethod::Cargo, "git pull\ncargo install --locked --path crates/cli"),
            (
                InstallMethod::Unknown,
                "curl -fsSL https://example.org/hob/install.sh | HOB_INSTALL_URL=https://example.org/hob sh",
            ),
        ] {
            assert_eq!(steps(method), expected, "{method:?}");
        }
    }

    #[test]
    fn a_release_in_a_directory_needs_no_download() {
        let address = ReleaseAddress::parse("file:///srv/it's here").expect("an address");
        let release = latest();
        let steps =
            |method| update_steps(&installed(method), "x86_64", Some((&address, &release))).join("\n");
        assert_eq!(steps(InstallMethod::Debian), r"sudo apt install '/srv/it'\''s here/hob_0.2.0_amd64.deb'");
        assert_eq!(
            steps(InstallMethod::Script),
            r"HOB_INSTALL_URL='/srv/it'\''s here' sh '/srv/it'\''s here/install.sh' --prefix '/home/ann/my tools'"
        );
    }

    #[test]
    fn without_a_release_the_kind_of_file_is_named() {
        for (architecture, method, expected) in [
            ("x86_64", InstallMethod::Debian, "sudo apt install ./hob_VERSION_amd64.deb"),
            ("aarch64", InstallMethod::Debian, "sudo apt install ./hob_VERSION_arm64.deb"),
            ("aarch64", InstallMethod::Npm, "npm install -g ./hob-VERSION-linux-arm64.tgz"),
            (
                "x86_64",
                InstallMethod::Pipx,
                "pipx install --force ./hob-VERSION-py3-none-manylinux_x86_64.whl",
            ),
        ] {
            assert_eq!(update_steps(&installed(method), architecture, None), [expected]);
        }
        assert_eq!(
            update_steps(&installed(InstallMethod::Unknown), "x86_64", None),
            ["HOB_INSTALL_URL=ADDRESS sh install.sh"]
        );
        // A release that has no file for this machine.
        let address = ReleaseAddress::parse("https://example.org/hob").expect("an address");
        let steps = update_steps(&installed(InstallMethod::Debian), "aarch64", Some((&address, &latest())));
        assert_eq!(steps, ["sudo apt install ./hob_VERSION_arm64.deb"]);
    }
}
