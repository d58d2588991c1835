//! Which lines of a Rust file are compiled for tests only: those under `#[cfg(test)]` or `#[test]`, and whole
//! integration tests.

use std::ops::RangeInclusive;

use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, Token};

/// The test code of one file.
#[derive(Debug)]
pub enum TestCode {
    /// Every line.
    Everything,
    /// These lines, counted from one.
    Lines(Vec<RangeInclusive<usize>>),
}

impl TestCode {
    /// The test code of the file at `path`, as far as the file itself tells.
    pub fn of(path: &str, syntax: &syn::File) -> Self {
        let mut directories = path.split('/').take_while(|name| *name != "src");
        if directories.any(|name| name == "tests") || syntax.attrs.iter().any(is_test) {
            return Self::Everything;
        }
        let mut lines = TestLines(Vec::new());
        lines.visit_file(syntax);
        Self::Lines(lines.0)
    }

    /// Whether `line` is test code.
    pub fn contains(&self, line: usize) -> bool {
        match self {
            Self::Everything => true,
            Self::Lines(ranges) => ranges.iter().any(|range| range.contains(&line)),
        }
    }
}

/// Names of the modules that the file declares, for tests only, in files of their own.
pub fn test_modules(syntax: &syn::File) -> impl Iterator<Item = String> {
    syntax.items.iter().filter_map(|item| match item {
        Item::Mod(module) if module.content.is_none() && module.attrs.iter().any(is_test) => {
            Some(module.ident.to_string())
        }
        _ => None,
    })
}

struct TestLines(Vec<RangeInclusive<usize>>);

impl TestLines {
    fn add(&mut self, attributes: &[Attribute], item: &impl Spanned) {
        if attributes.iter().any(is_test) {
            self.0.push(item.span().start().line..=item.span().end().line);
        }
    }
}

impl<'ast> Visit<'ast> for TestLines {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.add(&item.attrs, item);
        visit::visit_item_mod(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.add(&item.attrs, item);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.add(&item.attrs, item);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        self.add(&item.attrs, item);
        visit::visit_item_impl(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add(&item.attrs, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.attrs, item);
    }
}

/// Whether the attribute is `#[test]`, or a `#[cfg]` that holds in tests only.
fn is_test(attribute: &Attribute) -> bool {
    if attribute.path().is_ident("cfg") {
        attribute.parse_args::<Meta>().is_ok_and(|condition| implies_test(&condition))
    } else {
        attribute.path().is_ident("test")
    }
}

fn implies_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|conditions| conditions.iter().any(implies_test)),
        _ => false,
    }
}
