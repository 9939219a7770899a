//! `/v1/pets`: list, create and get animals.

use crate::api::operation::{Deprecation, Handler, HeaderField, Operation, Staged, Success};
use crate::api::paging::{AFTER, LIMIT, LINK, PageWriter, Paging};
use crate::api::parameter::{PathParameter, QueryParameter};
use crate::api::{Call, Reading, Writing};
use crate::http::{ApiError, Code, Response};
use crate::json::{Enumeration, Integer, Word};
use crate::model::{NewPet, Pet, PetStatus};
use crate::store::PetQuery;

const PETS: &str = "/v1/pets";

pub const OPERATIONS: &[Operation] = &[
    Operation {
        about: "Animals in ascending order of their ids, a page at a time. Where another page follows, the Link \
            header leads to it.",
        parameters: &[&LIMIT, &STATUS, &AFTER],
        success: Some(Success { status: 200, about: "A page of animals.", schema: "Pets", headers: &[LINK] }),
        codes: &[Code::InvalidParameter, Code::DuplicateParameter],
        ..Operation::new(PETS, "listPets", "List all animals", Handler::Get(list))
    },
    Operation {
        about: "Adds a new animal. When the 201 comes, the animal is flushed to the disk.",
        headers: &["Content-Type", "Content-Encoding"],
        body: Some("NewPet"),
        success: Some(Success {
            status: 201,
            about: "The animal was added.",
            schema: "Pet",
            headers: &[LOCATION],
        }),
        codes: &[
            Code::InvalidJson,
            Code::MissingMember,
            Code::InvalidMember,
            Code::DuplicateMember,
            Code::UnsupportedMediaType,
            Code::UnsupportedContentEncoding,
        ],
        ..Operation::new(PETS, "createPet", "Add an animal", Handler::Post(create))
    },
    Operation {
        about: "One animal by its identifier.",
        parameters: &[&PET_ID],
        success: Some(Success { status: 200, about: "The animal.", schema: "Pet", headers: &[] }),
        codes: &[Code::NotFound],
        deprecation: Some(Deprecation {
            // 21 November 2026, midnight UTC.
            since: 1_795_219_200,
            // 2030-12-05.
            sunset: 1_922_659_200,
            successor: PETS,
        }),
        ..Operation::new("/v1/pets/{petId}", "getPet", "Get an animal", Handler::Get(get))
    },
];

static STATUS: QueryParameter<Enumeration<PetStatus>> =
    QueryParameter { name: "status", about: "Only animals of this availability.", schema: PetStatus::SCHEMA };
static PET_ID: PathParameter<Integer> =
    PathParameter { name: "petId", about: "Identifier of the animal.", schema: Integer::INT64 };
const LOCATION: HeaderField =
    HeaderField { name: "Location", about: "The address of the animal.", example: "/v1/pets/7" };

/// `GET /v1/pets`: a page of animals in ascending order of their ids.
///
/// ```json
/// [{"id":1,"name":"Rex","categoryId":3,"status":"available"},{"id":2,"name":"Tom","categoryId":3}]
/// ```
fn list(reading: &mut Reading, call: &Call) -> Result<Response, ApiError> {
    let paging = Paging::of(call)?;
    let query = PetQuery { limit: paging.limit, status: call.query(&STATUS)?, after: paging.after };
    let version = reading.store.version();
    if let Some(response) = reading.lists.get(&query, version) {
        return Ok(response);
    }
    // The rows are written from the database's own memory into the body.
    let mut page = PageWriter::new(&paging);
    reading.store.visit_pets(&query, |pet| page.push(pet.id, &pet))?;
    let filter = query.status.map(|status| (STATUS.name, status.as_str()));
    let response = page.finish(PETS, filter.as_slice());
    reading.lists.keep(query, &response);
    Ok(response)
}

/// `POST /v1/pets`: adds an animal.
///
/// ```json
/// {"name":"Rex","categoryId":3,"status":"available"}
/// ```
fn create<'r>(writing: &mut Writing, call: &Call<'r>) -> Result<Staged<'r>, ApiError> {
    call.check_json()?;
    let new = NewPet::from_json(call.body())?;
    let inserted = writing.store.insert_pet(&new)?;
    Ok(Box::new(move |committed| {
        let id = inserted.id(committed);
        let pet = Pet { id, name: &new.name, category_id: new.category_id, status: new.status };
        Response::json(201, &pet).header("Location", format!("{PETS}/{id}"))
    }))
}

/// `GET /v1/pets/{petId}`: one animal. An id that is no int64 is 404, as no animal has it.
///
/// ```json
/// {"id":1,"name":"Rex","categoryId":3,"status":"available"}
/// ```
fn get(reading: &mut Reading, call: &Call) -> Result<Response, ApiError> {
    let found = match call.path(&PET_ID) {
        Some(id) => reading.store.pet(id, |pet| Response::json(200, &pet))?,
        None => None,
    };
    found.ok_or_else(|| ApiError::with_message(Code::NotFound, "There is no animal with this id."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Request, Target};

    /// What a list asks the store for.
    fn asked(query: &str) -> Result<PetQuery, ApiError> {
        let target = format!("{PETS}?{query}");
        let request = Request { id: "-", method: "GET", target: &target, headers: Vec::new(), body: b"" };
        let call = Call::new(&OPERATIONS[0], &request, Target::parse(&target));
        let paging = Paging::of(&call)?;
        Ok(PetQuery { limit: paging.limit, status: call.query(&STATUS)?, after: paging.after })
    }

    #[test]
    fn list_has_defaults() {
        assert_eq!(asked(""), Ok(PetQuery { limit: 20, status: None, after: None }));
        assert_eq!(
            asked("after=-5&x=1&status=sold&limit=100"),
            Ok(PetQuery { limit: 100, status: Some(PetStatus::Sold), after: Some(-5) })
        );
        assert_eq!(
            asked("after=-9223372036854775808").unwrap().after,
            Some(i64::MIN),
            "a value like any other"
        );
    }

    #[test]
    fn wrong_parameters_are_named() {
        for (query, name) in [
            ("limit=0", "'limit' must be an integer from 1 to 100."),
            ("limit=101", "'limit'"),
            ("limit=", "'limit'"),
            ("limit", "'limit'"),
            ("limit=-1", "'limit'"),
            ("limit=-0", "'limit'"),
            ("limit=%2B5", "'limit'"),
            ("limit=1.0", "'limit'"),
            ("limit=4294967297", "'limit'"),
            ("limit=1&limit=1", "'limit'"),
            ("status=", "'status' must be 'available', 'pending' or 'sold'."),
            ("status=Sold", "'status'"),
            ("status=sold&status=sold", "'status'"),
            ("after=", "'after'"),
            ("after=9223372036854775808", "'after'"),
            ("after=1&after=2", "'after'"),
        ] {
            let error = format!("{:?}", asked(query).unwrap_err());
            assert!(error.contains(name), "{query}: {error}");
        }
    }
}
