//! Numbers as people read them: three digits that count, and a unit.

/// A count with a factor: `0.85`, `12.3`, `456`, `7.89 k`, `1.2 M`.
pub fn count(number: f64) -> String {
    scaled(number, &[(1e9, " G"), (1e6, " M"), (1e3, " k"), (1.0, "")])
}

/// Without a factor: `12.3`, `1,234`.
pub fn plain(number: f64) -> String {
    if number >= 999.5 { whole(number.round() as u64) } else { digits(number) }
}

/// A ratio: `1.05`, `12.3`.
pub fn ratio(number: f64) -> String {
    digits(number)
}

/// A part as a percentage: `85 %`, `123 %`.
pub fn percent(part: f64) -> String {
    format!("{} %", digits(100.0 * part))
}

/// Bytes of memory in MiB: `85.2 MiB`, `1234 MiB`.
pub fn memory(bytes: u64) -> String {
    format!("{} MiB", digits(bytes as f64 / f64::from(1 << 20)))
}

/// A time given in microseconds: `850 ns`, `1.2 µs`, `3.45 ms`, `12 s`.
pub fn micros(number: f64) -> String {
    scaled(number, &[(1e6, " s"), (1e3, " ms"), (1.0, " µs"), (1e-3, " ns")])
}

/// A time given in seconds.
pub fn seconds(number: f64) -> String {
    micros(number * 1e6)
}

/// A size: `64 B`, `1 KiB`, `100 kB` where it is no whole number of KiB.
pub fn size(bytes: f64) -> String {
    let kib = bytes / 1024.0;
    let mib = kib / 1024.0;
    match bytes {
        _ if mib >= 1.0 && mib.fract() == 0.0 => format!("{mib} MiB"),
        _ if kib >= 1.0 && kib.fract() == 0.0 => format!("{kib} KiB"),
        _ => scaled(bytes, &[(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")]),
    }
}

/// A whole number with its thousands apart: `1,234,567`.
pub fn whole(number: u64) -> String {
    let digits = number.to_string();
    let first = (digits.len() - 1) % 3 + 1;
    let (head, rest) = digits.split_at(first);
    let groups = rest.as_bytes().chunks(3).map(String::from_utf8_lossy);
    groups.fold(head.to_owned(), |text, group| text + "," + &group)
}

/// In the largest unit of which there is one at least, or the last.
fn scaled(number: f64, units: &[(f64, &str)]) -> String {
    // What rounds up to a thousand has the next unit.
    let unit = units.iter().find(|(factor, _)| number.abs() >= 0.9995 * factor).or(units.last());
    let (factor, name) = unit.unwrap_or(&(1.0, ""));
    digits(number / factor) + name
}

/// Three digits that count, without zeros at the end of a fraction.
fn digits(number: f64) -> String {
    let decimals = match number.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 || size == 0.0 => 2,
        size => (2 - size.log10().floor() as i32).clamp(3, 9) as usize,
    };
    let text = format!("{number:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        let counts =
            [0.0, 0.0012345, 0.03, 0.5, 1.0, 9.996, 99.96, 999.4, 999.6, 1234.0, 123_456.0, 2.5e6, 999_999.0];
        let texts = [
            "0", "0.00123", "0.03", "0.5", "1", "10", "100", "999", "1 k", "1.23 k", "123 k", "2.5 M", "1 M",
        ];
        for (number, text) in counts.into_iter().zip(texts) {
            assert_eq!(count(number), text);
        }
        let times = [(0.85, "850 ns"), (1.2, "1.2 µs"), (3456.0, "3.46 ms"), (12e6, "12 s")];
        for (number, text) in times {
            assert_eq!(micros(number), text);
        }
        assert_eq!((plain(1.5), plain(1234.4)), ("1.5".into(), "1,234".into()));
        assert_eq!(seconds(0.25), "250 ms");
        assert_eq!(
            (percent(0.854), percent(1.0), memory(1300 << 10)),
            ("85.4 %".into(), "100 %".into(), "1.27 MiB".into())
        );
        assert_eq!((ratio(1.05), ratio(12.345)), ("1.05".into(), "12.3".into()));
    }

    #[test]
    fn sizes_are_binary_where_they_are_whole() {
        let sizes = [(64.0, "64 B"), (1024.0, "1 KiB"), (262_144.0, "256 KiB"), (1_048_576.0, "1 MiB")];
        for (bytes, text) in sizes.into_iter().chain([(100_000.0, "100 kB"), (1500.0, "1.5 kB")]) {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn thousands_are_apart() {
        let numbers = [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")];
        for (number, text) in numbers {
            assert_eq!(whole(number), text);
        }
    }
}
