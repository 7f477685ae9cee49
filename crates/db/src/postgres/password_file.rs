//! The password file of libpq: lines of `host:port:database:user:password`. `*` stands for anything, and `\` escapes.

use std::path::Path;

/// The lines of a file. `None` if it cannot be used, which is logged: as libpq does, another way to log in is tried.
pub(super) fn read(path: &Path) -> Option<Vec<Vec<String>>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(
                file = %path.display(),
                %error,
                "the password file cannot be read; Hob logs in without it. Check its permissions"
            );
            return None;
        }
    };
    if is_open_to_others(path) {
        tracing::warn!(
            file = %path.display(),
            "the password file is ignored: other users can read it. Run 'chmod 600' on it"
        );
        return None;
    }
    Some(text.lines().filter(|line| !line.starts_with('#')).map(fields).collect())
}

/// The password of the first line that matches host, port, database and user.
pub(super) fn find(lines: &[Vec<String>], wanted: [&str; 4]) -> Option<String> {
    let matches = |line: &&Vec<String>| {
        line.len() == 5 && line.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted)
    };
    lines.iter().find(matches).map(|line| line[4].clone())
}

/// The last field may contain colons.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match character {
            ':' if fields.len() < 5 => fields.push(String::new()),
            '\\' => add(&mut fields, characters.next().unwrap_or('\\')),
            other => add(&mut fields, other),
        }
    }
    fields
}

fn add(fields: &mut [String], character: char) {
    if let Some(last) = fields.last_mut() {
        last.push(character);
    }
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_path: &Path) -> bool {
    false
}
