//! Installs the bridge. Its scripts are part of this binary; npm downloads the packages of the lock file.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hob_process::{Need, command};
use thiserror::Error;

const SCRIPT: &str = "bridge.mjs";

const LOCK_FILE: &str = include_str!("../../../../bridges/whatsapp/package-lock.json");

/// In the order in which they are written: what a script imports is there before it.
const FILES: [(&str, &str); 7] = [
    ("message_age.mjs", include_str!("../../../../bridges/whatsapp/message_age.mjs")),
    ("forwarded.mjs", include_str!("../../../../bridges/whatsapp/forwarded.mjs")),
    ("ending.mjs", include_str!("../../../../bridges/whatsapp/ending.mjs")),
    (SCRIPT, include_str!("../../../../bridges/whatsapp/bridge.mjs")),
    ("package.json", include_str!("../../../../bridges/whatsapp/package.json")),
    ("package-lock.json", LOCK_FILE),
    (".npmrc", include_str!("../../../../bridges/whatsapp/.npmrc")),
];

/// Contains the lock file of the packages that are installed.
const COMPLETE: &str = ".complete";

/// Why the bridge is not installed.
#[derive(Debug, Error)]
pub enum InstallError {
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "WhatsApp needs Node.js 20 or newer with npm, but '{}' was not found. Install it from nodejs.org or with your package manager",
        npm.display()
    )]
    NoNpm { npm: PathBuf },
    #[error("cannot start npm: {0}")]
    Npm(#[source] io::Error),
    #[error(
        "npm could not download the packages of the bridge. Check the network and try again. Its output:\n{said}"
    )]
    Fetch { said: String },
}

#[derive(Debug, Clone)]
pub struct WhatsappInstaller {
    pub directory: PathBuf,
    /// A path, or a name in `PATH`.
    pub npm: PathBuf,
}

impl WhatsappInstaller {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        WhatsappInstaller { directory: directory.into(), npm: PathBuf::from("npm") }
    }

    pub fn script(&self) -> PathBuf {
        self.directory.join(SCRIPT)
    }

    /// Whether this version is completely installed.
    pub fn is_complete(&self) -> bool {
        let is = |name: &str, text: &str| {
            std::fs::read_to_string(self.directory.join(name)).is_ok_and(|found| found == text)
        };
        FILES.iter().all(|(name, text)| is(name, text)) && is(COMPLETE, LOCK_FILE)
    }

    /// Replaces the bridge of another version of Hob. Installs nothing where there is none.
    pub async fn refresh(&self) -> Result<(), InstallError> {
        if self.script().is_file() { self.install().await } else { Ok(()) }
    }

    /// Installs what is missing. Continues after an interruption.
    pub async fn install(&self) -> Result<(), InstallError> {
        if self.is_complete() {
            return Ok(());
        }
        let has_packages =
            std::fs::read_to_string(self.directory.join(COMPLETE)).is_ok_and(|found| found == LOCK_FILE);
        std::fs::create_dir_all(&self.directory)
            .map_err(|source| InstallError::Write { path: self.directory.clone(), source })?;
        for (name, text) in FILES {
            write(&self.directory.join(name), text)?;
        }
        if !has_packages {
            self.download_packages().await?;
            write(&self.directory.join(COMPLETE), LOCK_FILE)?;
        }
        Ok(())
    }

    async fn download_packages(&self) -> Result<(), InstallError> {
        let mut command = command(&self.npm, &[Need::Basics, Need::Network, Need::Node]);
        command
            // No package needs to run its own script.
            .args(["ci", "--omit=optional", "--omit=peer", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel", "error"])
            .current_dir(&self.directory)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let ran = command.output().await.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => InstallError::NoNpm { npm: self.npm.clone() },
            _ => InstallError::Npm(error),
        })?;
        if ran.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&ran.stderr);
        let last: Vec<&str> = said.lines().rev().take(10).collect();
        Err(InstallError::Fetch { said: last.into_iter().rev().collect::<Vec<_>>().join("\n") })
    }
}

fn write(path: &Path, text: &str) -> Result<(), InstallError> {
    std::fs::write(path, text).map_err(|source| InstallError::Write { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_has_the_pinned_version_and_no_registry() {
        assert!(!LOCK_FILE.contains("\"resolved\""));
        assert!(LOCK_FILE.contains("\"@whiskeysockets/baileys\": \"7.0.0-rc14\""));
    }

    #[tokio::test]
    async fn a_bridge_of_another_version_is_replaced_and_none_is_installed_unasked() {
        let root = tempfile::tempdir().unwrap();
        let installer = WhatsappInstaller {
            npm: root.path().join("no-npm"),
            ..WhatsappInstaller::new(root.path().join("bridge"))
        };
        installer.refresh().await.unwrap();
        assert!(!installer.directory.exists());
        // Its packages are those of this version, so nothing is downloaded.
        std::fs::create_dir(&installer.directory).unwrap();
        std::fs::write(installer.directory.join(COMPLETE), LOCK_FILE).unwrap();
        std::fs::write(installer.script(), "// of an older Hob").unwrap();
        installer.refresh().await.unwrap();
        assert!(installer.is_complete());
    }

    #[tokio::test]
    async fn without_npm_it_says_what_to_install() {
        let root = tempfile::tempdir().unwrap();
        let installer = WhatsappInstaller {
            npm: root.path().join("no-npm"),
            ..WhatsappInstaller::new(root.path().join("bridge"))
        };
        let error = installer.install().await.unwrap_err().to_string();
        assert!(error.contains("Install it from nodejs.org"), "{error}");
        assert!(!installer.is_complete(), "half an installation is none");
    }
}
