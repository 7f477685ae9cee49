//! Which files contain keys, passwords and private histories, by their names. Tools never read them, and the memory never
//! indexes them, in any directory.

use std::path::{Component, Path};

/// Directories by their last names, all of whose contents are secret.
const DIRECTORIES: [&[&str]; 35] = [
    // Hob's own home, where it has its usual name.
    &[".hob"],
    // Keys.
    &[".ssh"],
    &[".gnupg"],
    &[".password-store"],
    &[".local", "share", "keyrings"],
    &[".local", "share", "kwalletd"],
    &["library", "keychains"],
    &[".config", "op"],
    &[".config", "1password"],
    &[".config", "bitwarden"],
    &[".config", "keepassxc"],
    // Credentials of clouds and tools.
    &[".aws"],
    &[".azure"],
    &[".kube"],
    &[".docker"],
    &[".config", "containers"],
    &[".config", "gcloud"],
    &[".config", "gh"],
    &[".config", "glab-cli"],
    &[".config", "rclone"],
    &[".config", "hub"],
    &[".terraform.d"],
    &[".subversion", "auth"],
    // Browsers and mail programs: cookies and saved passwords.
    &[".mozilla"],
    &[".thunderbird"],
    &[".librewolf"],
    &[".config", "chromium"],
    &[".config", "google-chrome"],
    &[".config", "bravesoftware"],
    &[".config", "microsoft-edge"],
    &[".config", "vivaldi"],
    &["application support", "firefox"],
    &["application support", "google", "chrome"],
    &["application support", "bravesoftware"],
    &["snap", "chromium", "common"],
];

/// Files by their whole names.
const NAMES: [&str; 40] = [
    ".netrc",
    "_netrc",
    ".authinfo",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".htpasswd",
    ".s3cfg",
    ".boto",
    ".vault-token",
    ".dockercfg",
    ".dockerconfigjson",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "credentials.db",
    "service-account.json",
    "shadow",
    "gshadow",
    "key3.db",
    "key4.db",
    "logins.json",
    "cookies.sqlite",
    "login data",
    "cookies",
    "wallet.dat",
    // Histories of commands, which may contain passwords.
    ".bash_history",
    ".zsh_history",
    ".history",
    "fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".viminfo",
];

/// Files by how their names begin. `/etc/passwd` has no passwords, but `passwd.txt` may.
const BEGINNINGS: [&str; 3] = [".env", "id_", "passwd."];

/// Files by their names before the first dot, such as `passwords.txt`.
const STEMS: [&str; 4] = ["password", "passwords", "secret", "secrets"];

/// Files by how their names end.
const ENDINGS: [&str; 13] = [
    ".env",
    ".pem",
    ".key",
    ".kdbx",
    ".kdb",
    ".p12",
    ".pfx",
    ".jks",
    ".keystore",
    ".ppk",
    ".gpg",
    ".keychain",
    ".keychain-db",
];

/// Whether a file is named like a secret, or is in a directory of secrets. Uses only the names.
pub fn is_secret(path: &Path) -> bool {
    // Some file systems ignore case: `.ENV` is `.env`.
    let names: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_string_lossy().to_lowercase()),
            _ => None,
        })
        .collect();
    let Some(name) = names.last() else { return false };
    let is_process = path.is_absolute() && names.first().is_some_and(|first| first == "proc");
    is_process
        || DIRECTORIES.iter().any(|directory| names.windows(directory.len()).any(|part| part == *directory))
        || NAMES.contains(&name.as_str())
        || BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || name.split('.').next().is_some_and(|stem| STEMS.contains(&stem))
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for secret in [
            ".env",
            ".env.local",
            "a/b/.ENV",
            "server.pem",
            "id_rsa",
            "id_ed25519.pub",
            "tls.KEY",
            "/home/ann/.hob/config.toml",
            "/home/ann/.aws/credentials",
            ".aws/config",
            ".netrc",
            "prod.env",
            "Passwords.txt",
            "passwd.txt",
            "secrets",
            ".git-credentials",
            "Passwords.kdbx",
            ".ssh/known_hosts",
            ".ssh",
            ".gnupg/private-keys-v1.d/a",
            ".docker/config.json",
            ".kube/config",
            ".npmrc",
            ".pypirc",
            ".cargo/credentials.toml",
            ".mozilla/firefox/x.default/cookies.sqlite",
            ".config/google-chrome/Default/Login Data",
            "Library/Application Support/Google/Chrome/Default/Cookies",
            ".local/share/keyrings/login.keyring",
            ".bash_history",
            ".local/share/fish/fish_history",
            "/etc/shadow",
            "/proc/self/environ",
        ] {
            assert!(is_secret(Path::new(secret)), "{secret}");
        }
        for open in [
            "environment.md",
            "keys.md",
            "pem.txt",
            "monkey",
            "valid_data.txt",
            "/",
            "..",
            "hob/notes.md",
            "src/chromium/readme.md",
            "notes/firefox/tips.md",
            "docker/config.json",
            "proc/notes.md",
            "history.md",
            ".config/nvim/init.lua",
            "cookies.md",
            "/etc/passwd",
        ] {
            assert!(!is_secret(Path::new(open)), "{open}");
        }
    }
}
