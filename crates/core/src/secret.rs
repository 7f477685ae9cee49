//! Which files hold keys and passwords, by their names.

use std::path::Path;

/// Whether a file is named like a secret: `.env*`, `*.pem`, `*.key`, `id_*`.
pub fn is_secret(path: &Path) -> bool {
    let Some(name) = path.file_name() else {
        return false;
    };
    // Some file systems do not tell `.ENV` from `.env`.
    let name = name.to_string_lossy().to_lowercase();
    name.starts_with(".env") || name.starts_with("id_") || name.ends_with(".pem") || name.ends_with(".key")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_their_names() {
        for secret in [".env", ".env.local", "a/b/.ENV", "server.pem", "id_rsa", "id_ed25519.pub", "tls.KEY"]
        {
            assert!(is_secret(Path::new(secret)), "{secret}");
        }
        for open in ["environment.md", "keys.md", "pem.txt", "monkey", "valid_data.txt", "/", ".."] {
            assert!(!is_secret(Path::new(open)), "{open}");
        }
    }
}
