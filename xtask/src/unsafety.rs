//! Unsafe code of the C interface lies in its `boundary` alone.
//!
//! The compiler cannot tell: a function that C calls has an unmangled name, and the lint against unsafe code counts
//! that as unsafe, so it is off in `exports`, too. This rule lets names through and nothing else.

use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::layers::C_INTERFACE;
use crate::tree::{Source, Tree};

/// The module that may hold unsafe code.
const BOUNDARY: &str = "boundary/";

/// Every block, function, trait and implementation that is unsafe elsewhere.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        let path = source.path.strip_prefix(C_INTERFACE);
        if path.is_some_and(|path| !path.starts_with(BOUNDARY)) {
            Unsafe { source, findings: &mut findings }.visit_file(&source.syntax);
        }
    }
    findings
}

struct Unsafe<'a> {
    source: &'a Source,
    findings: &'a mut Vec<Finding>,
}

impl Unsafe<'_> {
    fn found(&mut self, keyword: &syn::token::Unsafe) {
        let message = "unsafe code of the C interface belongs into `boundary`";
        self.findings.push(Finding::new(&self.source.path, keyword.span.start().line, message));
    }
}

impl<'ast> Visit<'ast> for Unsafe<'_> {
    fn visit_expr_unsafe(&mut self, block: &'ast syn::ExprUnsafe) {
        self.found(&block.unsafe_token);
        visit::visit_expr_unsafe(self, block);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        if let syn::Safety::Unsafe(keyword) = &signature.safety {
            self.found(keyword);
        }
        visit::visit_signature(self, signature);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        item.unsafety.iter().for_each(|keyword| self.found(keyword));
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        item.unsafety.iter().for_each(|keyword| self.found(keyword));
        visit::visit_item_trait(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    fn count(path: &str, text: &str) -> usize {
        let path = format!("{C_INTERFACE}{path}");
        let (_directory, tree) = tree(&[(&path, text)]);
        check(&tree).len()
    }

    #[test]
    fn unsafe_code_is_found_in_every_form_outside_the_boundary_and_names_are_let_through() {
        for text in [
            "fn f() { unsafe { g() } }",
            "fn f() { let c = || unsafe { g() }; }",
            "unsafe fn f() {}",
            "unsafe impl Send for A {}",
            "unsafe trait A {}",
            "impl A { unsafe fn f(&self) {} }",
            "trait A { unsafe fn f(&self); }",
        ] {
            assert_eq!(count("exports/a.rs", text), 1, "{text}");
            assert_eq!(count("boundary/a.rs", text), 0, "{text}");
        }
        assert_eq!(count("exports/a.rs", "#[unsafe(no_mangle)] pub extern \"C\" fn f() {}"), 0);
    }
}
