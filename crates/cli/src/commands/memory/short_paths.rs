//! Paths as people write them.

use std::path::{MAIN_SEPARATOR, Path, PathBuf};

/// Shortens paths relative to the current directory and the home directory.
#[derive(Default)]
pub struct ShortPaths {
    directory: Option<PathBuf>,
    home: Option<PathBuf>,
}

impl ShortPaths {
    pub fn from_process() -> Self {
        ShortPaths { directory: std::env::current_dir().ok(), home: std::env::home_dir() }
    }

    /// The path relative to the current directory or to the home directory, if it is below one of them.
    pub fn shortened(&self, place: String) -> String {
        let below = |directory: &Option<PathBuf>| {
            let rest = Path::new(&place).strip_prefix(directory.as_ref()?).ok()?;
            Some(rest.to_str()?.to_owned()).filter(|rest| !rest.is_empty())
        };
        if let Some(rest) = below(&self.directory) {
            return rest;
        }
        match below(&self.home) {
            Some(rest) => format!("~{MAIN_SEPARATOR}{rest}"),
            None => place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn paths_are_relative_to_the_current_or_home_directory() {
        let here = ShortPaths { directory: Some("/home/ann/work".into()), home: Some("/home/ann".into()) };
        let said = ["/home/ann/work/notes/a.md:3", "/home/ann/b.pdf page 2", "/srv/c.md:1", "note:12:1"]
            .map(|place| here.shortened(place.to_owned()));
        assert_eq!(said, ["notes/a.md:3", "~/b.pdf page 2", "/srv/c.md:1", "note:12:1"]);
        assert_eq!(ShortPaths::default().shortened("/srv/c.md:1".to_owned()), "/srv/c.md:1");
    }
}
