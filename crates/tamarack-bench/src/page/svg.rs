//! Elements of SVG, written one after the other. Colours and fonts are those of the page's style sheet, by class.

use std::fmt::Write;

/// A drawing.
pub struct Svg {
    text: String,
}

/// Where a text stands in relation to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// How wide a character is on average in the weight in which names are written; a little more than most.
pub const CHARACTER_WIDTH: f64 = 8.2;

impl Svg {
    /// An empty drawing of that size that shows what `label` says.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        let text = format!(
            r#"<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{}">"#,
            escape(label)
        );
        Self { text }
    }

    /// The element as text.
    pub fn finish(self) -> String {
        self.text + "</svg>"
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let d = format!("M{} {}L{} {}", Short(from.0), Short(from.1), Short(to.0), Short(to.1));
        self.path(class, &d, "");
    }

    /// A line through points, without those that would not change what can be seen.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::new();
        for (index, (x, y)) in outline(points).iter().enumerate() {
            push(&mut d, format_args!("{}{} {}", if index == 0 { "M" } else { "L" }, Short(*x), Short(*y)));
        }
        self.path(class, &d, "");
    }

    /// A path; `title` is shown while somebody points at it.
    pub fn path(&mut self, class: &str, d: &str, title: &str) {
        if title.is_empty() {
            push(&mut self.text, format_args!(r#"<path class="{class}" d="{d}"/>"#));
        } else {
            let title = escape(title);
            push(
                &mut self.text,
                format_args!(r#"<path class="{class}" d="{d}"><title>{title}</title></path>"#),
            );
        }
    }

    /// A rectangle.
    pub fn rectangle(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let d = format!("M{} {}h{}v{}h-{}z", Short(x), Short(y), Short(width), Short(height), Short(width));
        self.path(class, &d, "");
    }

    /// A text on a line.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let (x, y, text) = (Short(x), Short(y), escape(text));
        push(&mut self.text, format_args!(r#"<text class="{class}" x="{x}" y="{y}"{anchor}>{text}</text>"#));
    }

    /// The sign of a series at a place: each of the first six has a shape of its own.
    pub fn mark(&mut self, series: usize, (x, y): (f64, f64), title: &str) {
        let (x, y) = (Short(x), Short(y));
        let d = match series % 6 {
            0 => format!("M{x} {y}m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z"),
            1 => format!("M{x} {y}m-3.2-3.2h6.4v6.4h-6.4z"),
            2 => format!("M{x} {y}m0-4.6l4.6 4.6l-4.6 4.6l-4.6-4.6z"),
            3 => format!("M{x} {y}m0-4.4l4.2 7.4h-8.4z"),
            4 => format!("M{x} {y}m0 4.4l4.2-7.4h-8.4z"),
            _ => format!("M{x} {y}m-4-1.2h8v2.4h-8z"),
        };
        self.path(&format!("mark {}", series_class(series)), &d, title);
    }
}

/// The points without which the line would be off by more than `VISIBLE` somewhere (Douglas and Peucker, 1973).
fn outline(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    const VISIBLE: f64 = 0.3;
    let [first, between @ .., last] = points else { return points.to_vec() };
    let off = |point: &(f64, f64)| distance(*point, *first, *last);
    let farthest = (0..between.len()).max_by(|a, b| off(&between[*a]).total_cmp(&off(&between[*b])));
    match farthest {
        Some(index) if off(&between[index]) > VISIBLE => {
            let mut left = outline(&points[..index + 2]);
            left.pop();
            left.extend(outline(&points[index + 1..]));
            left
        }
        _ => vec![*first, *last],
    }
}

/// From a point to the straight piece between two others.
fn distance(point: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (along, across) = (to.0 - from.0, to.1 - from.1);
    let square = along * along + across * across;
    let place = ((point.0 - from.0) * along + (point.1 - from.1) * across) / square.max(f64::MIN_POSITIVE);
    let nearest = (from.0 + place.clamp(0.0, 1.0) * along, from.1 + place.clamp(0.0, 1.0) * across);
    (point.0 - nearest.0).hypot(point.1 - nearest.1)
}

/// The class that gives a series its colour.
pub fn series_class(series: usize) -> String {
    format!("s{}", series % 8)
}

/// A text as it stands between tags and in quotes.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `text`, or its beginning, so that it is no wider than `width`.
pub fn fitted(text: &str, width: f64) -> String {
    let most = (width / CHARACTER_WIDTH).max(1.0) as usize;
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

/// A coordinate with one decimal at most.
struct Short(f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 {
            write!(f, "{}", tenths / 10.0 + 0.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

fn push(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    text.write_fmt(arguments).expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_coordinates_short() {
        let mut svg = Svg::new(10.0, 20.0, "a \"b\"");
        svg.text("t", (1.0, 2.25), Anchor::End, "<x> & y");
        svg.polyline("l", &[(0.04, 1.0), (2.0, 3.96)]);
        let expected = concat!(
            r#"<svg viewBox="0 0 10 20" width="10" height="20" role="img" aria-label="a &quot;b&quot;">"#,
            r#"<text class="t" x="1" y="2.3" text-anchor="end">&lt;x&gt; &amp; y</text>"#,
            r#"<path class="l" d="M0 1L2 4"/></svg>"#
        );
        assert_eq!(svg.finish(), expected);
    }

    #[test]
    fn what_cannot_be_seen_is_left_out_of_a_line() {
        let straight: Vec<(f64, f64)> = (0..100).map(|x| (f64::from(x), 2.0 * f64::from(x) + 0.1)).collect();
        assert_eq!(outline(&straight), [straight[0], straight[99]]);
        let peak = [(0.0, 0.0), (5.0, 0.2), (10.0, 9.0), (15.0, 0.1), (20.0, 0.0)];
        assert_eq!(outline(&peak), [peak[0], peak[1], peak[2], peak[3], peak[4]]);
        let corner = [(0.0, 0.0), (5.0, 0.2), (10.0, 0.0), (10.0, 9.0)];
        assert_eq!(outline(&corner), [corner[0], corner[2], corner[3]]);
        assert_eq!(outline(&[(1.0, 1.0)]), [(1.0, 1.0)]);
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(fitted("short", 100.0), "short");
        assert_eq!(fitted("a rather long name", 82.0), "a rather …");
    }
}
