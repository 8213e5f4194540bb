//! Random numbers from a seed. They are the same on every machine and in every version.

/// Splitmix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Returns the numbers for one part of a run. Each part has its own sequence, so that an
    /// additional draw in one part changes no other part.
    pub fn of(seed: u64, part: u64) -> Self {
        let mut random = Self(seed ^ part.wrapping_mul(0xD6E8_FEB8_6659_FD93));
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number less than `end`, which must be more than zero.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns a number from `low` to `high`, including both.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns true with a probability of `percent` percent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn among<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn seed_always_gives_the_same_numbers() {
        let mut random = Random::of(7, 1);
        let numbers: Vec<u64> = (0..4).map(|_| random.below(1000)).collect();
        let mut again = Random::of(7, 1);
        assert_eq!(numbers, (0..4).map(|_| again.below(1000)).collect::<Vec<_>>());
        let mut other = Random::of(7, 2);
        assert_ne!(numbers, (0..4).map(|_| other.below(1000)).collect::<Vec<_>>());
    }
}
