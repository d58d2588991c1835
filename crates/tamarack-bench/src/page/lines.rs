//! A plot of lines: one for each series, with its name at its right end.

use super::scale::Scale;
use super::svg::{Anchor, CHARACTER_WIDTH, Svg, fitted, series_class};

/// The plot.
pub struct Lines<'a> {
    /// What it shows, for those who cannot see it.
    pub label: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line<'a>>,
    /// Whether each point has a mark.
    pub marked: bool,
}

/// An axis: its scale, and the texts beside it.
pub struct Axis {
    pub title: String,
    pub scale: Scale,
    pub ticks: Vec<(f64, String)>,
}

/// A line.
pub struct Line<'a> {
    /// Which series it belongs to, and so its colour.
    pub series: usize,
    pub name: &'a str,
    /// Whether it is what another line of the series is to be compared with.
    pub dashed: bool,
    pub points: Vec<(f64, f64)>,
}

impl Axis {
    /// An axis whose ticks are written by `text`.
    pub fn new(title: &str, scale: Scale, text: fn(f64) -> String) -> Self {
        let title = if scale.is_log() { format!("{title}, logarithmic") } else { title.to_owned() };
        Self { title, scale, ticks: scale.ticks().into_iter().map(|tick| (tick, text(tick))).collect() }
    }
}

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 300.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 42.0;
const LEFT: f64 = 58.0;
/// Names of lines have no more room than that.
const NAMES_MAX: f64 = 164.0;
/// Names have this distance at least.
const LINE_HEIGHT: f64 = 14.0;

impl Lines<'_> {
    /// Draws it.
    pub fn draw(&self) -> String {
        let longest = self.lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
        let names = (longest as f64 * CHARACTER_WIDTH).min(NAMES_MAX);
        let frame = Frame { right: WIDTH - names - 16.0 };
        let mut svg = Svg::new(WIDTH, HEIGHT, &self.label);
        self.draw_axes(&mut svg, &frame);
        for line in &self.lines {
            let points: Vec<(f64, f64)> = line.points.iter().map(|point| frame.at(self, *point)).collect();
            let class = if line.dashed { "line dashed" } else { "line" };
            svg.polyline(&format!("{class} {}", series_class(line.series)), &points);
            if self.marked {
                for ((x, y), (number, value)) in points.iter().zip(&line.points) {
                    let title = format!("{}: {}, {}", line.name, self.x.text(*number), self.y.text(*value));
                    svg.mark(line.series, (*x, *y), &title);
                }
            }
        }
        self.draw_names(&mut svg, &frame, names);
        svg.finish()
    }

    fn draw_axes(&self, svg: &mut Svg, frame: &Frame) {
        let bottom = HEIGHT - BOTTOM;
        for (tick, text) in &self.y.ticks {
            let y = frame.y(self.y.scale.place(*tick));
            svg.line("grid", (LEFT, y), (frame.right, y));
            svg.text("tick", (LEFT - 6.0, y + 4.0), Anchor::End, text);
        }
        svg.line("axis", (LEFT, bottom), (frame.right, bottom));
        // A text that would run into the one before is left out.
        let mut free = f64::NEG_INFINITY;
        for (tick, text) in &self.x.ticks {
            let x = frame.x(self.x.scale.place(*tick));
            svg.line("axis", (x, bottom), (x, bottom + 4.0));
            let half = text.chars().count() as f64 * CHARACTER_WIDTH / 2.0;
            if x - half > free {
                svg.text("tick", (x, bottom + 17.0), Anchor::Middle, text);
                free = x + half + 4.0;
            }
        }
        svg.text("title", (0.0, 12.0), Anchor::Start, &self.y.title);
        svg.text("title", ((LEFT + frame.right) / 2.0, HEIGHT - 6.0), Anchor::Middle, &self.x.title);
    }

    /// The names stand at the ends of their lines, moved up or down where they would cover each other.
    fn draw_names(&self, svg: &mut Svg, frame: &Frame, width: f64) {
        let ends = self.lines.iter().filter_map(|line| Some((line, frame.at(self, *line.points.last()?))));
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by(|(_, a), (_, b)| a.1.total_cmp(&b.1));
        let wanted: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
        let places = apart(&wanted, LINE_HEIGHT, (TOP, HEIGHT - BOTTOM));
        for ((line, end), y) in ends.iter().zip(places) {
            let class = series_class(line.series);
            let begin = frame.right + 12.0;
            svg.line(&format!("leader {class}"), (end.0 + 5.0, end.1), (begin - 2.0, y));
            svg.text(&format!("name {class}"), (begin, y + 4.0), Anchor::Start, &fitted(line.name, width));
        }
    }
}

impl Axis {
    /// A number as the axis would write it: as its tick, if it is one.
    fn text(&self, number: f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| *tick == number);
        tick.map_or_else(|| super::number::count(number), |(_, text)| text.clone())
    }
}

/// The part of the drawing that the axes enclose.
struct Frame {
    right: f64,
}

impl Frame {
    fn x(&self, place: f64) -> f64 {
        LEFT + place * (self.right - LEFT)
    }

    fn y(&self, place: f64) -> f64 {
        HEIGHT - BOTTOM - place * (HEIGHT - BOTTOM - TOP)
    }

    fn at(&self, plot: &Lines<'_>, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x(plot.x.scale.place(x)), self.y(plot.y.scale.place(y)))
    }
}

/// Places near the wanted ones, which rise, that are `distance` apart and, as far as there is room, within `bounds`.
fn apart(wanted: &[f64], distance: f64, bounds: (f64, f64)) -> Vec<f64> {
    let mut places: Vec<f64> = Vec::with_capacity(wanted.len());
    for place in wanted {
        places.push(places.last().map_or(*place, |last| place.max(last + distance)));
    }
    let mut limit = bounds.1;
    for place in places.iter_mut().rev() {
        *place = place.min(limit);
        limit = *place - distance;
    }
    let mut limit = bounds.0;
    for place in &mut places {
        *place = place.max(limit);
        limit = *place + distance;
    }
    places
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::page::number;

    proptest! {
        #[test]
        fn names_do_not_cover_each_other(mut wanted in prop::collection::vec(0.0..200.0, 0..12)) {
            wanted.sort_by(f64::total_cmp);
            let places = apart(&wanted, 14.0, (0.0, 200.0));
            prop_assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 13.999), "{:?}", places);
            prop_assert!(places.iter().all(|place| (-0.001..=200.001).contains(place)), "{:?}", places);
        }
    }

    #[test]
    fn names_that_have_room_stay() {
        assert_eq!(apart(&[10.0, 50.0, 90.0], 14.0, (0.0, 100.0)), [10.0, 50.0, 90.0]);
        assert_eq!(apart(&[98.0, 99.0], 14.0, (0.0, 100.0)), [86.0, 100.0]);
    }

    #[test]
    fn every_line_has_its_colour_its_name_and_its_points() {
        let line = |series, name, points| Line { series, name, dashed: series == 3, points };
        let plot = Lines {
            label: "rates".into(),
            x: Axis::new("size", Scale::Linear(0.0, 10.0), number::count),
            y: Axis::new("rate", Scale::Log(1.0, 100.0), number::count),
            lines: vec![
                line(0, "one", vec![(0.0, 1.0), (10.0, 100.0)]),
                line(3, "<two>", vec![(0.0, 10.0), (10.0, 99.0)]),
            ],
            marked: true,
        };
        let svg = plot.draw();
        assert!(svg.contains(r#"<path class="line s0" d="M58 258L"#), "{svg}");
        assert!(svg.contains("&lt;two&gt;</text>") && svg.contains("rate, logarithmic"), "{svg}");
        assert!(svg.contains(r#"<path class="line dashed s3""#), "{svg}");
        assert_eq!(svg.matches("mark s3").count(), 2);
        assert!(svg.contains("one: 10, 100</title>"), "{svg}");
    }
}
