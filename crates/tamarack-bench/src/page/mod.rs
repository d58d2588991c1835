//! A comparison as one HTML page: who was measured, where and how, plots, and all figures in tables.
//!
//! The page needs nothing but itself: no script, no font, no picture from elsewhere. It follows the reader's choice of light
//! or dark, and prints in black on white. What is plotted depends on what there is: by the size of values where reports have
//! several, as bars where they have one. `results` puts the rows in order, `figures`, `curves` and `collecting` decide which plots there are,
//! `metric` says what is plotted, `lines` and `bars` draw.

mod bars;
mod collecting;
mod curves;
mod figures;
mod lines;
mod metric;
mod number;
mod results;
mod scale;
mod svg;
mod tables;

use crate::comparison::Comparison;

use self::figures::Section;
use self::results::Results;
use self::svg::escape;

const STYLE: &str = include_str!("style.css");

/// The page, from its doctype to its end.
///
/// Stores appear in the order of their rows, the first one in the first colour. A store that has no report appears with its
/// reason, in the list of stores and wherever others have figures.
///
/// ```
/// use tamarack_bench::{Comparison, Machine, Outcome, Row, page};
///
/// let machine = Machine::of(std::path::Path::new("."));
/// let mut comparison = Comparison::new(machine, "compare --all".to_owned());
/// comparison.rows.push(Row {
///     store: "Otherstore".to_owned(),
///     version: "1.2".to_owned(),
///     options: "defaults".to_owned(),
///     outcome: Outcome::Missing("its library is not installed".to_owned()),
/// });
/// assert!(page(&comparison).contains("its library is not installed"));
/// ```
pub fn page(comparison: &Comparison) -> String {
    let results = Results::of(comparison);
    let mut html = String::from("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    let title = title(&results);
    html += &format!("<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n", escape(&title));
    html += &format!("<header>\n<h1>{}</h1>\n{}</header>\n<main>\n", escape(&title), head(comparison));
    html += &tables::stores(&results);
    for section in figures::sections(&results) {
        html += &plots(&section);
    }
    html += &tables::figures(&results);
    html + "</main>\n</body>\n</html>\n"
}

fn title(results: &Results<'_>) -> String {
    let names: Vec<&str> = results.series.iter().map(|series| series.label.as_str()).collect();
    match names.as_slice() {
        [] => "Nothing was measured".to_owned(),
        [one] => format!("{one}, measured"),
        [rest @ .., last] => format!("{} and {last}, measured side by side", rest.join(", ")),
    }
}

/// What a reader must know before any figure: the machine, the day, the commands.
fn head(comparison: &Comparison) -> String {
    let mut text = String::from("<dl>\n");
    let mut fact = |name: &str, value: Option<String>| {
        let value = value.unwrap_or_else(|| "unknown".to_owned());
        text += &format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(&value));
    };
    for (name, value) in comparison.machine.facts() {
        fact(name, value);
    }
    fact("date", Some(comparison.date.replace('T', " ").replace('Z', " UTC")));
    text + &format!("</dl>\n<pre>{}</pre>\n", escape(&comparison.command))
}

fn plots(section: &Section) -> String {
    let Section { title, note, plots } = section;
    let mut text = format!(
        "<section>\n<h2>{title}</h2>\n<p class=\"note\">{}</p>\n<div class=\"plots\">\n",
        escape(note)
    );
    for plot in plots {
        let detail = match plot.detail.as_str() {
            "" => String::new(),
            detail => format!("<br><small>{}</small>", escape(detail)),
        };
        let caption = format!("<figcaption>{}{detail}</figcaption>", escape(&plot.title));
        text += &format!("<figure>{caption}{}</figure>\n", plot.svg);
    }
    text + "</div>\n</section>\n"
}

#[cfg(test)]
mod tests;
