//! Pets: [`PetStatus`], [`NewPet`], [`Pet`].

use std::borrow::Cow;

use serde::Serialize;

use super::Page;
use super::string_enum::words;
use crate::base::json::{
    AnyString, Enumeration, Integer, Invalid, Json, JsonObject, JsonValue, Member, Nullable, Optional,
    Required, Schema, describe, object, shown,
};

words! {
    /// The availability of a pet: `available`, `pending` or `sold`.
    PetStatus {
        /// The pet is for sale.
        Available = "available",
        /// The pet is being sold.
        Pending = "pending",
        /// The pet is sold.
        Sold = "sold",
    }
}

/// A pet as clients see it. It borrows its name, so that a row is serialized from SQLite's memory into a response,
/// without a copy in between.
///
/// ```json
/// {"id":7,"name":"Rex","categoryId":3,"status":"available"}
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pet<'a> {
    /// Assigned by the service, ascending, never used again.
    pub id: i64,
    /// Any text, empty included.
    pub name: &'a str,
    /// The category that the pet belongs to.
    #[serde(rename = "categoryId")]
    pub category_id: i64,
    /// Absent if the pet was created without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

/// The body of a create. Unknown members are ignored, and so is `id`.
///
/// ```json
/// {"name":"Rex","categoryId":3,"status":"available"}
/// ```
#[derive(Debug, PartialEq)]
pub struct NewPet<'a> {
    /// Required; any JSON string.
    pub name: Cow<'a, str>,
    /// Required; an int64, however JSON writes it (`1`, `1.0`, `1e2`).
    pub category_id: i64,
    /// May be absent; null is not allowed.
    pub status: Option<PetStatus>,
}

/// A change to a pet: a JSON Merge Patch (RFC 7396). Unknown members are ignored, and so is `id`.
///
/// ```json
/// {"status":"sold"}
/// ```
#[derive(Debug, Default, PartialEq)]
pub struct PetPatch<'a> {
    /// Absent: the name stays.
    pub name: Option<Cow<'a, str>>,
    /// Absent: the category stays.
    pub category_id: Option<i64>,
    /// Absent: the status stays. Null, which is `Some(None)`: the status is removed.
    pub status: Option<Option<PetStatus>>,
}

/// The number of pets with each status. Its JSON is that of the HTTP interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct PetCounts {
    /// Pets that are for sale.
    pub available: i64,
    /// Pets that are being sold.
    pub pending: i64,
    /// Pets that are sold.
    pub sold: i64,
    /// Pets without a status.
    pub unset: i64,
    /// All pets.
    pub total: i64,
}

/// A query of a list: its page and its filters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PetQuery {
    pub page: Page,
    /// Only those of this status.
    pub status: Option<PetStatus>,
}

const NAME: Required<AnyString> =
    Required { name: "name", about: "The name of the pet. It can be empty.", schema: AnyString };
const CATEGORY_ID: Required<Integer> = Required {
    name: "categoryId",
    about: "The identifier of the category that the pet belongs to.",
    schema: Integer::INT64,
};
const STATUS: Optional<Enumeration<PetStatus>> = Optional {
    name: "status",
    about: "The availability of the pet. A pet that was added without a status has none.",
    schema: PetStatus::SCHEMA,
};
const ID: Required<Integer> = Required {
    name: "id",
    about: "The unique identifier, assigned by the service on creation. Ids ascend and are never reused.",
    schema: Integer::INT64,
};

/// The members of a pet that a create sets. Columns of the database and of CSV have this order.
pub static MEMBERS: [&dyn Member; 3] = [&NAME, &CATEGORY_ID, &STATUS];

const NEW_NAME: Optional<AnyString> = NAME.optional_as("The new name of the pet.", AnyString);
const NEW_CATEGORY_ID: Optional<Integer> =
    CATEGORY_ID.optional_as("The identifier of the new category of the pet.", Integer::INT64);
const NEW_STATUS: Optional<Nullable<Enumeration<PetStatus>>> =
    STATUS.optional_as("The new status of the pet; null removes it.", Nullable(PetStatus::SCHEMA));

/// The value of one of the [`MEMBERS`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemberValue<'a> {
    Integer(i64),
    Text(&'a str),
    /// The member is absent.
    None,
}

/// The highest id in an import that keeps ids. Later creates get higher ids (`sqlite.org/autoinc.html`); this bound
/// leaves 10¹² of them.
pub const MAX_BROUGHT_ID: i64 = i64::MAX - 1_000_000_000_000;
/// The id in an import that keeps ids.
const BROUGHT_ID: Required<Integer> = Required { schema: Integer::between(1, MAX_BROUGHT_ID), ..ID };

/// The schemas of pets for the interface description: their names and their JSON Schemas. `is_experimental`: also that
/// of a change.
pub fn pet_schemas(is_experimental: bool) -> Vec<(&'static str, Json)> {
    let new = object! { "name": "Rex", "categoryId": 3, "status": "available" };
    let pet = object! { "id": 1, "name": "Rex", "categoryId": 3, "status": "available" };
    let mut schemas = vec![
        PetStatus::SCHEMA.component("The availability of a pet."),
        ("NewPet", describe("A pet to add.", &MEMBERS, new)),
        ("Pet", describe("A pet in the inventory.", &[&[&ID as &dyn Member], &MEMBERS[..]].concat(), pet)),
    ];
    if is_experimental {
        let members: [&dyn Member; MEMBERS.len()] = [&NEW_NAME, &NEW_CATEGORY_ID, &NEW_STATUS];
        let about = "A JSON Merge Patch (RFC 7396). Members that are absent stay as they are.";
        schemas.push(("PetPatch", describe(about, &members, object! { "status": "sold" })));
    }
    schemas
}

impl PetCounts {
    /// Adds a number of pets with this status, which can be negative.
    pub(crate) fn add(&mut self, status: Option<PetStatus>, pets: i64) {
        *match status {
            Some(PetStatus::Available) => &mut self.available,
            Some(PetStatus::Pending) => &mut self.pending,
            Some(PetStatus::Sold) => &mut self.sold,
            None => &mut self.unset,
        } += pets;
        self.total += pets;
    }

    /// Adds the pets of another count.
    pub(crate) fn add_all(&mut self, other: &Self) {
        let Self { available, pending, sold, unset, total } = *other;
        self.available += available;
        self.pending += pending;
        self.sold += sold;
        self.unset += unset;
        self.total += total;
    }

    /// The number of pets with each status, such as `("sold", 1)`, and of those without one, `("unset", 2)`.
    #[must_use]
    pub const fn by_word(&self) -> [(&'static str, i64); 4] {
        let Self { available, pending, sold, unset, total: _ } = *self;
        [("available", available), ("pending", pending), ("sold", sold), ("unset", unset)]
    }
}

impl PetQuery {
    /// Every pet of a page.
    pub const fn all(page: Page) -> Self {
        Self { page, status: None }
    }
}

impl<'a> Pet<'a> {
    /// The values of [`MEMBERS`].
    pub fn values(&self) -> [MemberValue<'a>; MEMBERS.len()] {
        let &Self { id: _, name, category_id, status } = self;
        [
            MemberValue::Text(name),
            MemberValue::Integer(category_id),
            status.map_or(MemberValue::None, |status| MemberValue::Text(status.as_str())),
        ]
    }
}

impl<'a> PetPatch<'a> {
    /// Reads the body of a change.
    ///
    /// # Errors
    /// [`Invalid`], if the text is not a JSON object, or a member is duplicate or of another type.
    pub fn from_json(body: &'a [u8]) -> Result<Self, Invalid> {
        let object = JsonObject::parse(body, "with 'name', 'categoryId' or 'status'")?;
        Ok(Self {
            name: object.optional(&NEW_NAME)?,
            category_id: object.optional(&NEW_CATEGORY_ID)?,
            status: object.optional(&NEW_STATUS)?,
        })
    }

    /// The pet after the change.
    pub fn apply<'p>(&'p self, pet: Pet<'p>) -> Pet<'p> {
        Pet {
            id: pet.id,
            name: self.name.as_deref().unwrap_or(pet.name),
            category_id: self.category_id.unwrap_or(pet.category_id),
            status: self.status.unwrap_or(pet.status),
        }
    }

    /// The new values of [`MEMBERS`]; `None` for a member that stays.
    pub fn values(&self) -> [Option<MemberValue<'_>>; MEMBERS.len()] {
        let Self { name, category_id, status } = self;
        [
            name.as_deref().map(MemberValue::Text),
            category_id.map(MemberValue::Integer),
            status
                .map(|status| status.map_or(MemberValue::None, |status| MemberValue::Text(status.as_str()))),
        ]
    }
}

impl<'a> NewPet<'a> {
    /// A pet without optional members.
    pub fn new(name: impl Into<Cow<'a, str>>, category_id: i64) -> Self {
        Self { name: name.into(), category_id, status: None }
    }

    /// A copy that borrows nothing.
    pub fn to_static(&self) -> NewPet<'static> {
        NewPet { name: Cow::Owned(self.name.clone().into_owned()), ..*self }
    }

    /// The pet that gets this id.
    pub fn with_id(&self, id: i64) -> Pet<'_> {
        Pet { id, name: &self.name, category_id: self.category_id, status: self.status }
    }

    /// The values of [`MEMBERS`].
    pub fn values(&self) -> [MemberValue<'_>; MEMBERS.len()] {
        self.with_id(0).values()
    }

    /// Reads the body of a create.
    ///
    /// # Errors
    /// [`Invalid`], if the text is not a JSON object, or a member is missing, duplicate or of another type.
    pub fn from_json(body: &'a [u8]) -> Result<Self, Invalid> {
        Self::of_object(&JsonObject::parse(body, "with 'name' and 'categoryId'")?)
    }

    /// Reads a pet that keeps its id.
    ///
    /// # Errors
    /// [`Invalid`], if the text is not a JSON object, a member is missing, duplicate or of another type, or the id is
    /// out of bounds.
    pub fn with_id_from_json(body: &'a [u8]) -> Result<(i64, Self), Invalid> {
        let object = JsonObject::parse(body, "with 'id', 'name' and 'categoryId'")?;
        Ok((object.required(&BROUGHT_ID)?, Self::of_object(&object)?))
    }

    fn of_object(object: &JsonObject<'a>) -> Result<Self, Invalid> {
        Ok(Self {
            name: object.required(&NAME)?,
            category_id: object.required(&CATEGORY_ID)?,
            status: object.optional(&STATUS)?,
        })
    }

    /// Reads the columns of a CSV row, in the order of [`MEMBERS`]. An empty status means none.
    ///
    /// # Errors
    /// [`Invalid::Member`], with the column and the expected values.
    pub fn from_columns(columns: [&'a str; MEMBERS.len()]) -> Result<Self, Invalid> {
        let [name, category_id, status] = columns;
        let status = if status.is_empty() { None } else { Some(status) };
        Ok(Self {
            name: name.into(),
            category_id: column(CATEGORY_ID.name, &CATEGORY_ID.schema, category_id)?,
            status: status.map(|status| column(STATUS.name, &STATUS.schema, status)).transpose()?,
        })
    }

    /// Reads the column with the id that a pet keeps.
    ///
    /// # Errors
    /// [`Invalid::Member`], with the expected values.
    pub fn id_from_column(id: &str) -> Result<i64, Invalid> {
        column(BROUGHT_ID.name, &BROUGHT_ID.schema, id)
    }
}

fn column<T>(name: &str, schema: &impl for<'v> Schema<Value<'v> = T>, text: &str) -> Result<T, Invalid> {
    let cell = text.trim_ascii();
    let is_number = serde_json::from_str::<serde_json::Number>(cell).is_ok();
    let of_json = || schema.of_json(JsonValue::Number(cell)).ok().filter(|_| is_number);
    schema.of_text(cell).or_else(of_json).ok_or_else(|| {
        let expected = schema.expected();
        Invalid::Member(format!("The column '{name}' must be {expected}, not '{}'.", shown(text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<NewPet<'_>, Invalid> {
        NewPet::from_json(body.as_bytes())
    }

    #[test]
    fn members_are_read_to_the_letter() {
        let pet = read(r#"{"name":"","categoryId":-9223372036854775808,"status":"sold","id":5}"#);
        assert_eq!(pet, Ok(NewPet { status: Some(PetStatus::Sold), ..NewPet::new("", i64::MIN) }));
        let pet = read(r#"{"name":" x","categoryId":9007199254740993.0}"#);
        assert_eq!(pet, Ok(NewPet::new(" x", 9_007_199_254_740_993)));
    }

    #[test]
    fn wrong_members_are_named() {
        for (body, member) in [
            (r#"{"name":null,"categoryId":1}"#, "'name'"),
            (r#"{"name":1,"categoryId":1}"#, "'name'"),
            (r#"{"name":"x","categoryId":"1"}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":1.5}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":9223372036854775808}"#, "'categoryId'"),
            (r#"{"name":"x","categoryId":1,"status":null}"#, "'available', 'pending' or 'sold', not null"),
            (r#"{"name":"x","categoryId":1,"status":"Sold"}"#, "'status'"),
        ] {
            match read(body) {
                Err(Invalid::Member(message)) => assert!(message.contains(member), "{body}: {message}"),
                other => panic!("{body}: {other:?}"),
            }
        }
    }

    #[test]
    fn missing_members_are_named() {
        assert!(matches!(read("{}"), Err(Invalid::Missing(m)) if m.contains("'name'")));
        assert!(matches!(read(r#"{"name":"x"}"#), Err(Invalid::Missing(m)) if m.contains("'categoryId'")));
    }

    #[test]
    fn patch_changes_the_members_that_it_has() {
        let rex = Pet { id: 7, name: "Rex", category_id: 3, status: Some(PetStatus::Available) };
        for (body, changed) in [
            ("{}", rex),
            (r#"{"id":9,"x":1}"#, rex),
            (r#"{"status":"sold"}"#, Pet { status: Some(PetStatus::Sold), ..rex }),
            (r#"{"status":null}"#, Pet { status: None, ..rex }),
            (r#"{"name":"","categoryId":1e2}"#, Pet { name: "", category_id: 100, ..rex }),
        ] {
            let patch = PetPatch::from_json(body.as_bytes()).unwrap();
            assert_eq!(patch.apply(rex), changed, "{body}");
            let values = patch.values().into_iter().zip(rex.values());
            assert_eq!(values.map(|(new, old)| new.unwrap_or(old)).collect::<Vec<_>>(), changed.values());
        }
        for (body, named) in [
            (r#"{"name":null}"#, "'name' must be a string, not null"),
            (r#"{"categoryId":null}"#, "'categoryId' must be a 64-bit integer (int64), not null"),
            (r#"{"status":"Sold"}"#, "'available', 'pending' or 'sold', or null, not another string"),
            (r#"{"status":1}"#, "or null, not a number"),
            (r#"{"status":"sold","status":null}"#, "'status' is given more than once"),
            ("null", "with 'name', 'categoryId' or 'status'"),
            ("[]", "one JSON object"),
            ("", "is empty"),
        ] {
            let message = PetPatch::from_json(body.as_bytes()).unwrap_err().into_message();
            assert!(message.contains(named), "{body}: {message}");
        }
    }

    #[test]
    fn id_that_is_kept_leaves_another() {
        let read = |id: &str| {
            let body = format!(r#"{{"id":{id},"name":"x","categoryId":1}}"#);
            NewPet::with_id_from_json(body.as_bytes()).map(|(id, _)| id).ok()
        };
        for (text, id) in [
            ("1", Some(1)),
            ("1e3", Some(1000)),
            ("9223371036854775807", Some(MAX_BROUGHT_ID)),
            ("9223371036854775808", None),
            ("9223372036854775807", None),
            ("9223372036854775808", None),
            ("0", None),
            ("-1", None),
            ("\"1\"", None),
        ] {
            assert_eq!(read(text), id, "{text}");
            assert!(text == "1e3" || NewPet::id_from_column(text).ok() == id, "{text}");
        }
        assert!(matches!(
            NewPet::with_id_from_json(br#"{"name":"x","categoryId":1}"#),
            Err(Invalid::Missing(message)) if message.contains("'id'")
        ));
    }

    #[test]
    fn columns_are_read_to_the_letter() {
        let pet = NewPet::from_columns([" a\0", "-5", ""]);
        assert_eq!(pet, Ok(NewPet::new(" a\0", -5)));
        let said = |category: &str, status: &str| {
            NewPet::from_columns(["", category, status]).unwrap_err().into_message()
        };
        assert_eq!(said("", "sold"), "The column 'categoryId' must be a 64-bit integer (int64), not ''.");
        let sold = "The column 'status' must be 'available', 'pending' or 'sold', not 'Sold\\u{1b}'.";
        assert_eq!(said("1", "Sold\u{1b}"), sold);
        let long = said(&format!("{}é1", "é".repeat(1000)), "");
        assert!(long.len() < 250 && long.ends_with("é1'."), "{long}");
        for (cell, number) in [
            ("3.0", 3),
            ("1e2", 100),
            ("-9.223372036854775808E18", i64::MIN),
            ("9223372036854775807.00", i64::MAX),
            (" 5 ", 5),
            ("007", 7),
            ("-0.0", 0),
        ] {
            assert_eq!(NewPet::from_columns(["", cell, " sold"]).unwrap().category_id, number, "{cell}");
        }
        for cell in [
            "1.5",
            "9223372036854775808",
            "1e999999999999",
            "+1",
            "1,000",
            ".5",
            "5.",
            "0x1",
            "1 2",
            "\"1\"",
            "true",
            "٣",
        ] {
            assert!(said(cell, "").contains(cell.trim_matches('"')), "{cell}");
        }
    }

    #[test]
    fn pet_without_status_has_no_such_member() {
        let new = NewPet::new("a\"b", 2);
        let pet = new.with_id(1);
        assert_eq!(serde_json::to_string(&pet).unwrap(), r#"{"id":1,"name":"a\"b","categoryId":2}"#);
        let pet = Pet { status: Some(PetStatus::Pending), ..pet };
        assert_eq!(
            serde_json::to_string(&pet).unwrap(),
            r#"{"id":1,"name":"a\"b","categoryId":2,"status":"pending"}"#
        );
    }
}
