//! The order of requests that wait.

use super::*;
/// A request that is named by one character.
fn client(name: char) -> ClientId {
    ClientId {
        slot: name as usize,
        serial: 0,
    }
}
fn order(waiting: &mut FairQueue) -> String {
    std::iter::from_fn(|| waiting.pop())
        .filter_map(|client| char::from_u32(client.slot as u32))
        .collect()
}
#[test]
fn address_with_many_requests_has_one_turn_in_each_round() {
    let (mut waiting, mut turns) = (FairQueue::default(), [Turns::default(); 3]);
    for (address, name) in [(0, 'a'), (0, 'b'), (0, 'c'), (1, 'x'), (2, 'y'), (1, 'z')] {
        waiting.push(&mut turns[address], Size::Small, client(name));
    }
    assert_eq!(waiting.len(), 6);
    assert_eq!(order(&mut waiting), "axybzc");
    assert_eq!((waiting.len(), waiting.peek()), (0, None));
}
#[test]
fn newcomers_do_not_go_ahead_for_ever() {
    let (mut waiting, mut many) = (FairQueue::default(), Turns::default());
    "abc"
        .chars()
        .for_each(|name| waiting.push(&mut many, Size::Small, client(name)));
    let mut served = String::new();
    for name in "vwxyz".chars() {
        waiting.push(&mut Turns::default(), Size::Small, client(name));
        served.extend(
            waiting
                .pop()
                .and_then(|client| char::from_u32(client.slot as u32)),
        );
    }
    assert_eq!(served + &order(&mut waiting), "avbwxcyz");
}
#[test]
fn small_requests_go_ahead_of_a_large_one_but_not_for_ever() {
    let (mut waiting, mut turns) = (FairQueue::default(), Turns::default());
    "LM".chars()
        .for_each(|name| waiting.push(&mut turns, Size::Large, client(name)));
    "abcdefghijklmnopqr"
        .chars()
        .for_each(|name| waiting.push(&mut turns, Size::Small, client(name)));
    assert_eq!(order(&mut waiting), "abcdefghLijklmnopMqr");
    waiting.push(&mut turns, Size::Large, client('L'));
    assert_eq!(
        waiting.peek(),
        Some((client('L'), false)),
        "none waits for a small one"
    );
}
#[test]
fn each_size_waits_for_a_few_of_the_smaller_ones() {
    let (mut waiting, mut turns) = (FairQueue::default(), Turns::default());
    for (size, names) in [
        (Size::Large, "XY"),
        (Size::Medium, "MN"),
        (Size::Small, "abcdefghijklmnopqr"),
    ] {
        names
            .chars()
            .for_each(|name| waiting.push(&mut turns, size, client(name)));
    }
    assert_eq!(order(&mut waiting), "abcdefghXMijklmnoYpNqr");
}
#[test]
fn closed_connections_lose_their_turns() {
    let (mut waiting, mut turns) = (FairQueue::default(), Turns::default());
    "axx"
        .chars()
        .for_each(|name| waiting.push(&mut turns, Size::Small, client(name)));
    waiting.push(&mut turns, Size::Large, client('b'));
    waiting.retain(|id| id != client('x'));
    assert_eq!(waiting.len(), 2);
    waiting.push(&mut turns, Size::Small, client('c'));
    assert_eq!(order(&mut waiting), "acb");
}
