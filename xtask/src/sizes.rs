//! No giants: limits on the lines of a file and of a function's body.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::finding::Finding;
use crate::tree::{Source, Tree};

/// Lines of a file, comments and tests included. It should be some 250; beyond this it holds two concepts.
const FILE_LINES_MAX: usize = 600;

/// Lines between the braces of a function, closures and nested functions included.
const FUNCTION_LINES_MAX: usize = 70;

/// The same for a test, which may tell a longer story.
const TEST_LINES_MAX: usize = 100;

/// Every file and function that is too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.c_files {
        findings.extend(check_file(&file.path, &file.text));
    }
    for source in &tree.sources {
        findings.extend(check_file(&source.path, &source.text));
        let mut functions = Functions { source, findings: &mut findings };
        functions.visit_file(&source.syntax);
    }
    findings
}

fn check_file(path: &str, text: &str) -> Option<Finding> {
    let lines = text.lines().count();
    let message = || format!("the file has {lines} lines, more than {FILE_LINES_MAX}");
    (lines > FILE_LINES_MAX).then(|| Finding::new(path, FILE_LINES_MAX + 1, message()))
}

struct Functions<'a> {
    source: &'a Source,
    findings: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, name: &syn::Ident, body_start: usize, body_end: usize) {
        let line = name.span().start().line;
        let max = if self.source.is_test(line) { TEST_LINES_MAX } else { FUNCTION_LINES_MAX };
        let lines = body_end.saturating_sub(body_start + 1);
        if lines > max {
            let message = format!("the body of `{name}` has {lines} lines, more than {max}");
            self.findings.push(Finding::new(&self.source.path, line, message));
        }
    }

    fn measure_block(&mut self, name: &syn::Ident, block: &syn::Block) {
        let braces = block.brace_token.span;
        self.measure(name, braces.open().start().line, braces.close().end().line);
    }

    /// Finds functions among tokens that have not been parsed, as inside `proptest!`.
    fn search(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            if let TokenTree::Group(group) = token {
                self.search(&group.stream());
            }
            let [TokenTree::Ident(keyword), TokenTree::Ident(name), rest @ ..] = &tokens[index..] else {
                continue;
            };
            if let (true, Some(body)) = (keyword == "fn", body(rest)) {
                self.measure(name, body.span_open().start().line, body.span_close().end().line);
            }
        }
    }
}

/// The braces that follow a function's signature, or `None` for a mere declaration.
fn body(signature: &[TokenTree]) -> Option<&Group> {
    let end = signature.iter().find(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    });
    if let Some(TokenTree::Group(group)) = end { Some(group) } else { None }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.measure_block(&item.sig.ident, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.measure_block(&item.sig.ident, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure_block(&item.sig.ident, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.search(tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    fn findings(text: &str) -> Vec<String> {
        let (_directory, tree) = tree(&[("a/src/lib.rs", text)]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    fn lines(count: usize) -> String {
        "    f();\n".repeat(count)
    }

    #[test]
    fn a_function_of_seventy_lines_passes_and_one_line_more_does_not() {
        for (before, after) in [
            ("fn long() {\n", "}"),
            ("impl A {\n fn long(&self)\n -> u8\n {\n", "}}"),
            ("trait A {\n fn long(&self) {\n", "}}"),
            ("mod outer { mod inner { fn long() {\n", "} } }"),
            ("proptest! {\n #[test]\n fn long(a in 0..1) {\n", "}}"),
            ("macro_rules! m { () => { fn long() {\n", "} } }"),
        ] {
            let text = |count| format!("{before}{}{after}\n", lines(count));
            assert_eq!(findings(&text(FUNCTION_LINES_MAX)), [""; 0], "{before}");
            let found = findings(&text(FUNCTION_LINES_MAX + 1));
            assert_eq!(found.len(), 1, "{before} gave {found:?}");
            assert!(found[0].contains("the body of `long` has 71 lines, more than 70"), "{found:?}");
        }
    }

    #[test]
    fn closures_count_to_their_function() {
        let text = format!("fn long() {{\n    let f = || {{\n{}    }};\n}}\n", lines(FUNCTION_LINES_MAX));
        assert_eq!(findings(&text), ["a/src/lib.rs:1: the body of `long` has 72 lines, more than 70"]);
    }

    #[test]
    fn a_test_may_have_a_hundred_lines() {
        let text =
            |count| format!("#[cfg(test)]\nmod tests {{\n#[test]\nfn long() {{\n{}}}\n}}\n", lines(count));
        assert_eq!(findings(&text(TEST_LINES_MAX)), [""; 0]);
        let expected = "a/src/lib.rs:4: the body of `long` has 101 lines, more than 100";
        assert_eq!(findings(&text(TEST_LINES_MAX + 1)), [expected]);
    }

    #[test]
    fn a_file_of_six_hundred_lines_passes_and_one_line_more_does_not() {
        assert_eq!(findings(&"//! Long.\n".repeat(FILE_LINES_MAX)), [""; 0]);
        let expected = "a/src/lib.rs:601: the file has 601 lines, more than 600";
        assert_eq!(findings(&"//! Long.\n".repeat(FILE_LINES_MAX + 1)), [expected]);
        for name in ["a.c", "a.cc", "a.h"] {
            let (_directory, tree) = tree(&[(name, &"/* Long. */\n".repeat(FILE_LINES_MAX + 1))]);
            assert_eq!(check(&tree).len(), 1, "files in C and C++ count as well: {name}");
        }
    }
}
