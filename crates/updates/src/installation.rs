//! How this program was installed: by a file that its package contains, or else by its place.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A longer marker is not ours.
const LONGEST_MARKER: u64 = 4096;

/// The way in which Hob was installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallMethod {
    Debian,
    /// The wheel, with `uv tool install`, or run by `uvx`.
    Uv,
    Pipx,
    Pip,
    Npm,
    Homebrew,
    /// With `install.sh`.
    Script,
    /// The archive, unpacked by hand.
    Archive,
    Container,
    /// With `cargo install`.
    Cargo,
    /// Built in a checkout, as by `./dev serve`.
    Checkout,
    Unknown,
}

impl InstallMethod {
    /// For programs.
    pub fn as_str(self) -> &'static str {
        match self {
            InstallMethod::Debian => "deb",
            InstallMethod::Uv => "uv",
            InstallMethod::Pipx => "pipx",
            InstallMethod::Pip => "pip",
            InstallMethod::Npm => "npm",
            InstallMethod::Homebrew => "homebrew",
            InstallMethod::Script => "install.sh",
            InstallMethod::Archive => "archive",
            InstallMethod::Container => "container",
            InstallMethod::Cargo => "cargo",
            InstallMethod::Checkout => "checkout",
            InstallMethod::Unknown => "unknown",
        }
    }

    /// Completes "Installed …".
    pub fn describe(self) -> &'static str {
        match self {
            InstallMethod::Debian => "with the Debian package",
            InstallMethod::Uv => "with uv",
            InstallMethod::Pipx => "with pipx",
            InstallMethod::Pip => "with pip",
            InstallMethod::Npm => "with npm",
            InstallMethod::Homebrew => "with Homebrew",
            InstallMethod::Script => "with install.sh",
            InstallMethod::Archive => "from the archive",
            InstallMethod::Container => "in a container image",
            InstallMethod::Cargo => "with cargo install",
            InstallMethod::Checkout => "built in a checkout",
            InstallMethod::Unknown => "in a way that is not known: no file beside the program says it",
        }
    }
}

/// One installation of Hob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub method: InstallMethod,
    /// The program itself.
    pub program: PathBuf,
    /// The directory above the program's own, such as `/usr`.
    pub prefix: PathBuf,
    /// Where it was installed from, if that is known.
    pub release_url: Option<String>,
}

impl Installation {
    /// Of the program at this path, whose links are resolved.
    pub fn detect(executable: &Path) -> Self {
        let directory = executable.parent().unwrap_or(Path::new("/"));
        let prefix = directory.parent().unwrap_or(Path::new("/")).to_owned();
        let marker = read_marker(&prefix.join("share/hob/installed-by")).unwrap_or_default();
        let method = match marker.method.as_deref() {
            Some("deb") => InstallMethod::Debian,
            Some("wheel") => python_installer(&prefix),
            Some("npm") => InstallMethod::Npm,
            Some("homebrew") => InstallMethod::Homebrew,
            Some("install.sh") => InstallMethod::Script,
            Some("archive") => InstallMethod::Archive,
            Some("container") => InstallMethod::Container,
            _ => by_place(directory, &prefix),
        };
        Installation { method, program: executable.to_owned(), prefix, release_url: marker.url }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Marker {
    method: Option<String>,
    url: Option<String>,
}

/// `None` if there is no such file, or none that can be read.
fn read_marker(path: &Path) -> Option<Marker> {
    let mut text = String::new();
    File::open(path).ok()?.take(LONGEST_MARKER).read_to_string(&mut text).ok()?;
    Some(parse_marker(&text))
}

/// Lines of `name=value`.
fn parse_marker(text: &str) -> Marker {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(known, _)| *known == name).map(|(_, value)| value.trim().to_owned());
        found.filter(|value| !value.is_empty())
    };
    Marker { method: value("method"), url: value("url") }
}

/// Which program unpacked the wheel. Each has its own directory for tools.
fn python_installer(prefix: &Path) -> InstallMethod {
    let has = |name: &str| prefix.components().any(|part| part.as_os_str() == name);
    if prefix.join("uv-receipt.toml").exists() || has("uv") {
        InstallMethod::Uv
    } else if has("pipx") {
        InstallMethod::Pipx
    } else {
        InstallMethod::Pip
    }
}

/// Without a marker: cargo leaves its own files beside what it builds and installs.
fn by_place(directory: &Path, prefix: &Path) -> InstallMethod {
    if directory.join("deps").is_dir() && directory.join(".fingerprint").is_dir() {
        InstallMethod::Checkout
    } else if prefix.join(".crates.toml").exists() {
        InstallMethod::Cargo
    } else {
        InstallMethod::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The method of a program below `prefix`, with this marker.
    fn method(prefix: &Path, marker: &str) -> InstallMethod {
        let share = prefix.join("share/hob");
        std::fs::create_dir_all(&share).expect("a directory");
        std::fs::write(share.join("installed-by"), marker).expect("a file");
        Installation::detect(&prefix.join("bin/hob")).method
    }

    #[test]
    fn the_marker_of_a_package_names_the_method() {
        let directory = tempfile::tempdir().expect("a directory");
        for (marker, expected) in [
            ("method=deb\n", InstallMethod::Debian),
            ("method=wheel\n", InstallMethod::Pip),
            ("method=npm\n", InstallMethod::Npm),
            ("method=homebrew\n", InstallMethod::Homebrew),
            ("method=archive\n", InstallMethod::Archive),
            ("method=container\n", InstallMethod::Container),
            ("method=snap\n", InstallMethod::Unknown),
            ("\u{fffd}", InstallMethod::Unknown),
            ("", InstallMethod::Unknown),
        ] {
            assert_eq!(method(directory.path(), marker), expected, "{marker}");
        }
    }

    #[test]
    fn the_script_notes_where_the_release_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let marker = "method=install.sh\nurl=https://example.org/hob\n";
        assert_eq!(method(directory.path(), marker), InstallMethod::Script);
        let found = Installation::detect(&directory.path().join("bin/hob"));
        let expected = Installation {
            method: InstallMethod::Script,
            program: directory.path().join("bin/hob"),
            prefix: directory.path().to_owned(),
            release_url: Some("https://example.org/hob".to_owned()),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_wheel_is_told_apart_by_who_unpacked_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let below = |path: &str| method(&directory.path().join(path), "method=wheel\n");
        assert_eq!(below("share/uv/tools/hob"), InstallMethod::Uv);
        assert_eq!(below("pipx/venvs/hob"), InstallMethod::Pipx);
        assert_eq!(below("venv"), InstallMethod::Pip);
        std::fs::write(directory.path().join("venv/uv-receipt.toml"), "").expect("a file");
        assert_eq!(below("venv"), InstallMethod::Uv);
    }

    #[test]
    fn cargo_is_recognised_by_its_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let hob = directory.path().join("target/debug/hob");
        assert_eq!(Installation::detect(&hob).method, InstallMethod::Unknown);
        for name in ["deps", ".fingerprint"] {
            std::fs::create_dir_all(directory.path().join("target/debug").join(name)).expect("a directory");
        }
        assert_eq!(Installation::detect(&hob).method, InstallMethod::Checkout);
        std::fs::write(directory.path().join(".crates.toml"), "").expect("a file");
        assert_eq!(Installation::detect(&directory.path().join("bin/hob")).method, InstallMethod::Cargo);
        assert_eq!(Installation::detect(Path::new("/hob")).prefix, Path::new("/"));
    }

    #[test]
    fn a_huge_marker_is_read_in_part() {
        let directory = tempfile::tempdir().expect("a directory");
        let marker = format!("method=deb\n{}", "x=y\n".repeat(100_000));
        assert_eq!(method(directory.path(), &marker), InstallMethod::Debian);
    }
}
