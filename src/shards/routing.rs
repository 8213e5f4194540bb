//! Chooses the shard for a message, without I/O. The input is the state of the shards, and the
//! output is a position in their list.

use super::{health::Fitness, id::Id};

/// The rule that chooses a shard for each enqueue. Healthy shards have been reached, answer within
/// a second, and are not draining. Another shard is chosen only if no shard is healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// Uses the shard with the fewest running enqueues of this process. Shards with equal numbers
    /// take turns. A slow shard therefore receives fewer enqueues. Callers return to a shard that
    /// has just answered them, so that callers that share a row keep sharing rows.
    #[default]
    LeastLoaded,
    /// Uses the shards in rotation, call by call, even if some calls take long.
    RoundRobin,
    /// Uses the same shard for the same number, in every process and for every order of the
    /// connection strings. An added shard takes over its part of the numbers, and no other number
    /// moves. While the shard of a number is not healthy, the number's next shard is used.
    ///
    /// This is rendezvous hashing: the chosen shard has the largest `mix(hash ^ mix(number))`,
    /// where `mix` is the final step of `SplitMix64`.
    Hash(u64),
}

impl Routing {
    /// Routes by the hash of a key: the same bytes lead to the same shard in every process and
    /// version (FNV-1a, 64 bits).
    #[must_use]
    pub fn by_key(key: impl AsRef<[u8]>) -> Self {
        let hash = key
            .as_ref()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        Self::Hash(hash)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub id: Id,
    pub fitness: Fitness,
    /// The number of running enqueues.
    pub load: usize,
}

/// Returns the position of the shard for a call, or `None` if no shard can be used. `turn`
/// increases by one with each call.
pub(super) fn choose(shards: &[Known], routing: Routing, turn: usize) -> Option<usize> {
    let askable = |known: &&Known| known.fitness < Fitness::Down;
    let fitness = shards.iter().filter(askable).map(|known| known.fitness).min()?;
    let fit = || shards.iter().enumerate().filter(move |(_, known)| known.fitness == fitness);
    let count = fit().count();
    let chosen = match routing {
        Routing::RoundRobin => fit().nth(turn % count),
        // Shards with equal numbers of enqueues take turns.
        Routing::LeastLoaded => {
            let behind = |at: usize| (at + count - turn % count) % count;
            fit().enumerate().min_by_key(|(at, (_, known))| (known.load, behind(*at))).map(|(_, found)| found)
        }
        Routing::Hash(hash) => fit().max_by_key(|(_, known)| (weight(hash, known.id), known.id)),
    };
    chosen.map(|(place, _)| place)
}

fn weight(hash: u64, shard: Id) -> u64 {
    mix(hash ^ mix(shard.0.into()))
}

/// The final step of `SplitMix64`.
fn mix(mut bits: u64) -> u64 {
    bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shards(fitness: &[Fitness]) -> Vec<Known> {
        let id = |nr: usize| Id((nr as u32 + 1) * 77_777);
        fitness.iter().enumerate().map(|(nr, fitness)| Known { id: id(nr), fitness: *fitness, load: 0 }).collect()
    }

    fn turns(shards: &[Known], routing: Routing) -> Vec<Option<usize>> {
        (0..6).map(|turn| choose(shards, routing, turn)).collect()
    }

    use Fitness::{Down, Drained, Drains, Healthy, Unresponsive};

    #[test]
    fn calls_go_round_those_that_are_well() {
        let all = shards(&[Healthy, Healthy, Healthy]);
        for routing in [Routing::RoundRobin, Routing::LeastLoaded] {
            assert_eq!(turns(&all, routing), [0, 1, 2, 0, 1, 2].map(Some));
        }
        assert_eq!(turns(&shards(&[Healthy, Down, Healthy]), Routing::RoundRobin), [0, 2, 0, 2, 0, 2].map(Some));
        assert_eq!(turns(&shards(&[Unresponsive, Drains, Healthy]), Routing::RoundRobin), [Some(2); 6]);
    }

    #[test]
    fn unresponsive_and_draining_shards_are_asked_only_as_last_resort() {
        for routing in [Routing::RoundRobin, Routing::LeastLoaded, Routing::Hash(7)] {
            assert_eq!(turns(&shards(&[Unresponsive, Drains, Down]), routing), [Some(0); 6]);
            assert_eq!(turns(&shards(&[Down, Drains, Drained]), routing), [Some(1); 6]);
            assert_eq!(turns(&shards(&[Down, Drained]), routing), [None; 6]);
            assert_eq!(turns(&[], routing), [None; 6]);
        }
    }

    #[test]
    fn the_least_loaded_is_found_wherever_it_is() {
        let mut all = shards(&[Healthy, Healthy, Healthy]);
        (all[0].load, all[1].load, all[2].load) = (3, 5, 2);
        assert_eq!(turns(&all, Routing::LeastLoaded), [Some(2); 6]);
        all[0].load = 2;
        assert_eq!(turns(&all, Routing::LeastLoaded), [0, 2, 2, 0, 2, 2].map(Some));
        all[2].fitness = Unresponsive;
        assert_eq!(turns(&all, Routing::LeastLoaded), [Some(0); 6]);
    }

    #[test]
    fn shards_share_hashes_evenly_whatever_their_order() {
        let all = shards(&[Healthy; 5]);
        let mut reversed = all.clone();
        reversed.reverse();
        let mut counts = [0; 5];
        for hash in 0..5000 {
            let at = choose(&all, Routing::Hash(hash), 0).expect("one");
            assert_eq!(choose(&reversed, Routing::Hash(hash), 3), Some(4 - at));
            counts[at] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }

    #[test]
    fn added_shard_takes_its_part_and_nothing_else_moves() {
        let all = shards(&[Healthy; 5]);
        let mut moved = 0;
        for hash in 0..5000 {
            let before = choose(&all[..4], Routing::Hash(hash), 0);
            let after = choose(&all, Routing::Hash(hash), 0);
            if before != after {
                assert_eq!(after, Some(4));
                moved += 1;
            }
        }
        assert!((800..1200).contains(&moved), "a fifth of 5,000, not {moved}");
    }

    #[test]
    fn hashes_of_a_down_shard_spread_over_all_others() {
        let mut all = shards(&[Healthy; 5]);
        let of_first: Vec<u64> = (0..5000).filter(|hash| choose(&all, Routing::Hash(*hash), 0) == Some(0)).collect();
        all[0].fitness = Down;
        let mut counts = [0; 5];
        for hash in &of_first {
            counts[choose(&all, Routing::Hash(*hash), 0).expect("another")] += 1;
        }
        assert!(counts[0] == 0 && counts[1..].iter().all(|count| *count > of_first.len() / 8), "{counts:?}");
    }

    #[test]
    fn a_key_is_the_same_number_for_ever() {
        assert_eq!(Routing::by_key(""), Routing::Hash(0xcbf2_9ce4_8422_2325));
        assert_eq!(Routing::by_key("foobar"), Routing::Hash(0x8594_4171_f739_67e8)); // from the test vectors of FNV's authors
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf); // SplitMix64's first number of the seed 0
    }
}
