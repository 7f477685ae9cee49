//! The body of a function with its mutants: a copy of the body for each of them. So each is compiled exactly as it is alone, and no value
//! is evaluated twice.

use std::ops::Range;

use crate::file::Output;
use crate::places::{Form, Function};
use crate::{Mutant, Variant};

/// A mutant, and the text that it replaces.
pub(crate) struct Change<'a> {
    pub(crate) mutant: &'a Mutant,
    pub(crate) at: Range<usize>,
}

pub(crate) fn write_body(
    text: &str,
    function: &Function,
    changes: &[Change],
    file: &str,
    output: &mut Output,
    variants: &mut Vec<Variant>,
) {
    let items = match &function.form {
        Form::Iterator(items) => Some(&text[items.clone()]),
        Form::Match | Form::Constant => None,
    };
    output.push(if items.is_some() { "\n" } else { "\nmatch crate::hob_mutant::active() {\n" });
    for Change { mutant, at } in changes {
        let number = mutant.number;
        let first = output.line() + 1;
        output.push(&match items {
            // With the type of the items, so that an error is where it is made.
            Some(items) => format!(
                "if crate::hob_mutant::active() == {number} {{\n\
                 crate::hob_mutant::Either::Mutant(crate::hob_mutant::iterator_of::<{items}, _>({{\n"
            ),
            None => format!("{number} => {{\n"),
        });
        output.push(&text[function.body.start..at.start]);
        output.push(&mutant.replacement);
        output.push(&text[at.end..function.body.end]);
        variants.push(Variant { number, file: file.to_owned(), first, last: output.line() + 1 });
        output.push(match items {
            Some(_) => "\n})) } else { crate::hob_mutant::Either::Other({\n",
            None => "\n}\n",
        });
    }
    if items.is_none() {
        output.push("_ => {\n");
    }
    write_original(text, function, changes, output);
    output.push(&match items {
        Some(_) => format!("\n{}\n", "}) }".repeat(changes.len())),
        None => "\n}\n}\n".to_owned(),
    });
}

/// The body as it is. Before the statement of a mutant, it says that the mutant is reached.
fn write_original(text: &str, function: &Function, changes: &[Change], output: &mut Output) {
    let mut reached: Vec<(usize, u32)> = changes
        .iter()
        .filter_map(|change| Some((statement_of(function, &change.at)?, change.mutant.number)))
        .collect();
    reached.sort_unstable();
    let mut written = function.body.start;
    for group in reached.chunk_by(|one, next| one.0 == next.0) {
        let Some(&(at, _)) = group.first() else { continue };
        let numbers: Vec<String> = group.iter().map(|(_, number)| number.to_string()).collect();
        output.push(&text[written..at]);
        output.push(&format!("crate::hob_mutant::reached(&[{}]); ", numbers.join(", ")));
        written = at;
    }
    output.push(&text[written..function.body.end]);
}

/// Where the innermost statement begins that has all of this text. A mutant that replaces the whole body begins with its first statement.
fn statement_of(function: &Function, at: &Range<usize>) -> Option<usize> {
    let around = function.statements.iter().filter(|each| each.start <= at.start && at.end <= each.end);
    let innermost = around.min_by_key(|each| each.len());
    innermost.or(function.statements.first()).map(|statement| statement.start)
}
