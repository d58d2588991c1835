//! Every relative link of every Markdown page leads to a file, and to a heading in it if it names one.

use std::collections::{BTreeSet, HashMap};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::finding::Finding;
use crate::tree::{Page, Tree};

/// Every link that leads nowhere.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for page in &tree.pages {
        for (target, line) in targets(&page.text) {
            if let Err(reason) = follow(tree, page, &target) {
                findings.push(Finding::new(&page.path, line, format!("the link to `{target}` {reason}")));
            }
        }
    }
    findings
}

/// All links and images of a page, with their lines.
fn targets(text: &str) -> Vec<(String, usize)> {
    let target = |(event, range): (Event<'_>, std::ops::Range<usize>)| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
            Some((dest_url.into_string(), text[..range.start].matches('\n').count() + 1))
        }
        _ => None,
    };
    parser(text).into_offset_iter().filter_map(target).collect()
}

fn parser(text: &str) -> Parser<'_> {
    Parser::new_ext(text, Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH)
}

fn follow(tree: &Tree, page: &Page, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = if file.is_empty() { page.path.clone() } else { resolve(&page.path, file)? };
    if !tree.root.join(&path).exists() {
        return Err(format!("needs a file `{path}`"));
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let Some(other) = tree.page(&path) else {
        return Err("has an anchor, which only a Markdown page can keep".to_owned());
    };
    if anchors(&other.text).contains(anchor) { Ok(()) } else { Err(format!("needs a heading in `{path}`")) }
}

/// The path from the root that `file`, written on the page at `page`, means.
fn resolve(page: &str, file: &str) -> Result<String, String> {
    if file.starts_with('/') {
        return Err("is absolute".to_owned());
    }
    let mut names: Vec<&str> = page.split('/').collect();
    names.pop();
    for name in file.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop().ok_or("leaves the project")?),
            name => names.push(name),
        }
    }
    Ok(names.join("/"))
}

/// The anchors of a page: one per heading, formed as the usual viewers do, and those written as HTML.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut uses: HashMap<String, usize> = HashMap::new();
    let mut heading: Option<String> = None;
    for event in parser(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let anchor = slug(&heading.take().unwrap_or_default());
                let earlier = uses.entry(anchor.clone()).or_default();
                anchors.insert(if *earlier == 0 { anchor } else { format!("{anchor}-{earlier}") });
                *earlier += 1;
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for attribute in ["id=\"", "name=\""] {
                    let values = html.split(attribute).skip(1).filter_map(|rest| rest.split_once('"'));
                    anchors.extend(values.map(|(value, _)| value.to_owned()));
                }
            }
            _ => {}
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tests::tree;

    const OTHER: &str =
        "# The *log*: `vlog` & co\n\n## Twice\n\n## Twice\n\n<a id=\"by-hand\"></a>\n\n```\n# Not one\n```\n";

    fn findings(text: &str) -> Vec<String> {
        let files =
            [("docs/page.md", text), ("docs/deep/other.md", OTHER), ("README.md", ""), ("a.rs", "//! A.\n")];
        let (_directory, tree) = tree(&files);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn good_links_pass() {
        for link in [
            "deep/other.md",
            "./deep/",
            "../README.md",
            "deep/other.md#the-log-vlog--co",
            "deep/other.md#twice",
            "deep/other.md#twice-1",
            "deep/other.md#by-hand",
            "#here",
            "https://example.org/nowhere.md#x",
        ] {
            assert_eq!(findings(&format!("# Here\n\nSee [it]({link}).\n")), [""; 0]);
        }
        assert_eq!(findings("```\n[code](nowhere.md)\n```\nand `[code](nowhere.md)`\n"), [""; 0]);
    }

    #[test]
    fn broken_links_are_found() {
        for (link, reason) in [
            ("nowhere.md", "needs a file `docs/nowhere.md`"),
            ("README.md", "needs a file `docs/README.md`"),
            ("../../outside.md", "leaves the project"),
            ("/README.md", "is absolute"),
            ("deep/other.md#twice-2", "needs a heading in `docs/deep/other.md`"),
            ("deep/other.md#not-one", "needs a heading"),
            ("#nowhere", "needs a heading in `docs/page.md`"),
            ("../a.rs#L1", "has an anchor"),
        ] {
            let expected = format!("docs/page.md:3: the link to `{link}` {reason}");
            for text in [format!("# Here\n\n[it]({link})\n"), format!("a\n\n[it][1]\n\n[1]: {link}\n")] {
                let found = findings(&text);
                assert!(found.len() == 1 && found[0].starts_with(&expected), "{link} gave {found:?}");
            }
            assert_eq!(findings(&format!("|a|\n|---|\n|![it]({link})|\n")).len(), 1);
        }
    }
}
