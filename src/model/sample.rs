//! The pets of a service for tests.

use super::NewPet;
use super::PetStatus::{self, Available, Pending, Sold};

const NAMES: [&str; 24] = [
    "Bella", "Charlie", "Luna", "Max", "Coco", "Rocky", "Nala", "Simba", "Daisy", "Oscar", "Molly",
    "Felix", "Ruby", "Leo", "Lola", "Milo", "Poppy", "Toby", "Willow", "Jasper", "Hazel", "Otis",
    "Pepper", "Ziggy",
];

/// Seven, which does not divide 24, so a name does not always get the same status.
const STATUSES: [Option<PetStatus>; 7] = [
    Some(Available),
    Some(Pending),
    Some(Sold),
    None,
    Some(Available),
    Some(Available),
    Some(Sold),
];

/// The first `count` pets of a list that is the same everywhere: `Bella` to `Ziggy`, `Bella 2` to `Ziggy 2`, and so
/// on, in five categories.
pub fn sample_pets(count: u32) -> impl Iterator<Item = NewPet<'static>> {
    (0..count as usize).map(|i| {
        let name = match i / NAMES.len() {
            0 => NAMES[i].to_owned(),
            round => format!("{} {}", NAMES[i % NAMES.len()], round + 1),
        };
        NewPet {
            status: STATUSES[i % STATUSES.len()],
            ..NewPet::new(name, 1 + i as i64 % 5)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_the_first_four_have_every_status_and_none() {
        let names: std::collections::BTreeSet<_> = sample_pets(1000).map(|pet| pet.name).collect();
        assert_eq!(names.len(), 1000);
        let statuses: Vec<_> = sample_pets(4)
            .map(|pet| pet.status.map(PetStatus::as_str))
            .collect();
        assert_eq!(
            statuses,
            [Some("available"), Some("pending"), Some("sold"), None]
        );
        assert_eq!(
            sample_pets(30).last().map(|pet| pet.name).as_deref(),
            Some("Rocky 2")
        );
    }

    #[test]
    fn pets_are_in_five_categories_in_turn() {
        let categories: Vec<_> = sample_pets(7).map(|pet| pet.category_id).collect();
        assert_eq!(categories, [1, 2, 3, 4, 5, 1, 2]);
    }
}
