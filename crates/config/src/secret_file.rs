//! Reads a secret from the file that a setting names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use secrecy::SecretString;

/// A secret is a line. More is some other file.
const MAX_BYTES: u64 = 4_096;

/// The first line of the file.
pub fn read_secret_file(path: &Path) -> io::Result<SecretString> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("the file has more than {MAX_BYTES} bytes")));
    }
    Ok(text.lines().next().unwrap_or_default().trim().into())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn the_first_line_is_the_secret_and_a_large_file_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), " s3cret \nmore\n").unwrap();
        assert_eq!(read_secret_file(file.path()).unwrap().expose_secret(), "s3cret");
        std::fs::write(file.path(), "x".repeat(5_000)).unwrap();
        let error = read_secret_file(file.path()).unwrap_err().to_string();
        assert_eq!(error, "the file has more than 4096 bytes");
    }
}
