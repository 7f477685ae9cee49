//! A source file, and how it is written with its mutants.

use std::ops::Range;

use crate::body::{Change, write_body};
use crate::places::{Form, Function, Lines, functions};
use crate::{Answer, Mutant};

pub(crate) struct SourceFile<'a> {
    text: &'a str,
    lines: Lines<'a>,
    functions: Vec<Function>,
}

/// Text that is written, and the number of its last line.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) text: String,
    newlines: usize,
}

impl Output {
    pub(crate) fn push(&mut self, text: &str) {
        self.newlines += text.matches('\n').count();
        self.text.push_str(text);
    }

    pub(crate) fn line(&self) -> usize {
        self.newlines + 1
    }
}

impl<'a> SourceFile<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, syn::Error> {
        let lines = Lines::new(text);
        let functions = functions(&syn::parse_file(text)?, &lines);
        Ok(SourceFile { text, lines, functions })
    }

    /// The text with these mutants, which are all of this file. `applied` is one that cannot be chosen at run time.
    pub(crate) fn with_mutants(
        &self,
        name: &str,
        mutants: &[&Mutant],
        applied: Option<u32>,
        answer: &mut Answer,
    ) -> Result<String, String> {
        let mut output = Output::default();
        let mut written = 0;
        let mut placed = Vec::new();
        let applied = mutants.iter().find(|mutant| Some(mutant.number) == applied);
        let applied = applied.map(|mutant| Change { mutant, at: self.range(mutant) });
        for function in self.functions.iter().filter(|function| function.form != Form::Constant) {
            let changes: Vec<Change> = mutants
                .iter()
                .map(|mutant| Change { mutant, at: self.range(mutant) })
                .filter(|change| function.body.start <= change.at.start && change.at.end <= function.body.end)
                .collect();
            if changes.is_empty() {
                continue;
            }
            placed.extend(changes.iter().map(|change| change.mutant.number));
            self.push_between(written..function.body.start, applied.as_ref(), &mut output);
            write_body(self.text, function, &changes, name, &mut output, &mut answer.variants);
            written = function.body.end;
        }
        self.push_between(written..self.text.len(), applied.as_ref(), &mut output);
        if placed.len() > mutants.len() {
            return Err(format!("{name}: two functions have one place"));
        }
        let numbers = mutants.iter().map(|mutant| mutant.number);
        answer.not_switchable.extend(numbers.filter(|number| !placed.contains(number)));
        Ok(output.text)
    }

    /// The text between two functions.
    fn push_between(&self, between: Range<usize>, applied: Option<&Change>, output: &mut Output) {
        let inside =
            applied.filter(|change| between.start <= change.at.start && change.at.end <= between.end);
        match inside {
            Some(Change { mutant, at }) => {
                output.push(&self.text[between.start..at.start]);
                output.push(&mutant.replacement);
                output.push(&self.text[at.end..between.end]);
            }
            None => output.push(&self.text[between]),
        }
    }

    fn range(&self, mutant: &Mutant) -> Range<usize> {
        self.lines.offset(mutant.span.start)..self.lines.offset(mutant.span.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LineColumn, Span, Variant};

    fn mutant(number: u32, line: usize, columns: [usize; 2], replacement: &str) -> Mutant {
        let [start, end] = columns.map(|column| LineColumn { line, column });
        Mutant { number, file: "a.rs".into(), span: Span { start, end }, replacement: replacement.into() }
    }

    fn written(text: &str, mutants: &[Mutant], applied: Option<u32>) -> (String, Answer) {
        let mut answer = Answer::default();
        let mutants: Vec<&Mutant> = mutants.iter().collect();
        let file = SourceFile::parse(text).unwrap();
        (file.with_mutants("a.rs", &mutants, applied, &mut answer).unwrap(), answer)
    }

    #[test]
    fn a_function_has_a_copy_of_its_body_for_each_mutant() {
        let text = "fn f(a: u8) -> bool {\n    let b = 2;\n    a < b\n}\n";
        let (text, answer) =
            written(text, &[mutant(4, 3, [7, 8], "<="), mutant(5, 2, [5, 15], "true")], None);
        assert_eq!(
            text,
            "fn f(a: u8) -> bool {\nmatch crate::hob_mutant::active() {\n4 => {\n\n    let b = 2;\n    a <= b\n\n}\n\
             5 => {\n\n    true\n    a < b\n\n}\n_ => {\n\n    crate::hob_mutant::reached(&[5]); let b = 2;\n    \
             crate::hob_mutant::reached(&[4]); a < b\n\n}\n}\n}\n"
        );
        let variant = |number, first, last| Variant { number, file: "a.rs".into(), first, last };
        assert_eq!(answer.variants, [variant(4, 4, 8), variant(5, 10, 14)]);
    }

    #[test]
    fn the_innermost_statement_says_that_it_is_reached() {
        let text = "fn f() {\n    if a {\n        b(é == 1);\n    }\n}\n";
        let (text, _) = written(text, &[mutant(1, 3, [13, 15], "!=")], None);
        assert!(text.contains("b(é != 1);"), "{text}");
        assert!(text.contains("if a {\n        crate::hob_mutant::reached(&[1]); b(é == 1);"), "{text}");
    }

    #[test]
    fn every_iterator_has_its_own_type() {
        let (text, _) = written(
            "fn f() -> impl Iterator<Item = u8> {\n    a()\n}\n",
            &[mutant(1, 2, [5, 8], "b()")],
            None,
        );
        assert!(text.contains("::iterator_of::<u8, _>({\n\n    b()"), "{text}");
        assert!(syn::parse_file(&text).is_ok(), "{text}");
    }

    #[test]
    fn what_the_compiler_evaluates_has_one_mutant_at_a_time() {
        let text = "const A: bool = 1 < 2;\nconst fn f() -> bool {\n    1 < 2\n}\n";
        let mutants = [mutant(1, 1, [19, 20], ">"), mutant(2, 3, [7, 8], ">")];
        let (same, answer) = written(text, &mutants, None);
        assert_eq!((same.as_str(), answer.not_switchable), (text, vec![1, 2]));
        assert_eq!(written(text, &mutants, Some(1)).0, text.replacen('<', ">", 1));
        assert_eq!(written(text, &mutants, Some(2)).0, text.replace("    1 <", "    1 >"));
    }
}
