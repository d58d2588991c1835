//! Scales of a plot's axes: which place a number has, and which numbers stand beside the axis.

/// A scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// From the first number to the second.
    Linear(f64, f64),
    /// The same, by their logarithms; both are above zero.
    Log(f64, f64),
}

impl Scale {
    /// From zero to a round number that is not below any of these.
    pub fn from_zero(numbers: impl Iterator<Item = f64>) -> Self {
        let largest = numbers.fold(0.0, f64::max);
        let step = round_step(if largest > 0.0 { largest } else { 1.0 });
        Self::Linear(0.0, ((largest / step).ceil() * step).max(step))
    }

    /// By logarithms, over these numbers, as far as they are above zero; from and to one, two or five times a power of ten.
    pub fn log(numbers: impl Iterator<Item = f64>) -> Self {
        let above = numbers.filter(|number| *number > 0.0);
        let (least, largest) =
            above.fold((f64::INFINITY, 0.0_f64), |(least, largest), n| (least.min(n), largest.max(n)));
        if largest == 0.0 {
            return Self::Log(1.0, 10.0);
        }
        let (from, to) = (round_down(least), round_up(largest));
        Self::Log(from, if to > from { to } else { from * 10.0 })
    }

    /// Logarithmic if the numbers lie so far apart that the small ones could not be told from zero otherwise.
    pub fn fitting(numbers: impl Iterator<Item = f64> + Clone) -> Self {
        const FAR_APART: f64 = 50.0;
        let above = numbers.clone().filter(|number| *number > 0.0);
        let least = above.clone().fold(f64::INFINITY, f64::min);
        if above.fold(0.0, f64::max) > FAR_APART * least {
            Self::log(numbers)
        } else {
            Self::from_zero(numbers)
        }
    }

    /// Whether it is logarithmic.
    pub fn is_log(&self) -> bool {
        matches!(self, Self::Log(..))
    }

    /// The place of a number: 0 at the beginning of the axis, 1 at its end. What is beyond is at the end.
    pub fn place(&self, number: f64) -> f64 {
        let place = match *self {
            Self::Linear(from, to) => (number - from) / (to - from),
            Self::Log(from, to) => (number.max(from).ln() - from.ln()) / (to.ln() - from.ln()),
        };
        place.clamp(0.0, 1.0)
    }

    /// Numbers to stand beside the axis.
    pub fn ticks(&self) -> Vec<f64> {
        match *self {
            Self::Linear(from, to) => {
                let step = round_step(to - from);
                let first = (from / step).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                (first..=last).map(|index| index as f64 * step).collect()
            }
            Self::Log(from, to) => {
                let decades = (to / from).log10();
                let factors: &[f64] = match decades {
                    few if few <= 1.7 => &[1.0, 2.0, 5.0],
                    _ => &[1.0],
                };
                let exponents = from.log10().floor() as i32..=to.log10().ceil() as i32;
                let every = if decades > 7.0 { 2 } else { 1 };
                let powers =
                    exponents.filter(|exponent| exponent % every == 0).map(|exponent| 10_f64.powi(exponent));
                let all = powers.flat_map(|power| factors.iter().map(move |factor| factor * power));
                all.filter(|tick| *tick >= from * 0.999 && *tick <= to * 1.001).collect()
            }
        }
    }
}

/// One, two or five times a power of ten, so that there are four to ten steps up to `length`.
fn round_step(length: f64) -> f64 {
    let power = 10_f64.powf((length / 4.0).log10().floor());
    let steps = [5.0, 2.0, 1.0].map(|factor| factor * power);
    steps.into_iter().find(|step| *step * 4.0 <= length * 1.000_001).unwrap_or(power)
}

fn round_down(number: f64) -> f64 {
    let power = 10_f64.powf(number.log10().floor());
    [5.0, 2.0].into_iter().map(|factor| factor * power).find(|round| *round <= number).unwrap_or(power)
}

fn round_up(number: f64) -> f64 {
    let power = 10_f64.powf(number.log10().floor());
    let rounds = [1.0, 2.0, 5.0].map(|factor| factor * power);
    rounds.into_iter().find(|round| *round >= number * 0.999_999).unwrap_or(10.0 * power)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_on_their_scale(numbers in prop::collection::vec(1e-3..1e9, 1..20)) {
            for scale in [Scale::from_zero(numbers.iter().copied()), Scale::log(numbers.iter().copied())] {
                let (Scale::Linear(from, to) | Scale::Log(from, to)) = scale;
                for number in &numbers {
                    prop_assert!(from <= number * 1.000_001 && *number <= to * 1.000_001, "{:?}", scale);
                }
                let ticks = scale.ticks();
                prop_assert!((2..=11).contains(&ticks.len()), "{:?} {:?}", scale, ticks);
                prop_assert!(ticks.is_sorted_by(|a, b| scale.place(*a) < scale.place(*b)), "{:?}", ticks);
            }
        }
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(Scale::from_zero([430.0].into_iter()), Scale::Linear(0.0, 500.0));
        assert_eq!(Scale::Linear(0.0, 500.0).ticks(), [0.0, 100.0, 200.0, 300.0, 400.0, 500.0]);
        assert_eq!(Scale::log([3.0, 4000.0].into_iter()), Scale::Log(2.0, 5000.0));
        assert_eq!(Scale::Log(2.0, 5000.0).ticks(), [10.0, 100.0, 1000.0]);
        assert_eq!(Scale::Log(1.0, 20.0).ticks(), [1.0, 2.0, 5.0, 10.0, 20.0]);
    }

    #[test]
    fn places_are_between_nought_and_one() {
        assert_eq!(Scale::Linear(0.0, 10.0).place(5.0), 0.5);
        assert!((Scale::Log(1.0, 100.0).place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!(Scale::Log(1.0, 100.0).place(0.0), 0.0);
        assert_eq!(Scale::Linear(0.0, 10.0).place(11.0), 1.0);
    }

    #[test]
    fn what_lies_far_apart_is_shown_by_logarithms() {
        assert!(Scale::fitting([1.0, 100.0].into_iter()).is_log());
        assert!(!Scale::fitting([0.0, 3.0, 100.0].into_iter()).is_log());
        assert!(!Scale::fitting(std::iter::empty()).is_log());
    }
}
