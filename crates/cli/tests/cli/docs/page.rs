//! Finds what a page of the documentation asks its reader to do: run commands and change the configuration.
//!
//! - A code block marked `sh` is a script.
//! - A block marked `console` shows commands after `$ `, each with its output; `> ` continues a command.
//! - A comment on the line before a block changes this: `<!-- not run: WHY -->`, the path of a tested program (`<!-- tests/… -->`),
//!   `<!-- fails -->` if the last command must fail, and `<!-- config.toml -->` for settings.

/// A code block and what to do with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Part {
    /// The first line of the block on the page.
    pub line: usize,
    pub action: Action,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Action {
    /// A script that must succeed; its output is not compared.
    Script(String),
    Console {
        steps: Vec<Step>,
        outcome: Outcome,
    },
    /// Settings for `config.toml`.
    Configure(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Failure,
}

/// A command and the output on the page. Without output on the page, nothing is compared.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub command: String,
    pub shown: Vec<String>,
}

/// Everything that a reader of the page does, in order.
pub fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut remark = "";
    let mut lines = text.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        if ticks < 3 {
            assert!(!line.trim_start().starts_with("```"), "line {}: a fence begins its line", index + 1);
            if !line.trim().is_empty() {
                remark = line.trim();
            }
            continue;
        }
        let fence = &line[..ticks];
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| !line.starts_with(fence)).collect();
        if let Some(action) = action(line[ticks..].trim(), &body, comment(remark)) {
            parts.push(Part { line: index + 1, action });
        }
        remark = "";
    }
    parts
}

fn comment(line: &str) -> &str {
    let inner = line.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->"));
    inner.unwrap_or_default().trim()
}

fn action(language: &str, body: &[&str], remark: &str) -> Option<Action> {
    if let Some(reason) = remark.strip_prefix("not run") {
        let reason = reason.trim_start_matches(':').trim();
        assert!(!reason.is_empty(), "what is not run needs a reason: {body:?}");
        return None;
    }
    // The page shows a program of the tests, which run it.
    if remark.starts_with("tests/") {
        return None;
    }
    match language {
        "sh" | "bash" | "shell" => Some(Action::Script(body.join("\n"))),
        "console" => {
            let outcome = if remark == "fails" { Outcome::Failure } else { Outcome::Success };
            Some(Action::Console { steps: steps(body), outcome })
        }
        "toml" if remark == "config.toml" => Some(Action::Configure(body.join("\n"))),
        _ => None,
    }
}

fn steps(body: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in body {
        // Editors remove the space at the end of a line.
        let more = if *line == ">" { Some("") } else { line.strip_prefix("> ") };
        match (line.strip_prefix("$ "), more, steps.last_mut()) {
            (Some(command), _, _) => steps.push(Step { command: command.to_owned(), shown: Vec::new() }),
            (_, Some(more), Some(step)) if step.shown.is_empty() => {
                step.command.push('\n');
                step.command.push_str(more);
            }
            (_, _, Some(step)) => step.shown.push((*line).to_owned()),
            (_, _, None) => panic!("a console begins with a command, not with '{line}'"),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_settings_are_distinguished() {
        let page = "\
# A page

```console
$ cat > a.txt <<END
> one
>
> END
$ hob a
first
> second
```

<!-- fails -->
```console
$ hob b
```
<!-- config.toml -->

```toml
[server]
```

```toml
just = \"shown\"
```

````sh
```
````
<!-- not run: it needs a moon -->
```sh
moonwalk
```
";
        let step = |command: &str, shown: &[&str]| Step {
            command: command.to_owned(),
            shown: shown.iter().map(|line| (*line).to_owned()).collect(),
        };
        let expected = [
            Part {
                line: 3,
                action: Action::Console {
                    steps: vec![
                        step("cat > a.txt <<END\none\n\nEND", &[]),
                        step("hob a", &["first", "> second"]),
                    ],
                    outcome: Outcome::Success,
                },
            },
            Part {
                line: 14,
                action: Action::Console { steps: vec![step("hob b", &[])], outcome: Outcome::Failure },
            },
            Part { line: 19, action: Action::Configure("[server]".to_owned()) },
            Part { line: 27, action: Action::Script("```".to_owned()) },
        ];
        assert_eq!(parts(page), expected);
    }
}
