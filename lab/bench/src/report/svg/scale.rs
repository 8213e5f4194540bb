//! From figures to places on the page.

/// An axis from `least` to `most`, `length` pixels long.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    logarithmic: bool,
    least: f64,
    most: f64,
    length: f64,
}

impl Scale {
    /// From nought to the largest of the values.
    pub fn linear(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        Self { logarithmic: false, least: 0.0, most: if most > 0.0 { most } else { 1.0 }, length }
    }

    /// From the power of ten below the smallest of the values, which stays visible, to the largest.
    pub fn logarithmic(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| value.is_finite() && *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        if most <= 0.0 {
            (least, most) = (1.0, 10.0);
        }
        let least = 10_f64.powf((least * 0.7).log10().floor());
        Self { logarithmic: true, least, most: most.max(least * 10.0), length }
    }

    /// From the power of ten that the smallest of the values reaches to the largest.
    pub fn decades(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let scale = Self::logarithmic_from(values, length);
        let least = 10_f64.powf(scale.least.log10().floor());
        Self { least, most: scale.most.max(least * 10.0), ..scale }
    }

    /// From the smallest of the values to the largest.
    pub fn logarithmic_from(values: impl Iterator<Item = f64>, length: f64) -> Self {
        let values: Vec<f64> = values.filter(|value| value.is_finite() && *value > 0.0).collect();
        let least = values.iter().copied().reduce(f64::min).unwrap_or(1.0);
        let most = values.into_iter().fold(least * 1.1, f64::max);
        Self { logarithmic: true, least, most, length }
    }

    /// Pixels from the axis' beginning; what is off the axis stays at its end.
    pub fn at(&self, value: f64) -> f64 {
        let share = match self.logarithmic {
            true => (value.max(self.least) / self.least).log10() / (self.most / self.least).log10(),
            false => (value - self.least) / (self.most - self.least),
        };
        share.clamp(0.0, 1.0) * self.length
    }

    /// Round figures that are at least so many pixels apart.
    pub fn ticks(&self, apart: f64) -> Vec<f64> {
        let mut ticks = Vec::new();
        if self.logarithmic {
            let decade = self.at(self.least * 10.0);
            let step = (apart / decade).ceil().max(1.0) as i32;
            let mut tick = self.least;
            while tick <= self.most * 1.001 {
                ticks.push(tick);
                tick *= 10_f64.powi(step);
            }
        } else {
            let finest = self.most * apart / self.length;
            let magnitude = 10_f64.powf(finest.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| step * magnitude).find(|step| *step >= finest);
            let step = step.unwrap_or(self.most);
            let count = (self.most / step + 0.001).floor() as usize;
            ticks.extend((0..=count).map(|at| at as f64 * step));
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::Scale;

    #[test]
    fn ticks_are_round_and_do_not_crowd() {
        let scale = Scale::logarithmic([300.0, 1.4e6].into_iter(), 150.0);
        assert_eq!(scale.ticks(20.0), [100.0, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(scale.ticks(40.0).len(), 3);
        assert_eq!(Scale::decades([119.0, 8e3].into_iter(), 150.0).ticks(40.0), [100.0, 1e3]);
        assert_eq!(Scale::linear([169.0].into_iter(), 150.0).ticks(40.0), [0.0, 50.0, 100.0, 150.0]);
    }

    #[test]
    fn nothing_leaves_the_axis() {
        for scale in [
            Scale::logarithmic([0.0, f64::NAN].into_iter(), 100.0),
            Scale::logarithmic_from([0.0, f64::NAN].into_iter(), 100.0),
            Scale::logarithmic_from([0.05, 20.0].into_iter(), 100.0),
            Scale::decades([0.05, 20.0].into_iter(), 100.0),
            Scale::decades(std::iter::empty(), 100.0),
            Scale::linear(std::iter::empty(), 100.0),
        ] {
            for value in [0.0, 1.0, 1e9] {
                assert!((0.0..=100.0).contains(&scale.at(value)), "{scale:?}");
            }
        }
    }
}
