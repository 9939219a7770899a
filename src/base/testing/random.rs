//! Numbers that look random and are the same in every run with the same seed.

/// `SplitMix64`, by Steele, Lea and Flood.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The numbers of one place, such as a client of a round: they do not depend on those of other places.
    pub fn of_place(seed: u64, place: [u64; 2]) -> Self {
        let mut random = Self(seed);
        for part in place {
            random.0 = random.bits() ^ part.wrapping_mul(0xd134_2543_de82_ef95);
        }
        random
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number from 0 up to, but not including, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// A place in something of this length.
    pub fn index(&mut self, length: usize) -> usize {
        self.bits() as usize % length
    }

    /// True once in this many times.
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// One of these.
    pub fn among<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.index(choices.len())].clone()
    }

    /// One of the values, each as often as its weight says.
    pub fn weighed<T: Clone>(&mut self, choices: &[(u64, T)]) -> T {
        let mut at = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if at < *weight {
                return choice.clone();
            }
            at -= weight;
        }
        unreachable!("the weights cover all numbers")
    }
}
