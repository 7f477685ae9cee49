//! Finds the code to run: fenced blocks marked as Python or shell. Pure.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockLanguage {
    Python,
    Shell,
}

impl BlockLanguage {
    /// The name in the code interpreter.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            BlockLanguage::Python => "python",
            BlockLanguage::Shell => "sh",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "python" | "python3" | "py" => Some(BlockLanguage::Python),
            "sh" | "bash" | "shell" => Some(BlockLanguage::Shell),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CodeBlock {
    pub(crate) language: BlockLanguage,
    pub(crate) code: String,
    /// Whether it is closed; otherwise it extends to the end of the text.
    pub(crate) closed: bool,
}

struct Fence<'a> {
    mark: char,
    length: usize,
    indent: usize,
    info: &'a str,
}

/// The blocks to run, in order. Blocks in other languages are ignored.
pub(crate) fn code_blocks(text: &str) -> Vec<CodeBlock> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = fence(line) else { continue };
        let mut code = String::new();
        let mut closed = false;
        for line in lines.by_ref() {
            closed = closes(line, &fence);
            if closed {
                break;
            }
            code.push_str(dedent(line, fence.indent));
            code.push('\n');
        }
        let language = fence.info.split(|letter: char| !letter.is_ascii_alphanumeric()).next().unwrap_or("");
        if let Some(language) = BlockLanguage::parse(language)
            && !code.trim().is_empty()
        {
            blocks.push(CodeBlock { language, code, closed });
        }
    }
    blocks
}

fn fence(line: &str) -> Option<Fence<'_>> {
    let bare = line.trim_start();
    let mark = bare.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let info = bare.trim_start_matches(mark);
    let length = bare.len() - info.len();
    // Three backticks that are closed on the same line are inline code.
    let inline = mark == '`' && info.contains('`');
    (length >= 3 && !inline).then(|| Fence {
        mark,
        length,
        indent: line.len() - bare.len(),
        info: info.trim(),
    })
}

fn closes(line: &str, fence: &Fence<'_>) -> bool {
    let line = line.trim();
    line.len() >= fence.length && line.chars().all(|letter| letter == fence.mark)
}

/// Removes the indentation of the fence: in a list item, the code is indented too.
fn dedent(line: &str, indent: usize) -> &str {
    let blanks = line.len() - line.trim_start_matches([' ', '\t']).len();
    &line[blanks.min(indent)..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn block(language: BlockLanguage, code: &str) -> CodeBlock {
        CodeBlock { language, code: code.into(), closed: true }
    }

    #[test]
    fn marked_blocks_are_run_and_others_are_ignored() {
        let text = "First:\n```python\nprint(1)\n```\nthen\n~~~Bash title=x\nls\n~~~\nlike\n```json\n{}\n```\nor\n```\nplain\n```";
        assert_eq!(
            code_blocks(text),
            [block(BlockLanguage::Python, "print(1)\n"), block(BlockLanguage::Shell, "ls\n")]
        );
    }

    #[test]
    fn a_fence_inside_a_longer_fence_is_text() {
        let text = "````python\ns = '''\n```\n'''\n````";
        assert_eq!(code_blocks(text), [block(BlockLanguage::Python, "s = '''\n```\n'''\n")]);
        assert_eq!(code_blocks("````markdown\n```python\nx\n```\n````"), []);
    }

    #[test]
    fn an_indented_block_keeps_its_own_indentation_only() {
        let text = "1. Run\n   ```py\n   if x:\n       y()\n   ```";
        assert_eq!(code_blocks(text), [block(BlockLanguage::Python, "if x:\n    y()\n")]);
    }

    #[test]
    fn a_block_without_an_end_is_marked_as_open() {
        let open = CodeBlock { closed: false, ..block(BlockLanguage::Python, "print(1)\n") };
        assert_eq!(code_blocks("```python\nprint(1)"), [open]);
    }

    #[test]
    fn a_text_without_marked_code_has_no_blocks() {
        for text in
            ["", "`python`", "```python```", "``python\nx\n``", "```python\n\n```", "```pythonic\nx\n```"]
        {
            assert_eq!(code_blocks(text), [], "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "[`~ \\n\\tapython]{0,60}") {
            code_blocks(&text);
        }

        #[test]
        fn code_comes_out_as_it_was_written(lines in proptest::collection::vec("[^\\r\\n`]{0,20}", 1..6)) {
            let code = lines.join("\n") + "\n";
            prop_assume!(!code.trim().is_empty());
            let text = format!("Let me see.\n```python\n{code}```\nThen more.");
            prop_assert_eq!(code_blocks(&text), [block(BlockLanguage::Python, &code)]);
        }
    }
}
