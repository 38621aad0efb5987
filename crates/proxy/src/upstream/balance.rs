//! Which of the endpoints that can take a request takes it. Pure but for the random numbers.

use std::cell::Cell;

use fastrand::Rng;

use super::hash::mix;

/// An endpoint that can take a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// Its place in the list of endpoints.
    pub(super) index: usize,
    /// Its weight by its share now. Not 0.
    weight: u64,
    /// The sum of the weights up to and with its own.
    upto: u64,
    /// Whether the request finds out if it is well again.
    pub(super) probe: bool,
}

/// The endpoints that can take a request.
#[derive(Default)]
pub(super) struct Candidates {
    list: Vec<Candidate>,
    /// Whether not all weigh the same.
    weighted: bool,
}

impl Candidates {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.weighted = false;
    }

    pub(super) fn push(&mut self, index: usize, weight: u64, probe: bool) {
        let weight = weight.max(1);
        let upto = self.total() + weight;
        self.weighted |= self.list.first().is_some_and(|first| first.weight != weight);
        self.list.push(Candidate { index, weight, upto, probe });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Those of them whose index `fits`.
    pub(super) fn filtered(&self, fits: impl Fn(usize) -> bool) -> Candidates {
        let mut some = Candidates::default();
        for one in self.list.iter().filter(|one| fits(one.index)) {
            some.push(one.index, one.weight, one.probe);
        }
        some
    }

    /// Of two drawn by weight the one with less `load` for its weight; the first one when both have
    /// the same, so that an idle upstream is shared by weight too. `None` without any.
    pub(super) fn less_loaded(
        &self,
        rng: &mut Rng,
        load: impl Fn(usize) -> u32,
    ) -> Option<Candidate> {
        if self.list.len() < 2 {
            return self.list.first().copied();
        }
        let (first, second) = if self.weighted { self.two_weighted(rng) } else { self.two(rng) };
        let (first, second) = (self.list[first], self.list[second]);
        let first_load = u64::from(load(first.index)) * second.weight;
        let second_load = u64::from(load(second.index)) * first.weight;
        Some(if second_load < first_load { second } else { first })
    }

    /// Two places, not the same, each as likely as any.
    fn two(&self, rng: &mut Rng) -> (usize, usize) {
        let first = rng.usize(..self.list.len());
        let second = rng.usize(..self.list.len() - 1);
        (first, second + usize::from(second >= first))
    }

    /// Two places, not the same, each as likely as its weight says.
    fn two_weighted(&self, rng: &mut Rng) -> (usize, usize) {
        let at = |point: u64| self.list.partition_point(|one| one.upto <= point);
        let first = at(rng.u64(..self.total()));
        let Candidate { weight, upto, .. } = self.list[first];
        // The line of all weights without the piece of the first.
        let point = rng.u64(..self.total() - weight);
        (first, at(if point >= upto - weight { point + weight } else { point }))
    }

    /// The next one by smooth weighted round robin: `credit` is what each has saved up. `None`
    /// without any.
    pub(super) fn in_turn<'a>(&self, credit: impl Fn(usize) -> &'a Cell<i64>) -> Option<Candidate> {
        let mut best: Option<(Candidate, i64)> = None;
        for one in &self.list {
            let saved = &credit(one.index);
            saved.set(saved.get().saturating_add_unsigned(one.weight));
            if best.is_none_or(|(_, most)| saved.get() > most) {
                best = Some((*one, saved.get()));
            }
        }
        let (chosen, saved) = best?;
        credit(chosen.index).set(saved.saturating_sub_unsigned(self.total()));
        Some(chosen)
    }

    /// The one that `key` belongs to, by rendezvous hashing: when one leaves, only its keys move, and
    /// they spread over all others. `seed` is what stands for an endpoint. `None` without any.
    pub(super) fn by_key(&self, key: u64, seed: impl Fn(usize) -> u64) -> Option<Candidate> {
        let score = |one: &&Candidate| mix(key ^ seed(one.index));
        if !self.weighted {
            return self.list.iter().max_by_key(score).copied();
        }
        // The logarithm makes each one win as often as its weight says (Schindelhauer and Schomaker,
        // "Weighted distributed hash tables", 2005). Minimal is maximal above for equal weights.
        let distance = |one: &Candidate| {
            let unit = ((score(&one) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            -unit.ln() / one.weight as f64
        };
        let nearest = |a: &&Candidate, b: &&Candidate| distance(a).total_cmp(&distance(b));
        self.list.iter().min_by(nearest).copied()
    }

    fn total(&self) -> u64 {
        self.list.last().map_or(0, |last| last.upto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::hash::hash_bytes;

    fn candidates(weights: &[u64]) -> Candidates {
        let mut candidates = Candidates::default();
        for (index, weight) in weights.iter().enumerate() {
            candidates.push(index, *weight, false);
        }
        candidates
    }

    fn seeds() -> impl Fn(usize) -> u64 {
        |index| hash_bytes(format!("192.0.2.{index}:80").as_bytes())
    }

    #[test]
    fn of_none_none_is_chosen() {
        let none = candidates(&[]);
        assert!(none.less_loaded(&mut Rng::with_seed(1), |_| 0).is_none());
        assert!(none.in_turn(|_| unreachable!("there is none")).is_none());
        assert!(none.by_key(1, |_| 0).is_none());
    }

    #[test]
    fn of_two_the_less_loaded_is_chosen_always() {
        let (two, mut rng) = (candidates(&[1, 1]), Rng::with_seed(1));
        for _ in 0..100 {
            let chosen = two.less_loaded(&mut rng, |index| [3, 2][index]);
            assert_eq!(chosen.map(|one| one.index), Some(1));
        }
    }

    #[test]
    fn when_all_are_idle_they_are_chosen_by_weight() {
        let (all, mut rng) = (candidates(&[100, 300, 600]), Rng::with_seed(7));
        let mut counts = [0_u32; 3];
        for _ in 0..10_000 {
            counts[all.less_loaded(&mut rng, |_| 0).expect("there are three").index] += 1;
        }
        for (count, expected) in counts.iter().zip([1_000_u32, 3_000, 6_000]) {
            assert!(count.abs_diff(expected) < 200, "{counts:?}");
        }
    }

    #[test]
    fn turns_are_by_weight_and_not_in_a_block() {
        let (all, credit) = (candidates(&[5, 1, 1]), [const { Cell::new(0) }; 3]);
        let turns: Vec<usize> = (0..7)
            .map(|_| all.in_turn(|index| &credit[index]).expect("there are three").index)
            .collect();
        assert_eq!(turns, [0, 0, 1, 0, 2, 0, 0]);
    }

    #[test]
    fn only_the_keys_of_an_endpoint_that_leaves_move() {
        for weights in [[1; 5], [1, 2, 3, 4, 5]] {
            let all = candidates(&weights);
            let without = all.filtered(|index| index != 2);
            let mut moved = [0; 5];
            for key in (0..10_000).map(|key: u64| hash_bytes(&key.to_le_bytes())) {
                let before = all.by_key(key, seeds()).expect("there are five").index;
                let after = without.by_key(key, seeds()).expect("there are four").index;
                assert!(before == after || before == 2);
                moved[after] += usize::from(before == 2);
            }
            assert!((0..5).all(|index| index == 2 || moved[index] > 100), "{moved:?}");
        }
    }

    #[test]
    fn keys_spread_by_weight() {
        let all = candidates(&[1, 1, 2]);
        let mut counts = [0_u32; 3];
        for key in (0..20_000).map(|key: u64| hash_bytes(&key.to_le_bytes())) {
            counts[all.by_key(key, seeds()).expect("there are three").index] += 1;
        }
        for (count, expected) in counts.iter().zip([5_000_u32, 5_000, 10_000]) {
            assert!(count.abs_diff(expected) < 400, "{counts:?}");
        }
    }
}
