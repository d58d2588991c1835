//! How many bytes values have: all the same, or by a distribution.

use std::fmt;
use std::str::FromStr;

/// Bytes per value.
///
/// Its text is what `--value-size` takes:
///
/// | text | values have |
/// |------|-------------|
/// | `1024` | 1024 bytes |
/// | `64KiB`, `64K` | 65,536 bytes; `M` and `MiB` likewise |
/// | `100..10000` | 100 to 10,000 bytes, both included, all equally likely |
/// | `pareto` | sizes by the generalized Pareto distribution that Cao et al. fitted to the values of Facebook's ZippyDB: shape 0.2615, scale 25.45, which makes 34.5 bytes on average |
/// | `pareto:K,SIGMA` | the same distribution with shape `K` and scale `SIGMA` |
/// | `pareto:K,SIGMA,MAX` | the same, and those of more than `MAX` bytes have `MAX`; 1 MiB if it is not given |
///
/// The generalized Pareto distribution of sizes `x` from zero on is `P(size <= x) = 1 - (1 + K x / SIGMA)^(-1/K)`; its
/// average is `SIGMA / (1 - K)`. Sizes are whole bytes, rounded up. Source: Cao, Dong, Vemuri, Du, "Characterizing, Modeling,
/// and Benchmarking RocksDB Key-Value Workloads at Facebook", FAST 2020; its parameters are those that db_bench's
/// `mixgraph` calls `value_k` and `value_sigma`.
///
/// ```
/// use tamarack_bench::ValueSize;
///
/// let sizes: ValueSize = "100..10000".parse()?;
/// assert_eq!((sizes.largest(), sizes.mean()), (10_000, 5050.0));
/// assert_eq!("pareto:0.2615,25.45,1048576".parse(), "pareto".parse::<ValueSize>());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueSize {
    /// So many.
    Fixed(usize),
    /// From the first to the second, both included, all equally likely.
    Uniform(usize, usize),
    /// By the generalized Pareto distribution.
    Pareto(Pareto),
}

/// A generalized Pareto distribution of sizes from zero on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    /// Above zero and below one: the larger, the longer the tail. From one on there would be no average.
    shape: f64,
    /// In bytes.
    scale: f64,
    /// What is more has so many bytes.
    largest: usize,
}

impl Pareto {
    /// Of the values of ZippyDB.
    const ZIPPYDB: Self = Self { shape: 0.2615, scale: 25.45, largest: 1 << 20 };

    /// The size below which the part `uniform` of all sizes lies.
    fn quantile(&self, uniform: f64) -> usize {
        let size = self.scale * ((1.0 - uniform).powf(-self.shape) - 1.0) / self.shape;
        (size.ceil() as usize).min(self.largest)
    }
}

impl ValueSize {
    /// The size that belongs to `random`, a number all of whose bits are random.
    pub(crate) fn draw(&self, random: u64) -> usize {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Uniform(least, largest) => {
                let sizes = (largest - least) as u128 + 1;
                least + ((u128::from(random) * sizes) >> 64) as usize
            }
            Self::Pareto(pareto) => pareto.quantile((random >> 11) as f64 / (1_u64 << 53) as f64),
        }
    }

    /// The size, if all values have the same.
    pub fn fixed(&self) -> Option<usize> {
        if let Self::Fixed(bytes) = self { Some(*bytes) } else { None }
    }

    /// No value has more bytes.
    pub fn largest(&self) -> usize {
        match self {
            Self::Fixed(largest) | Self::Uniform(_, largest) => *largest,
            Self::Pareto(pareto) => pareto.largest,
        }
    }

    /// Bytes of a value on average, as the distribution has it: not of those that a run has drawn.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(bytes) => *bytes as f64,
            Self::Uniform(least, largest) => (*least as f64 + *largest as f64) / 2.0,
            Self::Pareto(Pareto { shape, scale, largest }) => {
                // Of what the largest size cuts off, only its own bytes remain.
                let beyond = (1.0 + shape * *largest as f64 / scale).powf(1.0 - 1.0 / shape);
                scale / (1.0 - shape) * (1.0 - beyond)
            }
        }
    }
}

impl fmt::Display for ValueSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "{bytes}"),
            Self::Uniform(least, largest) => write!(f, "{least}..{largest}"),
            Self::Pareto(Pareto { shape, scale, largest }) => write!(f, "pareto:{shape},{scale},{largest}"),
        }
    }
}

impl FromStr for ValueSize {
    /// What would do.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "pareto" {
            return Ok(Self::Pareto(Pareto::ZIPPYDB));
        }
        if let Some(parameters) = text.strip_prefix("pareto:") {
            return pareto(parameters)
                .map(Self::Pareto)
                .ok_or("it takes pareto:K,SIGMA or pareto:K,SIGMA,MAX with 0 < K < 1 and 0 < SIGMA".into());
        }
        if let Some((least, largest)) = text.split_once("..") {
            return match (bytes(least), bytes(largest)) {
                (Some(least), Some(largest)) if least <= largest => Ok(Self::Uniform(least, largest)),
                _ => Err("a range is LEAST..LARGEST, in bytes".into()),
            };
        }
        let fixed = bytes(text).map(Self::Fixed);
        fixed.ok_or_else(|| {
            "it takes a number of bytes, also as 4K or 4KiB, LEAST..LARGEST, pareto or pareto:K,SIGMA".into()
        })
    }
}

/// A number of bytes, or one of KiB or MiB with that behind it.
fn bytes(text: &str) -> Option<usize> {
    const UNITS: [(&str, usize); 4] = [("KiB", 1 << 10), ("K", 1 << 10), ("MiB", 1 << 20), ("M", 1 << 20)];
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((text.strip_suffix(unit)?, *bytes)));
    let (number, unit) = unit.unwrap_or((text, 1));
    number.parse::<usize>().ok()?.checked_mul(unit)
}

fn pareto(parameters: &str) -> Option<Pareto> {
    let mut parameters = parameters.split(',');
    let shape = parameters.next()?.parse().ok().filter(|shape: &f64| *shape > 0.0 && *shape < 1.0)?;
    let scale = parameters.next()?.parse().ok().filter(|scale: &f64| *scale > 0.0 && scale.is_finite())?;
    let largest = match parameters.next() {
        Some(largest) => largest.parse().ok()?,
        None => Pareto::ZIPPYDB.largest,
    };
    parameters.next().is_none().then_some(Pareto { shape, scale, largest })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::keys::Random;

    fn any_size() -> impl Strategy<Value = ValueSize> {
        let pareto = (1_u32..1000, 1_u32..100_000, 0_usize..1 << 14).prop_map(|(shape, scale, largest)| {
            let (shape, scale) = (f64::from(shape) / 1000.0, f64::from(scale) / 10.0);
            ValueSize::Pareto(Pareto { shape, scale, largest })
        });
        prop_oneof![
            any::<usize>().prop_map(ValueSize::Fixed),
            (any::<usize>(), any::<usize>()).prop_map(|(a, b)| ValueSize::Uniform(a.min(b), a.max(b))),
            pareto.prop_filter("the shape is below one", |size| size.mean().is_finite()),
        ]
    }

    proptest! {
        #[test]
        fn no_size_is_out_of_bounds(size in any_size(), random in any::<u64>()) {
            let drawn = size.draw(random);
            prop_assert!(drawn <= size.largest());
            if let ValueSize::Uniform(least, _) = size {
                prop_assert!(drawn >= least);
            }
        }

        #[test]
        fn its_text_says_all(size in any_size()) {
            prop_assert_eq!(size.to_string().parse(), Ok(size));
        }

        #[test]
        fn the_larger_the_number_the_larger_the_size(size in any_size(), a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(size.draw(a.min(b)) <= size.draw(a.max(b)));
        }
    }

    fn draws(size: ValueSize) -> Vec<usize> {
        const DRAWS: usize = 200_000;
        let mut random = Random::new(1);
        (0..DRAWS).map(|_| size.draw(random.number())).collect()
    }

    /// How many standard deviations the count of `drawn` that are at most `bound` is from the part that there should be.
    fn deviation(drawn: &[usize], bound: usize, part: f64) -> f64 {
        let found = drawn.iter().filter(|size| **size <= bound).count() as f64;
        let count = drawn.len() as f64;
        (found - count * part) / (count * part * (1.0 - part)).sqrt()
    }

    #[test]
    fn uniform_sizes_are_equally_likely() {
        let drawn = draws(ValueSize::Uniform(100, 109));
        for (index, bound) in (100..109).enumerate() {
            let off = deviation(&drawn, bound, (index + 1) as f64 / 10.0);
            assert!(off.abs() < 4.0, "up to {bound}: {off} standard deviations off");
        }
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&100), Some(&109)));
    }

    #[test]
    fn skewed_sizes_follow_the_published_distribution() {
        let size: ValueSize = "pareto".parse().expect("it is one");
        let drawn = draws(size);
        for bound in [5, 10, 25, 50, 100, 200, 400] {
            let part = 1.0 - (1.0 + 0.2615 * f64::from(bound) / 25.45).powf(-1.0 / 0.2615);
            let off = deviation(&drawn, bound as usize, part);
            assert!(off.abs() < 4.0, "up to {bound}: {off} standard deviations off");
        }
        assert!((size.mean() - 25.45 / (1.0 - 0.2615)).abs() < 1e-6, "{}", size.mean());
    }

    #[test]
    fn the_mean_knows_what_is_cut_off() {
        let size: ValueSize = "pareto:0.5,100,150".parse().expect("it is one");
        let drawn = draws(size);
        let mean = drawn.iter().sum::<usize>() as f64 / drawn.len() as f64;
        // Sizes are rounded up, by half a byte on average.
        assert!((mean - size.mean() - 0.5).abs() < 0.6, "{mean}, not {}", size.mean());
        assert_eq!(drawn.iter().max(), Some(&150));
    }

    #[test]
    fn sizes_may_have_units() {
        let fixed = [("64KiB", 65_536), ("4K", 4096), ("1MiB", 1 << 20), ("2M", 2 << 20), ("0K", 0)];
        for (text, bytes) in fixed {
            assert_eq!(text.parse(), Ok(ValueSize::Fixed(bytes)), "{text}");
        }
        assert_eq!("100..64K".parse(), Ok(ValueSize::Uniform(100, 65_536)));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "",
            "-1",
            "1k",
            "1 K",
            "K",
            "1kB",
            "99999999999999999M",
            "2K..1K",
            "10..",
            "..10",
            "10..9",
            "pareto:",
            "pareto:1,5",
            "pareto:0,5",
        ] {
            assert!(text.parse::<ValueSize>().is_err(), "{text}");
        }
        for text in ["pareto:0.5", "pareto:0.5,0", "pareto:0.5,inf", "pareto:0.5,1,x", "pareto:0.5,1,2,3"] {
            assert!(text.parse::<ValueSize>().is_err(), "{text}");
        }
    }
}
