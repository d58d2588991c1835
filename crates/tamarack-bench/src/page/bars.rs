//! A plot of bars: one for each series, with its name on the left and its number at its end. Bars begin at zero.

use super::scale::Scale;
use super::svg::{Anchor, CHARACTER_WIDTH, Svg, fitted, series_class};

/// The plot.
pub struct Bars<'a> {
    /// What it shows, for those who cannot see it.
    pub label: String,
    pub bars: Vec<Bar<'a>>,
    /// A number that is marked, and what it is.
    pub reference: Option<(f64, String)>,
}

/// A bar.
pub struct Bar<'a> {
    pub series: usize,
    pub name: &'a str,
    /// How long it is, and that as text; or why there is none.
    pub value: Result<(f64, String), String>,
}

const WIDTH: f64 = 340.0;
const ROW: f64 = 22.0;
const THICK: f64 = 13.0;
const NAMES_MAX: f64 = 140.0;
/// Room for the numbers at the ends of the bars.
const NUMBERS: f64 = 62.0;

impl Bars<'_> {
    /// Draws it.
    pub fn draw(&self) -> String {
        let longest = self.bars.iter().map(|bar| bar.name.chars().count()).max().unwrap_or(0);
        let left = (longest as f64 * CHARACTER_WIDTH).min(NAMES_MAX) + 8.0;
        let lengths = self.bars.iter().filter_map(|bar| bar.value.as_ref().ok()).map(|(length, _)| *length);
        let largest = lengths.chain(self.reference.iter().map(|(number, _)| *number)).fold(0.0, f64::max);
        let scale = Scale::Linear(0.0, if largest > 0.0 { largest } else { 1.0 });
        let room = WIDTH - left - NUMBERS;
        let bottom = self.bars.len() as f64 * ROW + 2.0;
        let height = bottom + if self.reference.is_some() { 16.0 } else { 2.0 };
        let mut svg = Svg::new(WIDTH, height, &self.label);
        for (index, bar) in self.bars.iter().enumerate() {
            let (top, base) = (index as f64 * ROW + 4.0, index as f64 * ROW + 15.0);
            svg.text("label", (left - 8.0, base), Anchor::End, &fitted(bar.name, NAMES_MAX));
            match &bar.value {
                Ok((length, text)) => {
                    let long = (scale.place(*length) * room).max(1.0);
                    let class = format!("bar {}", series_class(bar.series));
                    svg.rectangle(&class, (left, top), (long, THICK));
                    svg.text("number", (left + long + 5.0, base), Anchor::Start, text);
                }
                Err(reason) => {
                    svg.text("none", (left + 4.0, base), Anchor::Start, &fitted(reason, WIDTH - left - 4.0));
                }
            }
        }
        svg.line("axis", (left, 0.0), (left, bottom));
        if let Some((number, text)) = &self.reference {
            let x = left + scale.place(*number) * room;
            svg.line("reference", (x, 0.0), (x, bottom));
            svg.text("tick", (x, bottom + 12.0), Anchor::Middle, text);
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_numbers_and_reasons_are_told() {
        let bar = |series, name, value| Bar { series, name, value };
        let plot = Bars {
            label: "rates".into(),
            bars: vec![
                bar(0, "one", Ok((10.0, "10 k".into()))),
                bar(1, "two", Ok((5.0, "5 k".into()))),
                bar(2, "three", Err("did not <start>".into())),
            ],
            reference: Some((2.5, "limit".into())),
        };
        let svg = plot.draw();
        let width = |class: &str| -> f64 {
            let (_, rest) = svg.split_once(&format!(r#"class="bar {class}" d="M"#)).expect("there is a bar");
            let (_, rest) = rest.split_once('h').expect("it has a width");
            rest.split_once('v').expect("and a height").0.parse().expect("a number")
        };
        assert!((width("s0") / width("s1") - 2.0).abs() < 0.01);
        assert!(!svg.contains("bar s2") && svg.contains("did not &lt;start&gt;"), "{svg}");
        assert!(svg.contains(">limit</text>"), "{svg}");
    }
}
