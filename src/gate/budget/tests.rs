//! Examples, and a plain model that the budget must agree with.

use std::collections::BTreeMap;

use super::*;
use crate::testing::Random;

fn v4(last: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, last as u8])
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Small limits, because these tests are about the order.
const LIMITS: Limits = Limits { bytes: 1024 * 1024, few_connections: 3, picked: 2 };

/// Connections of these addresses, in slots from 0.
fn of(addresses: &[IpAddr]) -> Budget {
    let mut budget = Budget::new(LIMITS);
    for (slot, address) in addresses.iter().enumerate() {
        budget.join(slot, *address, false);
    }
    budget
}

fn assert_empty(budget: &Budget) {
    assert_eq!((budget.total(), budget.connections().count()), (0, 0));
    assert!(budget.addresses.is_empty() && budget.ids.is_empty());
}

#[test]
fn largest_address_gives_way_first_and_its_largest_connection() {
    let mut budget = of(&[v4(1), v4(2), v4(2), v4(2)]);
    for (slot, bytes) in [(0, 400_000), (1, 300_000), (2, 350_000), (3, 100)] {
        budget.hold(slot, bytes);
    }
    assert!(budget.excess());
    assert_eq!(budget.largest(), Some(2), "not 0, though it is the largest connection");
    budget.hold(2, 0);
    assert!(!budget.excess());
    assert_eq!(budget.largest(), Some(0));
    budget.leave(0);
    assert_eq!(budget.largest(), Some(1));
    assert_eq!(budget.total(), 300_100);
}

#[test]
fn whole_budget_may_be_held_and_not_a_byte_more() {
    let mut budget = of(&[v4(1)]);
    let most = LIMITS.bytes;
    budget.hold(0, 1000);
    assert!(!budget.lacks(most - 1000) && budget.lacks(most - 999));
    budget.hold(0, most);
    assert!(!budget.excess() && !budget.lacks(0) && budget.lacks(1));
    budget.hold(0, most + 1);
    assert!(budget.excess() && budget.lacks(0));
}

#[test]
fn addresses_within_one_step_of_64_kib_are_alike() {
    let (least, most) = (64 * 1024, 2 * 64 * 1024 - 1);
    let mut budget = of(&[v4(1), v4(2)]);
    budget.hold(0, least);
    budget.hold(1, most);
    let first = budget.largest();
    assert!(first.is_some());
    budget.hold(0, most);
    budget.hold(1, least);
    assert_eq!(budget.largest(), first);
    for slot in [0, 1] {
        budget.hold(slot, most + 1);
        assert_eq!(budget.largest(), Some(slot), "a step ahead");
        budget.hold(slot, least);
    }
}

#[test]
fn of_equal_connections_the_one_so_large_for_the_longest_gives_way() {
    let mut budget = of(&[v4(1); 3]);
    for slot in [1, 2, 0] {
        budget.hold(slot, 2 * SMALL_BYTES);
    }
    budget.hold(1, 3 * SMALL_BYTES - 1);
    budget.hold(2, 3 * SMALL_BYTES - 1);
    assert_eq!(budget.largest(), Some(1), "not 2, and within a step no time begins anew");
    budget.hold(1, 3 * SMALL_BYTES);
    budget.hold(1, 2 * SMALL_BYTES);
    assert_eq!(budget.largest(), Some(2));
    budget.leave(2);
    assert_eq!(budget.largest(), Some(0));
}

#[test]
fn connections_within_one_step_are_alike() {
    let mut budget = of(&[v4(1), v4(1)]);
    budget.hold(0, 2 * SMALL_BYTES);
    budget.hold(1, 3 * SMALL_BYTES - 1);
    assert_eq!(budget.largest(), Some(0), "it has been so large for longer");
}

#[test]
fn small_ones_never_pay() {
    let mut budget = of(&[v4(1); 1000]);
    for slot in 0..1000 {
        budget.hold(slot, SMALL_BYTES - 1);
    }
    assert!(budget.excess());
    assert_eq!(budget.largest(), None);
    budget.join(1000, v4(2), false);
    budget.hold(1000, SMALL_BYTES);
    assert_eq!(budget.largest(), Some(1000), "of an address that holds far less");
}

#[test]
fn longest_idle_or_coming_makes_room_and_then_the_longest_taking() {
    let mut budget = of(&[v4(1), v4(1), v4(1), v4(1), v4(1), v4(2)]);
    budget.stand(5, Standing::Busy);
    budget.stand(4, Standing::Taking);
    for standing in [Standing::Coming, Standing::Idle, Standing::Idle] {
        budget.stand(0, standing);
    }
    budget.stand(1, Standing::Idle);
    budget.stand(2, Standing::Coming);
    budget.stand(3, Standing::Coming);
    for slot in [1, 0, 2, 3, 4] {
        assert_eq!(budget.longest_idle(), Some(slot), "in the order in which they came to it");
        budget.stand(slot, Standing::Busy);
    }
}

#[test]
fn where_all_ask_the_oldest_that_waits_makes_room() {
    let mut budget = of(&[v4(1), v4(2), v4(2), v4(2), v4(2), v4(3)]);
    budget.change_address(1, v4(1), false);
    budget.change_address(1, v4(2), false);
    (0..6).for_each(|slot| budget.stand(slot, Standing::Waiting));
    budget.stand(4, Standing::Busy);
    for slot in [1, 0, 2, 3, 5] {
        assert_eq!(budget.longest_idle(), Some(slot), "of the address with many, while it has many");
        budget.leave(slot);
    }
    assert_eq!(budget.longest_idle(), None, "not whose request is in a lane");
    budget.leave(4);
    assert_empty(&budget);
}

#[test]
fn address_with_many_connections_makes_room_and_where_none_has_the_longest_idle() {
    let mut budget = of(&[v4(1), v4(2), v4(2), v4(2), v4(2)]);
    assert_eq!(budget.longest_idle(), Some(1), "4 are many here");
    (1..5).for_each(|slot| budget.stand(slot, Standing::Busy));
    assert_eq!(budget.longest_idle(), Some(0));
    budget.stand(2, Standing::Idle);
    budget.leave(4);
    assert_eq!(budget.longest_idle(), Some(0), "3 are not, and this one is idle for longer");
}

#[test]
fn address_that_has_few_again_makes_room_like_all_others() {
    let mut budget = of(&[v4(1), v4(2), v4(2), v4(2), v4(2)]);
    assert_eq!(budget.longest_idle(), Some(1), "4 are many here");
    budget.leave(3);
    budget.leave(4);
    assert_eq!(budget.longest_idle(), Some(0), "2 are not");
}

#[test]
fn number_of_connections_says_nothing_of_who_is_exempt() {
    let mut budget = of(&[v4(1)]);
    (1..9).for_each(|slot| budget.join(slot, v4(2), true));
    assert_eq!(budget.longest_idle(), Some(0));
    budget.stand(0, Standing::Busy);
    assert_eq!(budget.longest_idle(), Some(1));
}

#[test]
fn addresses_of_one_host_count_as_one() {
    let mut budget = of(&[ip("2001:db8:0:1::1"), ip("2001:db8:0:1:ffff::2"), ip("2001:db8:0:2::1")]);
    assert_eq!(budget.connections_of(ip("2001:db8:0:1:2:3:4:5")), 2);
    assert_eq!(budget.connections_of(ip("2001:db8:0:2::")), 1);
    budget.join(3, ip("::ffff:10.0.0.1"), false);
    budget.join(4, v4(1), false);
    budget.join(5, v4(2), false);
    assert_eq!(budget.connections_of(v4(1)), 2);
    assert_eq!(budget.address_of(3), budget.address_of(4));
    assert_ne!(budget.address_of(3), budget.address_of(5));
}

#[test]
fn another_address_takes_the_bytes_along() {
    let mut budget = of(&[v4(1), v4(1), v4(2)]);
    budget.hold(0, 10_000);
    budget.hold(2, 70_000);
    assert_eq!(budget.largest(), Some(2));
    budget.stand(0, Standing::Coming);
    budget.change_address(0, v4(3), false);
    assert_eq!((budget.connections_of(v4(1)), budget.connections_of(v4(3))), (1, 1));
    budget.hold(0, 150_000);
    assert_eq!(budget.largest(), Some(0));
    assert_eq!(budget.total(), 220_000);
}

#[test]
fn leave_releases_everything_and_strangers_change_nothing() {
    let mut budget = of(&[v4(1), v4(2), v4(2)]);
    for slot in 0..3 {
        budget.hold(slot, 100_000);
        budget.leave(slot);
        budget.leave(slot);
    }
    budget.hold(1, 5);
    budget.stand(7, Standing::Coming);
    budget.change_address(8, v4(1), false);
    assert_empty(&budget);
}

#[test]
fn those_who_make_room_are_picked_some_at_a_time() {
    let mut budget = of(&[v4(1), v4(2), v4(3), v4(4), v4(4), v4(4)]);
    assert_eq!(budget.longest_idle(), Some(0));
    budget.stand(0, Standing::Busy);
    assert_eq!(budget.picked.len(), 2);
    assert_eq!(budget.longest_idle(), Some(1), "picked together with 0");
    budget.join(6, v4(4), false);
    assert_eq!(budget.longest_idle(), Some(3), "its address has many now");
    (0..7).for_each(|slot| budget.stand(slot, Standing::Waiting));
    assert_eq!(budget.longest_idle(), Some(3));
    budget.stand(1, Standing::Taking);
    assert_eq!(budget.longest_idle(), Some(1), "costs its client less");
    budget.stand(2, Standing::Idle);
    assert_eq!(budget.longest_idle(), Some(2), "and this one less still");
}

/// A connection in the model.
struct Modelled {
    address: IpAddr,
    bytes: usize,
    standing: Standing,
    /// When it got its standing.
    since: usize,
    joined: usize,
}

/// An address in the model.
#[derive(Default)]
struct Sums {
    connections: usize,
    bytes: usize,
    has_large: bool,
    has_to_spare: bool,
}

fn check(budget: &mut Budget, model: &BTreeMap<usize, Modelled>) {
    let asks = |c: &Modelled| [Standing::Waiting, Standing::Busy].contains(&c.standing);
    let all_ask = model.values().all(asks);
    let makes_room = |c: &Modelled| if all_ask { c.standing == Standing::Waiting } else { !asks(c) };
    let mut addresses: BTreeMap<IpAddr, Sums> = BTreeMap::new();
    for connection in model.values() {
        let sums = addresses.entry(connection.address).or_default();
        sums.connections += 1;
        sums.bytes += connection.bytes;
        sums.has_large |= connection.bytes >= SMALL_BYTES;
        sums.has_to_spare |= makes_room(connection);
    }
    assert_eq!(budget.total(), model.values().map(|c| c.bytes).sum::<usize>());
    assert_eq!(budget.connections().count(), model.len());
    assert_eq!((budget.addresses.len(), budget.ids.len()), (addresses.len(), addresses.len()));
    for (address, sums) in &addresses {
        assert_eq!(budget.connections_of(*address), sums.connections);
    }

    let largest = budget.largest().map(|slot| &model[&slot]);
    let most = addresses.values().filter(|sums| sums.has_large).map(|sums| sums.bytes / ADDRESS_STEP).max();
    assert_eq!(largest.map(|c| addresses[&c.address].bytes / ADDRESS_STEP), most);
    if let Some(largest) = largest {
        let others = model.values().filter(|c| c.address == largest.address);
        assert_eq!(others.map(|c| c.bytes / SMALL_BYTES).max(), Some(largest.bytes / SMALL_BYTES));
        assert!(largest.bytes >= SMALL_BYTES);
    }

    // Found now, not some turns ago.
    budget.picked.clear();
    let idle = budget.longest_idle().map(|slot| &model[&slot]);
    let many =
        addresses.values().filter(|sums| sums.has_to_spare && sums.connections > LIMITS.few_connections);
    let most = many.map(|sums| sums.connections).max();
    let since = |c: &Modelled| if all_ask { c.joined } else { c.since };
    let turn = |c: &Modelled| (c.standing == Standing::Taking, since(c));
    let spare = model.values().filter(|c| makes_room(c));
    if let (Some(most), Some(idle)) = (most, idle) {
        assert_eq!(addresses[&idle.address].connections, most);
        assert_eq!(spare.filter(|c| c.address == idle.address).map(turn).min(), Some(turn(idle)));
    } else {
        assert_eq!(spare.map(turn).min(), idle.map(turn), "where nobody has many, the longest of all");
    }
}

#[test]
fn random_operations_agree_with_a_plain_model() {
    let mut numbers = Random::new();
    let mut random = |below: usize| numbers.below(below);
    let mut budget = Budget::new(Limits { bytes: usize::MAX, ..LIMITS });
    let mut model = BTreeMap::new();
    for since in 0..20_000 {
        let (slot, address) = (random(40), v4(random(8)));
        let known = model.get_mut(&slot);
        match (random(8), known) {
            (_, None) => {
                budget.join(slot, address, false);
                let standing = Standing::Idle;
                model.insert(slot, Modelled { address, bytes: 0, standing, since, joined: since });
            }
            (0, Some(_)) => {
                budget.leave(slot);
                model.remove(&slot);
            }
            (1, Some(connection)) => {
                budget.change_address(slot, address, false);
                if connection.address != address {
                    (connection.address, connection.since) = (address, since);
                }
            }
            (2..=4, Some(connection)) => {
                let below = [10, 10_000, 300_000][random(3)];
                connection.bytes = random(below);
                budget.hold(slot, connection.bytes);
            }
            (_, Some(connection)) => {
                let standings = [Standing::Busy, Standing::Idle, Standing::Coming, Standing::Taking];
                // Sometimes all ask for something.
                let asking = [Standing::Busy, Standing::Waiting][random(2)];
                let standing = if since % 4000 < 1000 { asking } else { standings[random(4)] };
                budget.stand(slot, standing);
                if connection.standing != standing {
                    (connection.standing, connection.since) = (standing, since);
                }
            }
        }
        check(&mut budget, &model);
    }
    for slot in model.into_keys() {
        budget.leave(slot);
    }
    assert_empty(&budget);
}
