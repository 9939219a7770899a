//! What a search asks of a pet that no index finds.

use super::Pet;

/// The conditions of a search. A pet that it finds meets all of them.
#[derive(Debug, Default)]
pub struct PetSearch {
    /// Its name contains this.
    pub name: Option<NamePart>,
    /// It has this category.
    pub category_id: Option<i64>,
    /// It has no status.
    pub is_unset: bool,
}

impl PetSearch {
    /// Returns whether a pet meets all conditions.
    pub fn finds(&mut self, pet: &Pet) -> bool {
        let has_category = self.category_id.is_none_or(|id| id == pet.category_id);
        let has_status = !self.is_unset || pet.status.is_none();
        has_category && has_status && self.name.as_mut().is_none_or(|part| part.is_in(&pet.name))
    }
}

/// A part of a name. It is compared character by character, each in lower case (`char::to_lowercase`).
#[derive(Debug)]
pub struct NamePart {
    lower: String,
    /// The name in lower case.
    name: String,
}

impl NamePart {
    /// The part as somebody has typed it.
    pub fn new(text: &str) -> Self {
        let mut lower = String::new();
        put_lower(text, &mut lower);
        Self {
            lower,
            name: String::new(),
        }
    }

    fn is_in(&mut self, name: &str) -> bool {
        put_lower(name, &mut self.name);
        self.name.contains(&self.lower)
    }
}

/// Replaces `lower` by the text in lower case.
fn put_lower(text: &str, lower: &mut String) {
    lower.clear();
    if text.is_ascii() {
        lower.push_str(text);
        lower.make_ascii_lowercase();
    } else {
        lower.extend(text.chars().flat_map(char::to_lowercase));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PetStatus;

    #[test]
    fn name_is_found_by_any_part_in_any_case() {
        for (part, name, is_in) in [
            ("zora", "Old Zora II", true),
            ("ZORA", "zora", true),
            ("x", "", false),
            ("Ä", "bär", true),
            ("É", "re\u{301}ne", false),
            ("ß", "STRASSE", false),
            ("i", "\u{130}stanbul", true),
            ("\u{130}", "\u{130}zmir", true),
            ("Σ", "σ", true),
            ("%_", "100%_", true),
            (" ", "a b", true),
            ("\0", "a\0b", true),
            ("\u{1f436}", "dog \u{1f436}", true),
        ] {
            assert_eq!(NamePart::new(part).is_in(name), is_in, "{part} in {name}");
        }
    }

    #[test]
    fn all_conditions_must_be_met() {
        let rex = |category_id, status| Pet {
            status,
            ..Pet::new(1, "Rex", category_id)
        };
        let mut search = PetSearch {
            name: Some(NamePart::new("re")),
            category_id: Some(3),
            is_unset: true,
        };
        assert!(search.finds(&rex(3, None)));
        assert!(!search.finds(&rex(4, None)));
        assert!(!search.finds(&rex(3, Some(PetStatus::Sold))));
        assert!(!search.finds(&Pet::new(1, "Tom", 3)));
        assert!(PetSearch::default().finds(&rex(9, Some(PetStatus::Sold))));
    }
}
