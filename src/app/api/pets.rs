//! `/v1/pets`: list, create, get, change and delete pets.

use std::ops::ControlFlow;

use super::idempotency::{IDEMPOTENCY_KEY, REPLAYED, idempotency_key};
use super::paging::{
    AFTER, BEFORE, IGNORED_PARAMETERS, LIMIT, LINK, MAX_PAGE_ROWS, ORDER, PageWriter, list_of,
};
use super::search::{self, Search};
use crate::app::endpoint::parameter::{IF_MATCH, IF_NONE_MATCH, PathParameter, QueryParameter};
use crate::app::endpoint::{
    ApiError, Call, Code, Deprecation, ETAG, Failure, Handler, HeaderField, Operation, ReadContext,
    Stability, Staged, Success, Tag, tagged,
};
use crate::app::settings::ApiSettings;
use crate::model::{IdempotencyKey, NewPet, Pet, PetPatch, PetQuery, PetStatus, pet_schemas};
use crate::store::{BatchWriter, Outcome};
use petstore_base::http::Response;
use petstore_base::json::{Enumeration, Integer};

const PETS: &str = "/v1/pets";
const PET: &str = "/v1/pets/{petId}";

/// The specification gives all its operations one tag (section 1).
pub static PETS_TAG: Tag = Tag {
    name: "animals",
    title: "Pets",
    about: "The pets in the inventory.",
};

const LIST: Operation = Operation {
    title: "List pets",
    summary: "List all animals",
    about: "Returns pets in ascending order of their ids, one page at a time. If there are more, \
        the `Link` header has the URL of the next page.",
    tag: Some(&PETS_TAG),
    stability: Some(Stability::Stable),
    rows: Some(MAX_PAGE_ROWS),
    parameters: &[&LIMIT, &STATUS, &AFTER, &IF_NONE_MATCH],
    success: Some(Success {
        status: 200,
        about: "A page of pets.",
        schema: Some("Pets"),
        headers: &[LINK, ETAG, IGNORED_PARAMETERS],
    }),
    codes: &[Code::InvalidParameter, Code::DuplicateParameter],
    ..Operation::new(PETS, "listPets", Handler::Get(list))
};

pub static LISTING: &[Operation] = &[LIST];

/// The row of the list with `--experimental`. It also searches.
pub static FINDING: &[Operation] = &[Operation {
    about: "Returns pets in the order of their ids, one page at a time. If there are more, \
        the `Link` header has the URL of the next page. A search looks at 20,000 pets at most, so a page can have few pets or \
        none although more follow.",
    parameters: &[
        &LIMIT,
        &search::STATUS,
        &AFTER,
        &search::NAME,
        &search::CATEGORY_ID,
        &ORDER,
        &BEFORE,
        &IF_NONE_MATCH,
    ],
    ..LIST
}];

pub static OPERATIONS: &[Operation] = &[
    Operation {
        title: "Add a pet",
        summary: "Add an animal",
        about: "Adds a pet. When you receive the 201, the pet is already on disk.",
        tag: Some(&PETS_TAG),
        stability: Some(Stability::Stable),
        rows: Some(0),
        parameters: &[&IDEMPOTENCY_KEY],
        body: Some("NewPet"),
        success: Some(Success {
            status: 201,
            about: "The pet was added.",
            schema: Some("Pet"),
            headers: &[LOCATION, ETAG, REPLAYED],
        }),
        codes: &[
            Code::InvalidJson,
            Code::MissingMember,
            Code::InvalidMember,
            Code::DuplicateMember,
            Code::UnsupportedMediaType,
            Code::UnsupportedContentEncoding,
            Code::InvalidIdempotencyKey,
            Code::IdempotencyKeyReused,
        ],
        ..Operation::new(PETS, "createPet", Handler::Write("POST", create))
    },
    Operation {
        title: "Get a pet",
        summary: "Get an animal",
        about: "Returns one pet by its id.",
        tag: Some(&PETS_TAG),
        stability: Some(Stability::Stable),
        rows: Some(1),
        parameters: &[&PET_ID, &IF_NONE_MATCH],
        success: Some(Success {
            status: 200,
            about: "The pet.",
            schema: Some("Pet"),
            headers: &[ETAG],
        }),
        codes: &[Code::NotFound],
        not_found: Some(NO_PET),
        deprecation: Some(&GET_PET_ENDS),
        ..Operation::new(PET, "getPet", Handler::Get(get))
    },
];

/// The rows that only `--experimental` serves.
pub static EXPERIMENTAL: &[Operation] = &[
    Operation {
        title: "Change a pet",
        summary: "Change an animal",
        about: "Changes the fields that the body has, and leaves the others as they are: a JSON Merge Patch (RFC \
            7396). When you receive the 200, the change is already on disk. Send the `ETag` of the pet in `If-Match`, so \
            that you do not overwrite somebody else's change. The request is safe to repeat.",
        tag: Some(&PETS_TAG),
        stability: Some(Stability::Beta),
        rows: Some(1),
        parameters: &[&PET_ID, &IF_MATCH, &IF_NONE_MATCH],
        body: Some("PetPatch"),
        media_types: &["application/merge-patch+json", "application/json"],
        success: Some(Success {
            status: 200,
            about: "The pet after the change.",
            schema: Some("Pet"),
            headers: &[ETAG],
        }),
        codes: &[
            Code::InvalidJson,
            Code::InvalidMember,
            Code::DuplicateMember,
            Code::NotFound,
            Code::PreconditionFailed,
            Code::UnsupportedMediaType,
            Code::UnsupportedContentEncoding,
        ],
        not_found: Some(NO_PET),
        ..Operation::new(PET, "updatePet", Handler::Write("PATCH", update))
    },
    Operation {
        title: "Delete a pet",
        summary: "Delete an animal",
        about: "Deletes a pet. When you receive the 204, the deletion is already on disk. Its identifier is \
            never used again. If you repeat the request, you get a 404.",
        tag: Some(&PETS_TAG),
        stability: Some(Stability::Beta),
        rows: Some(1),
        parameters: &[&PET_ID, &IF_MATCH, &IF_NONE_MATCH],
        success: Some(Success {
            status: 204,
            about: "The pet was deleted.",
            schema: None,
            headers: &[],
        }),
        codes: &[Code::NotFound, Code::PreconditionFailed],
        not_found: Some(NO_PET),
        ..Operation::new(PET, "deletePet", Handler::Write("DELETE", delete))
    },
];

/// Deprecated since 21 November 2026, removed on 5 December 2030, both at midnight UTC.
static GET_PET_ENDS: Deprecation = Deprecation::new(
    1_795_219_200,
    1_922_659_200,
    PETS,
    "`GET /v1/pets` with the `status` filter. To get one pet, such as pet 7, call `GET /v1/pets?after=6&limit=1` and \
        check its `id`.",
);
static STATUS: QueryParameter<Enumeration<PetStatus>> = QueryParameter {
    name: "status",
    about: "Returns only pets with this status.",
    schema: PetStatus::SCHEMA,
};
static PET_ID: PathParameter<Integer> = PathParameter {
    name: "petId",
    about: "The id of the pet.",
    schema: Integer::INT64,
};
const NO_PET: &str = "There is no pet with this id.";
const LOCATION: HeaderField = HeaderField {
    name: "Location",
    about: "The path of the new pet.",
    example: "/v1/pets/1",
};

/// The schemas of the OpenAPI description: their names and their JSON Schemas.
pub fn schemas(is_experimental: bool) -> Vec<(&'static str, petstore_base::json::Json)> {
    let mut schemas = pet_schemas(is_experimental);
    schemas.push((
        "Pets",
        list_of("Pet", "Pets in ascending order of their ids."),
    ));
    if is_experimental {
        schemas.push(search::schema());
        schemas.push(ORDER.0.schema.component("The order of a list by id."));
    }
    schemas
}

/// `GET /v1/pets`: a page of pets in ascending order of their ids.
///
/// ```json
/// [{"id":1,"name":"Rex","categoryId":3,"status":"available"},{"id":2,"name":"Tom","categoryId":3}]
/// ```
fn list(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let version = context.store.data_version();
    if let Some(list) = context.lists.get(call.request.target, version) {
        return Ok(call.unless_known(list));
    }
    let mut list = List::parse(call)?;
    let query = list.query;
    // Each row is serialized from SQLite's memory into the body, without a copy in between.
    context.store.visit_pets(&query, |pet| list.take(&pet))?;
    let response = list.respond(&context.settings);
    Ok(call.unless_known(context.lists.insert(call.request.target, response)))
}

/// A list, as a request asks for it.
pub struct List {
    /// The pets to pass to [`List::take`].
    pub query: PetQuery,
    search: Option<Search>,
    page: PageWriter,
}

impl List {
    /// # Errors
    /// 400, if a parameter has a wrong value.
    pub fn parse(call: &Call) -> Result<Self, ApiError> {
        let page = PageWriter::of(call)?;
        let (status, search) = if call.operation.declares(search::NAME.0.name) {
            Search::parse(call)?
        } else {
            (call.query(&STATUS)?, None)
        };
        let mut query = PetQuery {
            page: page.page,
            status,
        };
        if search.is_some() {
            query.page.limit = search::MOST_PETS;
        }
        Ok(Self {
            query,
            search,
            page,
        })
    }

    /// On a cluster, whose lists come page by page, and a search looks at fewer pets.
    ///
    /// # Errors
    /// Those of [`List::parse`].
    pub fn on_cluster(call: &Call) -> Result<Self, ApiError> {
        let mut list = Self::parse(call)?;
        if let Some(search) = &mut list.search {
            search.on_cluster();
            list.query.page.limit = MAX_PAGE_ROWS;
        }
        Ok(list)
    }

    /// Returns whether the query has more pets than the page, since only some of them are sought.
    pub fn is_search(&self) -> bool {
        self.search.is_some()
    }

    /// Takes the next pet of the query. `Break`: the page is complete.
    pub fn take(&mut self, pet: &Pet) -> ControlFlow<()> {
        let Some(search) = &mut self.search else {
            return self.page.push(pet.id, pet);
        };
        match search.look(pet) {
            Some(true) => self.page.push(pet.id, pet),
            Some(false) => self.page.pass(pet.id),
            None => self.page.interrupt(),
        }
    }

    /// The response, once the page has its pets.
    pub fn respond(self, settings: &ApiSettings) -> Response {
        self.page.finish(&settings.url(PETS))
    }
}

/// `POST /v1/pets`: adds a pet.
///
/// ```json
/// {"name":"Rex","categoryId":3,"status":"available"}
/// ```
fn create(batch: &mut BatchWriter, call: &Call) -> Result<Staged, Failure> {
    let create = Create::parse(call)?;
    let outcome = batch.insert_pet(&create.new, create.key.as_ref())?;
    Ok(create.respond(outcome))
}

/// A create, as a request asks for it.
pub struct Create<'r> {
    pub new: NewPet<'r>,
    pub key: Option<IdempotencyKey>,
}

impl<'r> Create<'r> {
    /// # Errors
    /// 400, if the key or the body is wrong, and 415.
    pub fn parse(call: &Call<'r>) -> Result<Self, Failure> {
        let key = idempotency_key(call)?;
        let new = NewPet::from_json(call.json_body()?)?;
        Ok(Self { new, key })
    }

    /// The response to a create with this outcome.
    pub fn respond(&self, outcome: Outcome) -> Staged {
        let (id, is_replayed) = match outcome {
            Outcome::Made(id) => (id, false),
            Outcome::Replayed(id) => (id, true),
            Outcome::Reused => return Err(ApiError::new(Code::IdempotencyKeyReused)),
        };
        // A replay returns the pet as it was created, even if it was changed or deleted since.
        let response = tagged(Response::json(201, &self.new.borrowed().with_id(id)), None)
            .header("Location", format!("{PETS}/{id}"));
        Ok(if is_replayed {
            response.header(REPLAYED.name, REPLAYED.example)
        } else {
            response
        })
    }
}

/// `GET /v1/pets/{petId}`: one pet. An id that is not an int64 is 404, because no pet has it.
///
/// ```json
/// {"id":1,"name":"Rex","categoryId":3,"status":"available"}
/// ```
fn get(context: &mut ReadContext, call: &Call) -> Result<Response, Failure> {
    let found = match call.path(&PET_ID) {
        Some(id) => context.store.pet(id, |pet| shown(&pet, call))?,
        None => None,
    };
    Ok(found.ok_or_else(no_pet)?)
}

/// The response to a request for one pet.
pub fn shown(pet: &Pet, call: &Call) -> Response {
    call.unless_known(tagged(Response::json(200, pet), None))
}

/// The id in the path of a request for one pet; `None` if no pet can have it.
pub fn pet_id(call: &Call) -> Option<i64> {
    call.path(&PET_ID)
}

pub fn no_pet() -> ApiError {
    ApiError::with_message(Code::NotFound, NO_PET)
}

/// `PATCH /v1/pets/{petId}`: changes one pet.
///
/// ```json
/// {"status":"sold"}
/// ```
fn update(batch: &mut BatchWriter, call: &Call) -> Result<Staged, Failure> {
    carry_out(batch, call, &Change::parse(call)?)
}

/// `DELETE /v1/pets/{petId}`: deletes one pet.
fn delete(batch: &mut BatchWriter, call: &Call) -> Result<Staged, Failure> {
    carry_out(batch, call, &Change::parse(call)?)
}

fn carry_out(batch: &mut BatchWriter, call: &Call, change: &Change) -> Result<Staged, Failure> {
    let mut transaction = batch.transaction()?;
    let Some(id) = change.id else {
        return Ok(Err(no_pet()));
    };
    let found = transaction.pet(id, |pet| change.respond(call, &pet))?;
    let staged = found.unwrap_or_else(|| Err(no_pet()));
    if staged.is_ok() {
        match &change.patch {
            Some(patch) => transaction.update_pet(id, patch)?,
            None => transaction.delete_pet(id)?,
        }
    }
    Ok(staged)
}

/// A change of a pet, as a request asks for it.
pub struct Change<'r> {
    /// `None`: no pet can have the id.
    pub id: Option<i64>,
    /// `None`: the pet is deleted.
    pub patch: Option<PetPatch<'r>>,
}

impl<'r> Change<'r> {
    /// # Errors
    /// 400, if the body is wrong, and 415.
    pub fn parse(call: &Call<'r>) -> Result<Self, Failure> {
        let patch = match call.operation.body {
            Some(_) => Some(PetPatch::from_json(call.json_body()?)?),
            None => None,
        };
        let id = call.path(&PET_ID);
        Ok(Self { id, patch })
    }

    /// The response once the change of this pet is committed. If it is 412, nothing is changed.
    pub fn respond(&self, call: &Call, pet: &Pet) -> Staged {
        call.check_match(pet)?;
        Ok(match &self.patch {
            Some(patch) => tagged(Response::json(200, &patch.apply(pet)), None),
            None => Response::new(204, b""),
        })
    }
}
