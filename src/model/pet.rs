//! Pets: [`PetStatus`], [`NewPet`], [`Pet`].

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::Page;
use petstore_base::json::{
    AnyString, Declared, Enumeration, Integer, Invalid, Json, JsonObject, JsonValue, Member,
    Nullable, Optional, Required, Schema, describe, object, shown,
};
use petstore_base::words;

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

/// A pet in the inventory. Its JSON is that of the HTTP interface, and it is read as strictly; from JSON text or bytes by
/// `serde_json` alone, and not inside `#[serde(flatten)]` or `#[serde(untagged)]`.
///
/// ```
/// let json = r#"{"id":7,"name":"Rex","categoryId":3,"status":"available"}"#;
/// let rex: petstore::Pet = serde_json::from_str(json)?;
/// assert_eq!(serde_json::to_string(&rex)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
// It can borrow its name, so that a row is serialized from SQLite's memory into a response, without a copy in between.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Pet<'a> {
    /// The identifier. Identifiers ascend, and are never used again.
    pub id: i64,
    /// The name, which can be empty.
    pub name: Cow<'a, str>,
    /// The identifier of the category that the pet belongs to.
    #[serde(rename = "categoryId")]
    pub category_id: i64,
    /// The availability; `None` if the pet was added without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

/// A pet to add. Its JSON is the body of a create, read as [`Pet`] is: `categoryId` is an int64 however JSON writes it
/// (`1`, `1.0`, `1e2`), `status` may be absent but not null, and other members, such as `id`, are ignored.
///
/// ```
/// let tom: petstore::NewPet = serde_json::from_str(r#"{"name":"Tom","categoryId":1e2}"#)?;
/// assert_eq!(tom, petstore::NewPet::new("Tom", 100));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct NewPet<'a> {
    /// The name: any text of up to 64 KiB, even an empty one.
    pub name: Cow<'a, str>,
    /// The identifier of the category that the pet belongs to.
    #[serde(rename = "categoryId")]
    pub category_id: i64,
    /// The availability. By default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

/// A change to a pet. A field that is not set stays as it is. Its JSON is a JSON Merge Patch (RFC 7396), read as [`Pet`]
/// is.
///
/// ```
/// use petstore::{PetPatch, PetStatus};
///
/// let sold = PetPatch::new().status(PetStatus::Sold);
/// let renamed = PetPatch::new().name("Rex").status(None);
/// assert_eq!(serde_json::from_str::<PetPatch>(r#"{"name":"Rex","status":null}"#)?, renamed);
/// # assert_ne!(sold, renamed);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PetPatch<'a> {
    /// The new name: any text of up to 64 KiB.
    pub name: Option<Cow<'a, str>>,
    /// The identifier of the new category.
    pub category_id: Option<i64>,
    /// The new status. `Some(None)`, which is null, removes the status.
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

impl PetCounts {
    /// A value that no pet can have counts as none.
    pub(crate) fn new(total: i64, available: i64, pending: i64, sold: i64) -> Self {
        Self {
            available,
            pending,
            sold,
            unset: total - available - pending - sold,
            total,
        }
    }
}

/// A query of a list: its page and its filters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PetQuery {
    pub page: Page,
    /// Only those of this status.
    pub status: Option<PetStatus>,
}

const NAME: Required<AnyString> = Required {
    name: "name",
    about: "The name of the pet. It can be empty.",
    schema: AnyString,
};
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
pub const ID: Required<Integer> = Required {
    name: "id",
    about: "The unique identifier, assigned by the service on creation. Ids ascend and are never reused.",
    schema: Integer::INT64,
};

/// The members of a pet that a create sets. Columns of the database and of CSV have this order.
pub static MEMBERS: [&dyn Member; 3] = [&NAME, &CATEGORY_ID, &STATUS];

const NEW_NAME: Optional<AnyString> = NAME.optional_as("The new name of the pet.", AnyString);
const NEW_CATEGORY_ID: Optional<Integer> = CATEGORY_ID.optional_as(
    "The identifier of the new category of the pet.",
    Integer::INT64,
);
const NEW_STATUS: Optional<Nullable<PetStatus>> = STATUS.optional_as(
    "The new status of the pet; null removes it.",
    Nullable(PetStatus::SCHEMA),
);

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
pub const BROUGHT_ID: Required<Integer> = Required {
    schema: Integer::between(1, MAX_BROUGHT_ID),
    ..ID
};

/// The schemas of pets for the OpenAPI description: their names and their JSON Schemas. `is_experimental`: also that
/// of a change.
pub fn pet_schemas(is_experimental: bool) -> Vec<(&'static str, Json)> {
    let new = object! { "name": "Rex", "categoryId": 3, "status": "available" };
    let pet = object! { "id": 1, "name": "Rex", "categoryId": 3, "status": "available" };
    let mut schemas = vec![
        PetStatus::SCHEMA.component("The availability of a pet."),
        ("NewPet", describe("A pet to add.", &MEMBERS, new, false)),
        (
            "Pet",
            describe(
                "A pet in the inventory.",
                &[&[&ID as &dyn Member], &MEMBERS[..]].concat(),
                pet,
                true,
            ),
        ),
    ];
    if is_experimental {
        let members: [&dyn Member; MEMBERS.len()] = [&NEW_NAME, &NEW_CATEGORY_ID, &NEW_STATUS];
        let about = "A JSON Merge Patch (RFC 7396). Members that are absent stay as they are.";
        schemas.push((
            "PetPatch",
            describe(about, &members, object! { "status": "sold" }, false),
        ));
    }
    schemas
}

impl PetCounts {
    /// The number of pets with each status, such as `("sold", 1)`, and of those without one, `("unset", 2)`.
    #[must_use]
    pub const fn by_word(&self) -> [(&'static str, i64); 4] {
        [
            ("available", self.available),
            ("pending", self.pending),
            ("sold", self.sold),
            ("unset", self.unset),
        ]
    }
}

/// What the body of a change must have.
const EXPECTED: &str = "with 'name', 'categoryId' or 'status'";

/// The number of filters of a query.
pub const FILTERS: usize = 1;

impl PetQuery {
    /// Every pet of a page.
    pub const fn all(page: Page) -> Self {
        Self { page, status: None }
    }

    /// The value of each filter that is set.
    pub fn filters(&self) -> [Option<MemberValue<'static>>; FILTERS] {
        let Self { page: _, status } = self;
        [status.map(MemberValue::from)]
    }
}

impl From<PetStatus> for MemberValue<'_> {
    fn from(status: PetStatus) -> Self {
        Self::Text(status.as_str())
    }
}

impl<'a> Pet<'a> {
    /// A pet without a status, for the tests of a host. The status is a field.
    pub fn new(id: i64, name: impl Into<Cow<'a, str>>, category_id: i64) -> Self {
        NewPet::new(name, category_id).with_id(id)
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> Pet<'static> {
        let name = Cow::Owned(self.name.into_owned());
        Pet { name, ..self }
    }

    fn from_json(body: &'a [u8]) -> Result<Self, Invalid> {
        let object = JsonObject::parse(body, "with 'id', 'name' and 'categoryId'")?;
        Ok(NewPet::of_object(&object)?.with_id(object.required(&ID)?))
    }
}

impl<'a> PetPatch<'a> {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the [`name`](Self#structfield.name).
    pub fn name(self, name: impl Into<Cow<'a, str>>) -> Self {
        let name = Some(name.into());
        Self { name, ..self }
    }

    /// Sets the [`category_id`](Self#structfield.category_id).
    pub fn category_id(self, category_id: i64) -> Self {
        let category_id = Some(category_id);
        Self {
            category_id,
            ..self
        }
    }

    /// Sets the [`status`](Self#structfield.status); `None` removes it.
    pub fn status(self, status: impl Into<Option<PetStatus>>) -> Self {
        let status = Some(status.into());
        Self { status, ..self }
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> PetPatch<'static> {
        let name = self.name.map(|name| Cow::Owned(name.into_owned()));
        PetPatch { name, ..self }
    }

    /// Reads the body of a change.
    ///
    /// # Errors
    /// [`Invalid`], if the text is not a JSON object, no member is known, or one is duplicate or of another type.
    pub(crate) fn from_json(body: &'a [u8]) -> Result<Self, Invalid> {
        Self::of_object(&JsonObject::parse(body, EXPECTED)?, 0)
    }

    /// Reads a change. `others` is the number of members that are no part of it.
    fn of_object(object: &JsonObject<'a>, others: usize) -> Result<Self, Invalid> {
        let patch = Self {
            name: object.optional(&NEW_NAME)?,
            category_id: object.optional(&NEW_CATEGORY_ID)?,
            status: object.optional(&NEW_STATUS)?,
        };
        // A misspelt member must not pass for a change that is made.
        if patch == Self::default() && object.count() > others {
            let message = format!("No field is known; an object {EXPECTED} is expected.");
            return Err(Invalid::Member(message));
        }
        Ok(patch)
    }

    /// Reads a change of the pet with an id.
    ///
    /// # Errors
    /// [`Invalid`], if the text is not a JSON object, the id is missing, or a member is duplicate or of another type.
    pub(crate) fn with_id_from_json(body: &'a [u8]) -> Result<(i64, Self), Invalid> {
        let object = JsonObject::parse(body, "with 'id' and what changes")?;
        Ok((object.required(&ID)?, Self::of_object(&object, 1)?))
    }

    /// Reads the columns of a CSV row, in the order of [`MEMBERS`]; `None` for a column that is absent. An empty status
    /// means none.
    ///
    /// # Errors
    /// [`Invalid::Member`], with the column and the expected values.
    pub(crate) fn from_columns(columns: [Option<&'a str>; MEMBERS.len()]) -> Result<Self, Invalid> {
        let [name, category_id, status] = columns;
        let category_id = category_id.map(|id| column(&CATEGORY_ID, id));
        let status = status.map(|word| {
            let word = Some(word.trim_ascii()).filter(|word| !word.is_empty());
            // A spreadsheet may begin it with a capital letter.
            let lower = |word: &str| column(&STATUS, &word.to_ascii_lowercase());
            word.map(|word| lower(word).or_else(|_| column(&STATUS, word)))
                .transpose()
        });
        let patch = Self {
            name: name.map(Cow::Borrowed),
            category_id: category_id.transpose()?,
            status: status.transpose()?,
        };
        patch.check()?;
        Ok(patch)
    }

    /// Checks the members against the schemas by which bodies are read: those of a row of CSV, and of a host.
    ///
    /// # Errors
    /// [`Invalid::Member`], with the first one that is not allowed.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        for (member, value) in MEMBERS.iter().zip(self.values()) {
            match value {
                Some(MemberValue::Text(text)) => member.check(JsonValue::Text(text.into()))?,
                Some(MemberValue::Integer(number)) => {
                    member.check(JsonValue::Number(&number.to_string()))?;
                }
                Some(MemberValue::None) | None => {}
            }
        }
        Ok(())
    }

    /// The change to these members of a pet: bit `n` of `given` stands for the one at `n` in [`MEMBERS`].
    pub(crate) fn of(pet: Pet<'a>, given: u32) -> Self {
        let Pet {
            id: _,
            name,
            category_id,
            status,
        } = pet;
        let is_given = |member: u32| given & (1 << member) != 0;
        Self {
            name: is_given(0).then_some(name),
            category_id: is_given(1).then_some(category_id),
            status: is_given(2).then_some(status),
        }
    }

    /// The pet after the change.
    pub(crate) fn apply<'p>(&'p self, pet: &'p Pet<'_>) -> Pet<'p> {
        Pet {
            id: pet.id,
            name: self.name.as_deref().unwrap_or(&pet.name).into(),
            category_id: self.category_id.unwrap_or(pet.category_id),
            status: self.status.unwrap_or(pet.status),
        }
    }

    /// The new values of [`MEMBERS`]; `None` for a member that stays.
    pub(crate) fn values(&self) -> [Option<MemberValue<'_>>; MEMBERS.len()] {
        let Self {
            name,
            category_id,
            status,
        } = self;
        [
            name.as_deref().map(MemberValue::Text),
            category_id.map(MemberValue::Integer),
            status.map(|status| status.map_or(MemberValue::None, MemberValue::from)),
        ]
    }
}

impl<'a> NewPet<'a> {
    /// A pet without optional members.
    pub fn new(name: impl Into<Cow<'a, str>>, category_id: i64) -> Self {
        Self {
            name: name.into(),
            category_id,
            status: None,
        }
    }

    /// Sets the [`status`](Self#structfield.status).
    pub fn status(self, status: PetStatus) -> Self {
        let status = Some(status);
        Self { status, ..self }
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> NewPet<'static> {
        let name = Cow::Owned(self.name.into_owned());
        NewPet { name, ..self }
    }

    /// The pet that gets this id.
    pub(crate) fn with_id(self, id: i64) -> Pet<'a> {
        let Self {
            name,
            category_id,
            status,
        } = self;
        Pet {
            id,
            name,
            category_id,
            status,
        }
    }

    /// The same pet, which borrows its name from this one.
    pub(crate) fn borrowed(&self) -> NewPet<'_> {
        NewPet {
            name: Cow::Borrowed(&self.name),
            ..*self
        }
    }

    /// The values of [`MEMBERS`].
    pub(crate) fn values(&self) -> [MemberValue<'_>; MEMBERS.len()] {
        let Self {
            name,
            category_id,
            status,
        } = self;
        [
            MemberValue::Text(name),
            MemberValue::Integer(*category_id),
            status.map_or(MemberValue::None, MemberValue::from),
        ]
    }

    /// Reads the body of a create.
    ///
    /// # Errors
    /// [`Invalid`], if the text is not a JSON object, or a member is missing, duplicate or of another type.
    pub(crate) fn from_json(body: &'a [u8]) -> Result<Self, Invalid> {
        Self::of_object(&JsonObject::parse(body, "with 'name' and 'categoryId'")?)
    }

    /// Reads a pet that keeps its id.
    ///
    /// # Errors
    /// [`Invalid`], if the text is not a JSON object, a member is missing, duplicate or of another type, or the id is
    /// out of bounds.
    pub(crate) fn with_id_from_json(body: &'a [u8]) -> Result<(i64, Self), Invalid> {
        let object = JsonObject::parse(body, "with 'id', 'name' and 'categoryId'")?;
        Ok((object.required(&BROUGHT_ID)?, Self::of_object(&object)?))
    }

    /// Reads a pet, and its id if it has one.
    ///
    /// # Errors
    /// Those of [`from_json`](Self::from_json), or that the id is no integer.
    pub(crate) fn with_any_id_from_json(body: &'a [u8]) -> Result<(Option<i64>, Self), Invalid> {
        let object = JsonObject::parse(body, "with 'name' and 'categoryId'")?;
        let id = match object.required(&ID) {
            Ok(id) => Some(id),
            Err(_) if object.is_null(ID.name) => None,
            // Some programs write an int64 as a string, because they read numbers as doubles.
            Err(refused) => match object.optional(&ID.optional_as(ID.about, AnyString)) {
                Ok(text) => text.map_or(Ok(None), |text| any_id(&text))?,
                Err(_) => return Err(refused),
            },
        };
        Ok((id, Self::of_object(&object)?))
    }

    fn of_object(object: &JsonObject<'a>) -> Result<Self, Invalid> {
        Ok(Self {
            name: object.required(&NAME)?,
            category_id: object.required(&CATEGORY_ID)?,
            status: object.optional(&STATUS)?,
        })
    }
}

impl<'a> From<Pet<'a>> for NewPet<'a> {
    /// A pet like this one.
    fn from(pet: Pet<'a>) -> Self {
        let Pet {
            id: _,
            name,
            category_id,
            status,
        } = pet;
        Self {
            name,
            category_id,
            status,
        }
    }
}

impl<'a> From<NewPet<'a>> for PetPatch<'a> {
    /// The change that makes a pet this one.
    fn from(pet: NewPet<'a>) -> Self {
        let NewPet {
            name,
            category_id,
            status,
        } = pet;
        Self {
            name: Some(name),
            category_id: Some(category_id),
            status: Some(status),
        }
    }
}

/// Reads the value of a host as strictly as the service reads a body. `serde_json` hands over the text itself.
macro_rules! read_strictly {
    ($($pet:ident),*) => {
        $(impl<'de> Deserialize<'de> for $pet<'_> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let raw = Box::<RawValue>::deserialize(from)?;
                let read = $pet::from_json(raw.get().as_bytes()).map($pet::into_owned);
                read.map_err(|invalid| D::Error::custom(invalid.into_message()))
            }
        })*
    };
}
read_strictly!(Pet, NewPet, PetPatch);

/// Reads an id that a pet of an import need not have, if it is none that an export has.
///
/// # Errors
/// [`Invalid::Member`], if it is there and no integer.
pub fn any_id(text: &str) -> Result<Option<i64>, Invalid> {
    if text.trim_ascii().is_empty() {
        return Ok(None);
    }
    column(&ID, text).map(Some).map_err(|refused| {
        let message = refused.into_message();
        let message = message.trim_end_matches('.');
        Invalid::Member(format!(
            "{message}; correct it, or add all rows as new pets with --new-ids."
        ))
    })
}

/// Reads the column of a member.
///
/// # Errors
/// [`Invalid::Member`], with the expected values.
pub fn column<T, S: for<'v> Schema<Value<'v> = T>, const IS_REQUIRED: bool>(
    member: &Declared<S, IS_REQUIRED>,
    text: &str,
) -> Result<T, Invalid> {
    let cell = text.trim_ascii();
    // It keeps a spreadsheet from rounding the number.
    let cell = cell.strip_prefix('\'').unwrap_or(cell);
    // With an exponent, a spreadsheet has left out the last digits of a large number, and 1.000 may mean a thousand.
    let is_number = !cell.contains(['e', 'E'])
        && !cell.ends_with(".000")
        && serde_json::from_str::<serde_json::Number>(cell).is_ok();
    let of_json = || {
        let number = JsonValue::Number(cell);
        member.schema.of_json(number).ok().filter(|_| is_number)
    };
    member.schema.of_text(cell).or_else(of_json).ok_or_else(|| {
        Invalid::Member(format!(
            "The column '{}' must be {}, not '{}'.",
            member.name,
            member.schema.expected(),
            shown(text)
        ))
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
        assert_eq!(
            pet,
            Ok(NewPet {
                status: Some(PetStatus::Sold),
                ..NewPet::new("", i64::MIN)
            })
        );
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
            (
                r#"{"name":"x","categoryId":9223372036854775808}"#,
                "'categoryId'",
            ),
            (
                r#"{"name":"x","categoryId":1,"status":null}"#,
                "'available', 'pending' or 'sold', not null",
            ),
            (r#"{"name":"x","categoryId":1,"status":"Sold"}"#, "'status'"),
        ] {
            match read(body) {
                Err(Invalid::Member(message)) => {
                    assert!(message.contains(member), "{body}: {message}");
                }
                other => panic!("{body}: {other:?}"),
            }
        }
    }

    #[test]
    fn missing_members_are_named() {
        assert!(matches!(read("{}"), Err(Invalid::Missing(m)) if m.contains("'name'")));
        assert!(
            matches!(read(r#"{"name":"x"}"#), Err(Invalid::Missing(m)) if m.contains("'categoryId'"))
        );
    }

    #[test]
    fn patch_changes_the_members_that_it_has() {
        let rex = || Pet {
            id: 7,
            name: "Rex".into(),
            category_id: 3,
            status: Some(PetStatus::Available),
        };
        for (body, changed) in [
            ("{}", rex()),
            (r#"{"id":9,"x":1,"name":"Rex"}"#, rex()),
            (
                r#"{"status":"sold"}"#,
                Pet {
                    status: Some(PetStatus::Sold),
                    ..rex()
                },
            ),
            (
                r#"{"status":null}"#,
                Pet {
                    status: None,
                    ..rex()
                },
            ),
            (
                r#"{"name":"","categoryId":1e2}"#,
                Pet {
                    name: "".into(),
                    category_id: 100,
                    ..rex()
                },
            ),
        ] {
            let patch = PetPatch::from_json(body.as_bytes()).unwrap();
            assert_eq!(patch.apply(&rex()), changed, "{body}");
            let rex = rex();
            let (rex, changed) = (NewPet::from(rex), NewPet::from(changed));
            let values = patch.values().into_iter().zip(rex.values());
            assert_eq!(
                values
                    .map(|(new, old)| new.unwrap_or(old))
                    .collect::<Vec<_>>(),
                changed.values()
            );
        }
        for (body, named) in [
            (r#"{"name":null}"#, "'name' must be a string, not null"),
            (
                r#"{"categoryId":null}"#,
                "'categoryId' must be a 64-bit integer (int64), not null",
            ),
            (
                r#"{"status":"Sold"}"#,
                "'available', 'pending' or 'sold', or null, not another string",
            ),
            (r#"{"status":1}"#, "or null, not a number"),
            (
                r#"{"Status":"sold"}"#,
                "No field is known; an object with 'name'",
            ),
            (
                r#"{"status":"sold","status":null}"#,
                "'status' is given more than once",
            ),
            ("null", "with 'name', 'categoryId' or 'status'"),
            ("[]", "one JSON object"),
            ("", "is empty"),
        ] {
            let message = PetPatch::from_json(body.as_bytes())
                .unwrap_err()
                .into_message();
            assert!(message.contains(named), "{body}: {message}");
        }
    }

    #[test]
    fn id_that_is_kept_leaves_another() {
        let read = |id: &str| {
            let body = format!(r#"{{"id":{id},"name":"x","categoryId":1}}"#);
            NewPet::with_id_from_json(body.as_bytes())
                .map(|(id, _)| id)
                .ok()
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
            assert!(
                text == "1e3" || column(&BROUGHT_ID, text).ok() == id,
                "{text}"
            );
        }
        assert!(matches!(
            NewPet::with_id_from_json(br#"{"name":"x","categoryId":1}"#),
            Err(Invalid::Missing(message)) if message.contains("'id'")
        ));
    }

    #[test]
    fn columns_are_read_to_the_letter() {
        let pet = PetPatch::from_columns([" a\0", "-5", ""].map(Some));
        assert_eq!(pet, Ok(NewPet::new(" a\0", -5).into()));
        assert_eq!(PetPatch::from_columns([None; 3]), Ok(PetPatch::default()));
        let said = |category: &str, status: &str| {
            PetPatch::from_columns(["", category, status].map(Some))
                .unwrap_err()
                .into_message()
        };
        assert_eq!(
            said("", "sold"),
            "The column 'categoryId' must be a 64-bit integer (int64), not ''."
        );
        let sold =
            "The column 'status' must be 'available', 'pending' or 'sold', not 'Sold\\u{1b}'.";
        assert_eq!(said("1", "Sold\u{1b}"), sold);
        let long = said(&format!("{}é1", "é".repeat(1000)), "");
        assert!(long.len() < 250 && long.ends_with("é1'."), "{long}");
        for (cell, number) in [
            ("3.0", 3),
            ("9223372036854775807.00", i64::MAX),
            (" 5 ", 5),
            ("007", 7),
            ("-0.0", 0),
        ] {
            assert_eq!(
                PetPatch::from_columns(["", cell, " sold"].map(Some))
                    .unwrap()
                    .category_id,
                Some(number),
                "{cell}"
            );
        }
        for cell in [
            "1.5",
            "9223372036854775808",
            "1e999999999999",
            "1e2",
            "4.00638E+12",
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
        assert_eq!(
            serde_json::to_string(&pet).unwrap(),
            r#"{"id":1,"name":"a\"b","categoryId":2}"#
        );
        let pet = Pet {
            status: Some(PetStatus::Pending),
            ..pet
        };
        assert_eq!(
            serde_json::to_string(&pet).unwrap(),
            r#"{"id":1,"name":"a\"b","categoryId":2,"status":"pending"}"#
        );
    }
}
