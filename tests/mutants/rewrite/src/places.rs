//! Where the functions of a file and their statements are.

use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Block, GenericArgument, ItemFn, PathArguments, ReturnType, Signature, Stmt, Type, TypeParamBound};

use crate::LineColumn;

/// The offsets at which lines begin.
pub(crate) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    /// The offset of a place.
    pub(crate) fn offset(&self, place: LineColumn) -> usize {
        let start = self.starts.get(place.line - 1).copied().unwrap_or(self.text.len());
        let mut characters = self.text[start..].char_indices().map(|(at, _)| start + at);
        characters.nth(place.column - 1).unwrap_or(self.text.len())
    }

    fn range(&self, span: proc_macro2::Span) -> Range<usize> {
        let place = |at: proc_macro2::LineColumn| LineColumn { line: at.line, column: at.column + 1 };
        self.offset(place(span.start()))..self.offset(place(span.end()))
    }
}

/// How a function returns a value of a mutant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each mutant is an arm of a `match`.
    Match,
    /// Each mutant is a branch of an `if`, because of `impl Iterator`, every mutant has its own type. With the type of the items.
    Iterator(Range<usize>),
    /// It must be known when Hob is compiled.
    Constant,
}

/// A function that is not inside another one.
#[derive(Debug)]
pub(crate) struct Function {
    /// The text between its braces.
    pub(crate) body: Range<usize>,
    pub(crate) form: Form,
    /// The statements of its blocks, also of blocks inside others.
    pub(crate) statements: Vec<Range<usize>>,
}

pub(crate) fn functions(file: &syn::File, lines: &Lines) -> Vec<Function> {
    let mut visitor = Visitor { lines, functions: Vec::new(), is_inside: false };
    visitor.visit_file(file);
    visitor.functions
}

struct Visitor<'a> {
    lines: &'a Lines<'a>,
    functions: Vec<Function>,
    is_inside: bool,
}

impl Visitor<'_> {
    fn form(&self, signature: &Signature) -> Form {
        if signature.constness.is_some() {
            return Form::Constant;
        }
        match &signature.output {
            ReturnType::Type(_, output) => {
                items_of(output).map_or(Form::Match, |items| Form::Iterator(self.lines.range(items.span())))
            }
            ReturnType::Default => Form::Match,
        }
    }

    fn enter(&mut self, signature: &Signature, block: &Block) {
        if self.is_inside {
            // Statements of a function that is evaluated by the compiler cannot say that they are reached.
            if signature.constness.is_none() {
                visit::visit_block(self, block);
            }
            return;
        }
        let body = self.lines.range(block.brace_token.span.open()).end
            ..self.lines.range(block.brace_token.span.close()).start;
        self.functions.push(Function { body, form: self.form(signature), statements: Vec::new() });
        self.is_inside = true;
        visit::visit_block(self, block);
        self.is_inside = false;
    }
}

impl<'ast> Visit<'ast> for Visitor<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.enter(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.enter(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.enter(&item.sig, block);
        }
    }

    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let range = self.lines.range(statement.span());
        if let Some(function) = self.functions.last_mut().filter(|_| self.is_inside) {
            function.statements.push(range);
        }
        visit::visit_stmt(self, statement);
    }
}

/// The type of the items, if a function promises an iterator.
fn items_of(output: &Type) -> Option<&Type> {
    let Type::ImplTrait(promised) = output else { return None };
    let last = promised.bounds.iter().find_map(|bound| match bound {
        TypeParamBound::Trait(bound) => bound.path.segments.last().filter(|last| last.ident == "Iterator"),
        _ => None,
    });
    let PathArguments::AngleBracketed(arguments) = &last?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::AssocType(item) if item.ident == "Item" => Some(&item.ty),
        _ => None,
    })
}
