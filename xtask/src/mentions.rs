//! Every path that a Rust file names, wherever it stands: in a `use` tree, in code, in a macro's tokens or in an
//! attribute. `layers` judges them; nothing here knows a rule.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::visit::{self, Visit};
use syn::{Ident, Token, UseTree};

/// One path in one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention {
    /// The names of the path as written, groups taken apart; raw identifiers lose their `r#`.
    pub names: Vec<String>,
    /// Whether the path ends in `*`.
    pub glob: bool,
    /// Whether the path brings a name into scope, so that it must be judged by all that lies below it.
    pub import: bool,
    /// The path, from the crate root, of the module in which it stands.
    pub module: Vec<String>,
    /// Its line, counted from one.
    pub line: usize,
}

impl Mention {
    /// The path from the crate root, if it begins with `crate`, `self` or `super`.
    pub fn resolve(&self) -> Option<Vec<&str>> {
        let mut path: Vec<&str> = match self.names.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.iter().map(String::as_str).collect(),
            _ => return None,
        };
        for name in &self.names {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(path.pop()),
                name => path.push(name),
            }
        }
        Some(path)
    }

    /// The path as written, on one line.
    pub fn written(&self) -> String {
        self.names.join("::") + if self.glob { "::*" } else { "" }
    }
}

/// All paths in a file whose module path is `module`, in the file's order.
pub fn mentions(syntax: &syn::File, module: Vec<String>) -> Vec<Mention> {
    let mut collector = Collector { module, mentions: Vec::new() };
    collector.visit_file(syntax);
    collector.mentions
}

struct Collector {
    module: Vec<String>,
    mentions: Vec<Mention>,
}

impl Collector {
    fn add(&mut self, names: Vec<String>, line: usize, import: bool, glob: bool) {
        self.mentions.push(Mention { names, glob, import, module: self.module.clone(), line });
    }

    /// Takes a `use` tree apart.
    fn add_tree(&mut self, prefix: &[String], tree: &UseTree, import: bool) {
        let with = |ident: &Ident| [prefix, &[ident.unraw().to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.add_tree(&with(&path.ident), &path.tree, import),
            UseTree::Name(name) => self.add(with(&name.ident), name.ident.span().start().line, import, false),
            UseTree::Rename(name) => {
                self.add(with(&name.ident), name.ident.span().start().line, import, false)
            }
            UseTree::Glob(glob) => {
                self.add(prefix.to_vec(), glob.star_token.spans[0].start().line, import, true)
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add_tree(prefix, tree, import)),
        }
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.unraw().to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&[], &item.tree, true);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names = path.segments.iter().map(|segment| segment.ident.unraw().to_string()).collect();
        if let Some(first) = path.segments.first().filter(|_| path.segments.len() > 1) {
            self.add(names, first.ident.span().start().line, false, false);
        }
        visit::visit_path(self, path);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        // `extern crate self as name` would be a second door to the crate root.
        let name = if item.ident == "self" { "crate".to_owned() } else { item.ident.unraw().to_string() };
        self.add(vec![name], item.ident.span().start().line, true, false);
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {
        // Who may see an item is no dependency of it.
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        self.add_tokens(tokens);
    }
}

impl Collector {
    /// Finds what looks like a path among tokens that have not been parsed.
    fn add_tokens(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        let mut position = 0;
        while position < tokens.len() {
            match &tokens[position] {
                TokenTree::Group(group) => self.add_tokens(&group.stream()),
                TokenTree::Ident(ident) => {
                    let len = path_len(&tokens[position..]);
                    // `use a::b as c` binds a name, inside a macro as well as outside.
                    let import = position > 0 && is_ident(&tokens[position - 1], "use");
                    if len > 1 {
                        self.add_token_path(&tokens[position..position + len], import);
                    } else if ident == "crate" && import {
                        self.add(vec!["crate".to_owned()], ident.span().start().line, true, false);
                    }
                    position += len - 1;
                }
                _ => {}
            }
            position += 1;
        }
    }

    fn add_token_path(&mut self, tokens: &[TokenTree], import: bool) {
        let stream: TokenStream = tokens.iter().cloned().collect();
        if let Ok(LooseTree(tree)) = syn::parse2(stream) {
            self.add_tree(&[], &tree, import);
        } else if let Some(TokenTree::Group(group)) = tokens.last() {
            // `path::{` that is no `use` tree, as with fragments of a macro: the prefix alone, and the inside.
            let prefix = &tokens[..tokens.len() - 3];
            let names = prefix.iter().filter_map(|token| match token {
                TokenTree::Ident(ident) => Some(ident.unraw().to_string()),
                _ => None,
            });
            self.add(names.collect(), group.span_open().start().line, import, import);
            self.add_tokens(&group.stream());
        }
    }
}

/// A `use` tree with nothing after it.
struct LooseTree(UseTree);

impl Parse for LooseTree {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let tree = input.parse()?;
        let _: Option<Token![,]> = input.parse()?;
        Ok(Self(tree))
    }
}

/// How many of the tokens, the first being an identifier, make up one path.
fn path_len(tokens: &[TokenTree]) -> usize {
    let mut len = 1;
    while let [TokenTree::Punct(first), TokenTree::Punct(second), next, ..] = &tokens[len..] {
        if first.as_char() != ':' || second.as_char() != ':' {
            break;
        }
        match next {
            TokenTree::Ident(_) => len += 3,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return len + 3,
            TokenTree::Punct(star) if star.as_char() == '*' => return len + 3,
            _ => break,
        }
    }
    len
}

fn is_ident(token: &TokenTree, name: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == name)
}
