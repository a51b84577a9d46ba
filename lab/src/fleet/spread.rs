//! How the requests of one caller are spread over the gateways of a fleet and over time. Nothing is
//! drawn: the same spread gives the same list.

use std::time::Duration;

/// A way to spread requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// To each gateway in turn, evenly in time, as a good balancer does.
    Even,
    /// Evenly in time, half of them to the first gateway, half of the rest to the second, and so
    /// on; the last has as many as the one before it.
    Skewed,
    /// A quarter second's worth at once, to each gateway in turn.
    Bursts,
    /// Evenly in time and all to one gateway, each second to the next, as a client does that keeps
    /// its connection until it is closed.
    Moving,
}

/// How long the requests of a burst have to last.
const BURST: Duration = Duration::from_millis(250);

/// When and where a request is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Time since the start.
    pub after: Duration,
    /// The gateway's place.
    pub gateway: usize,
}

impl Spread {
    /// Every way.
    pub const ALL: [Self; 4] = [Self::Even, Self::Skewed, Self::Bursts, Self::Moving];

    /// The way in a word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Even => "even",
            Self::Skewed => "skewed",
            Self::Bursts => "bursts",
            Self::Moving => "moving",
        }
    }

    /// So many requests to so many gateways, in the order in which they are due; none where there
    /// is no gateway or no rate.
    #[must_use]
    pub fn requests(self, requests: usize, per_second: u32, gateways: usize) -> Vec<Due> {
        if gateways == 0 || per_second == 0 {
            return Vec::new();
        }
        (0..requests).map(|place| self.due(place, per_second, gateways)).collect()
    }

    fn due(self, place: usize, per_second: u32, gateways: usize) -> Due {
        let even = after(place, per_second);
        let in_turn = place % gateways;
        match self {
            Self::Even => Due { after: even, gateway: in_turn },
            Self::Skewed => Due { after: even, gateway: halving(place, gateways) },
            Self::Bursts => Due { after: BURST * bursts_before(even), gateway: in_turn },
            Self::Moving => Due { after: even, gateway: in_second(even, gateways) },
        }
    }
}

/// When a request is due that is evenly spread.
fn after(place: usize, per_second: u32) -> Duration {
    let place = u64::try_from(place).unwrap_or(u64::MAX);
    let (seconds, rest) = (place / u64::from(per_second), place % u64::from(per_second));
    Duration::from_secs(seconds) + Duration::from_secs(rest) / per_second
}

/// Every second place is for the first gateway, every second of the rest for the second, and so on:
/// the number of zeros at the end of the place, counted from 1.
fn halving(place: usize, gateways: usize) -> usize {
    let zeros = usize::try_from((place + 1).trailing_zeros()).unwrap_or(usize::MAX);
    zeros.min(gateways - 1)
}

fn bursts_before(after: Duration) -> u32 {
    u32::try_from(after.as_nanos() / BURST.as_nanos()).unwrap_or(u32::MAX)
}

fn in_second(after: Duration, gateways: usize) -> usize {
    usize::try_from(after.as_secs()).unwrap_or(usize::MAX) % gateways
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATEWAYS: usize = 8;

    /// Four seconds of 512 requests a second.
    fn requests(spread: Spread) -> Vec<Due> {
        spread.requests(2_048, 512, GATEWAYS)
    }

    fn shares(requests: &[Due]) -> [usize; GATEWAYS] {
        std::array::from_fn(|gateway| requests.iter().filter(|due| due.gateway == gateway).count())
    }

    #[test]
    fn all_are_due_in_order_and_in_their_time() {
        for spread in Spread::ALL {
            let requests = requests(spread);
            assert_eq!(requests.len(), 2_048, "{spread:?}");
            assert!(requests.is_sorted_by_key(|due| due.after), "{spread:?}");
            let last = requests.last().unwrap().after;
            assert!(last < Duration::from_secs(4), "{spread:?}: {last:?}");
            assert!(requests.iter().all(|due| due.gateway < GATEWAYS), "{spread:?}");
        }
    }

    #[test]
    fn even_gives_each_gateway_as_much_at_even_distances() {
        let requests = requests(Spread::Even);
        assert_eq!(shares(&requests), [256; GATEWAYS]);
        assert_eq!(requests[512], Due { after: Duration::from_secs(1), gateway: 0 });
        let distance = Duration::from_secs(1) / 512;
        assert_eq!(requests[9], Due { after: 9 * distance, gateway: 1 });
    }

    #[test]
    fn skewed_gives_each_gateway_half_of_the_rest() {
        let requests = requests(Spread::Skewed);
        assert_eq!(shares(&requests), [1_024, 512, 256, 128, 64, 32, 16, 16]);
        assert_eq!(shares(&requests[..8]), [4, 2, 1, 1, 0, 0, 0, 0]);
    }

    #[test]
    fn bursts_come_four_times_a_second_over_all_gateways() {
        let requests = requests(Spread::Bursts);
        let (first, rest) = requests.split_at(128);
        assert!(first.iter().all(|due| due.after == Duration::ZERO));
        assert_eq!(shares(first), [16; GATEWAYS]);
        assert_eq!(rest[0].after, BURST);
        assert_eq!(requests.chunk_by(|a, b| a.after == b.after).count(), 16);
    }

    #[test]
    fn moving_leads_to_one_gateway_at_a_time() {
        let requests = requests(Spread::Moving);
        assert_eq!(shares(&requests), [512, 512, 512, 512, 0, 0, 0, 0]);
        assert!(requests.is_sorted_by_key(|due| due.gateway));
        // The first comes again after the last.
        let again = Spread::Moving.requests(9 * 512, 512, GATEWAYS);
        assert_eq!(again.last().map(|due| due.gateway), Some(0));
    }

    #[test]
    fn one_gateway_has_all_and_none_has_none() {
        for spread in Spread::ALL {
            assert!(spread.requests(10, 5, 1).iter().all(|due| due.gateway == 0));
            assert_eq!(spread.requests(10, 5, 0), []);
            assert_eq!(spread.requests(10, 0, 5), []);
        }
    }
}
