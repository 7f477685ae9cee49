//! A warning in the log begins with its subject, and says what the operator can do or what Hob does about it.

use hob_testkit::repository::{product_files, root};

const MACROS: [&str; 2] = ["warn!(", "error!("];

/// Words that begin a sentence without a subject.
const WITHOUT_SUBJECT: [&str; 6] = ["cannot ", "could ", "failed ", "ignored ", "not ", "skipped "];

/// What stands between a problem and what follows from it.
const SECOND_PARTS: [&str; 4] = [". ", "; ", ", so ", "'hob "];

#[test]
fn every_warning_has_a_subject_and_a_remedy() {
    let mut bad = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        for file in product_files(&entry.unwrap().path().join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for message in messages(text.split("\nmod tests {").next().unwrap_or_default()) {
                count += 1;
                if !is_helpful(&message) {
                    bad.push(format!("{}: {message}", file.display()));
                }
            }
        }
    }
    assert!(count > 100, "only {count} warnings were found");
    assert!(
        bad.is_empty(),
        "begin each of these with its subject, and end it with what the operator can do or what Hob does: {bad:#?}"
    );
}

/// A message that comes from elsewhere, such as `{line}`, is not checked.
fn is_helpful(message: &str) -> bool {
    let is_only_a_value =
        message.starts_with('{') && message.find('}').is_some_and(|end| end + 1 == message.len());
    let has_subject = !WITHOUT_SUBJECT.iter().any(|word| message.starts_with(word));
    is_only_a_value || (has_subject && SECOND_PARTS.iter().any(|part| message.contains(part)))
}

/// The messages of warnings and errors.
fn messages(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in MACROS {
        for (at, _) in text.match_indices(name) {
            let is_whole = !text[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
            if is_whole {
                found.extend(last_text(&text[at + name.len()..]));
            }
        }
    }
    found
}

/// The last text in quotes before the closing parenthesis that is no argument of a call. Lines that are continued with a backslash
/// become one.
fn last_text(arguments: &str) -> Option<String> {
    let mut letters = arguments.chars().peekable();
    let (mut depth, mut last) = (1, None);
    while let Some(letter) = letters.next() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            '"' => {
                let mut text = String::new();
                while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
                    match letter {
                        '\\' if letters.next_if_eq(&'\n').is_some() => {
                            while letters.next_if(|letter| *letter == ' ').is_some() {}
                        }
                        '\\' => text.extend(letters.next()),
                        letter => text.push(letter),
                    }
                }
                if depth == 1 {
                    last = Some(text);
                }
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    last
}

#[test]
fn messages_are_found_and_judged() {
    let text = "tracing::warn!(%error, \"a file is skipped. \\\n             Delete it\");\nerror!(f(\"x\"), \"cannot run\", g(\"y\"));\n\
                compile_error!(\"no\");";
    let found = messages(text);
    assert_eq!(found, ["a file is skipped. Delete it", "cannot run"]);
    let helpful: Vec<bool> =
        ["{line}", "{error}; Hob tries again", "the stream broke off", "cannot run; Hob waits"]
            .iter()
            .map(|message| is_helpful(message))
            .chain(found.iter().map(|message| is_helpful(message)))
            .collect();
    assert_eq!(helpful, [true, true, false, false, true, false]);
}
