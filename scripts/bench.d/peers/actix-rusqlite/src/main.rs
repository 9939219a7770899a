//! The three operations, and the change of a pet, on actix-web, rusqlite and a pool, on the blocking threads:
//! peer-actix-rusqlite ADDRESS DATABASE.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actix_web::http::header;
use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use r2d2_sqlite::SqliteConnectionManager;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

type Pool = r2d2::Pool<SqliteConnectionManager>;

#[derive(Serialize)]
struct Pet {
    id: i64,
    name: String,
    #[serde(rename = "categoryId")]
    category_id: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<String>,
}

#[derive(Deserialize)]
struct NewPet {
    name: String,
    #[serde(rename = "categoryId")]
    category_id: i64,
    status: Option<String>,
}

#[derive(Deserialize)]
struct PetPatch {
    name: Option<String>,
    #[serde(rename = "categoryId")]
    category_id: Option<i64>,
    status: Option<String>,
}

#[derive(Deserialize)]
struct Page {
    limit: Option<u32>,
    status: Option<String>,
    after: Option<i64>,
}

fn pet(row: &Row) -> rusqlite::Result<Pet> {
    Ok(Pet { id: row.get(0)?, name: row.get(1)?, category_id: row.get(2)?, status: row.get(3)? })
}

/// Runs on a blocking thread: checks the key, then does the work, on one connection.
async fn with_connection(
    pool: &Pool,
    request: &HttpRequest,
    work: impl FnOnce(&Connection) -> rusqlite::Result<HttpReply> + Send + 'static,
) -> HttpResponse {
    let key = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let Some(digest) = key.map(|key| Sha256::digest(key).to_vec()) else {
        return HttpResponse::Unauthorized().finish();
    };
    let pool = pool.clone();
    let done = web::block(move || -> Result<HttpReply, Box<dyn std::error::Error + Send + Sync>> {
        let connection = pool.get()?;
        let expires: Option<Option<i64>> = connection
            .prepare_cached("SELECT expires_at FROM api_keys WHERE digest = ?1")?
            .query_row([digest], |row| row.get(0))
            .optional()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
        match expires {
            Some(expires) if expires.is_none_or(|at| at > now) => Ok(work(&connection)?),
            _ => Ok(HttpReply::Unauthorized),
        }
    })
    .await;
    match done {
        Ok(Ok(HttpReply::Pets(pets))) => HttpResponse::Ok().json(pets),
        Ok(Ok(HttpReply::Pet(Some(pet)))) => HttpResponse::Ok().json(pet),
        Ok(Ok(HttpReply::Pet(None))) => HttpResponse::NotFound().finish(),
        Ok(Ok(HttpReply::Created(pet))) => HttpResponse::Created().json(pet),
        Ok(Ok(HttpReply::Unauthorized)) => HttpResponse::Unauthorized().finish(),
        Ok(Err(_)) | Err(_) => HttpResponse::ServiceUnavailable().finish(),
    }
}

enum HttpReply {
    Pets(Vec<Pet>),
    Pet(Option<Pet>),
    Created(Pet),
    Unauthorized,
}

async fn list(pool: web::Data<Pool>, request: HttpRequest, page: web::Query<Page>) -> HttpResponse {
    let Page { limit, status, after } = page.into_inner();
    let (limit, after) = (limit.unwrap_or(20), after.unwrap_or(i64::MIN));
    if !(1..=100).contains(&limit) {
        return HttpResponse::BadRequest().finish();
    }
    with_connection(&pool, &request, move |connection| {
        let pets = match status {
            Some(status) => connection
                .prepare_cached("SELECT id, name, category_id, status FROM pets WHERE status = ?1 AND id > ?2 ORDER BY id LIMIT ?3")?
                .query_map(params![status, after, limit], pet)?
                .collect::<Result<_, _>>()?,
            None => connection
                .prepare_cached("SELECT id, name, category_id, status FROM pets WHERE id > ?1 ORDER BY id LIMIT ?2")?
                .query_map(params![after, limit], pet)?
                .collect::<Result<_, _>>()?,
        };
        Ok(HttpReply::Pets(pets))
    })
    .await
}

async fn show(pool: web::Data<Pool>, request: HttpRequest, id: web::Path<i64>) -> HttpResponse {
    let id = id.into_inner();
    with_connection(&pool, &request, move |connection| {
        let mut statement = connection.prepare_cached("SELECT id, name, category_id, status FROM pets WHERE id = ?1")?;
        Ok(HttpReply::Pet(statement.query_row([id], pet).optional()?))
    })
    .await
}

async fn create(pool: web::Data<Pool>, request: HttpRequest, new: web::Json<NewPet>) -> HttpResponse {
    let new = new.into_inner();
    with_connection(&pool, &request, move |connection| {
        let id = connection
            .prepare_cached("INSERT INTO pets (name, category_id, status) VALUES (?1, ?2, ?3)")?
            .insert(params![new.name, new.category_id, new.status])?;
        Ok(HttpReply::Created(Pet { id, name: new.name, category_id: new.category_id, status: new.status }))
    })
    .await
}

async fn change(
    pool: web::Data<Pool>,
    request: HttpRequest,
    id: web::Path<i64>,
    patch: web::Json<PetPatch>,
) -> HttpResponse {
    let (id, patch) = (id.into_inner(), patch.into_inner());
    with_connection(&pool, &request, move |connection| {
        let mut statement = connection.prepare_cached(
            "UPDATE pets SET name = coalesce(?2, name), category_id = coalesce(?3, category_id), \
             status = coalesce(?4, status) WHERE id = ?1 RETURNING id, name, category_id, status",
        )?;
        let values = params![id, patch.name, patch.category_id, patch.status];
        Ok(HttpReply::Pet(statement.query_row(values, pet).optional()?))
    })
    .await
}

#[actix_web::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let manager = SqliteConnectionManager::file(&words[2]).with_init(|connection| {
        connection.busy_timeout(Duration::from_secs(30))?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;")
    });
    let pool = web::Data::new(Pool::new(manager)?);
    HttpServer::new(move || {
        App::new()
            .app_data(pool.clone())
            .route("/v1/pets", web::get().to(list))
            .route("/v1/pets", web::post().to(create))
            .route("/v1/pets/{id}", web::get().to(show))
            .route("/v1/pets/{id}", web::patch().to(change))
    })
    .bind(&words[1])?
    .run()
    .await?;
    Ok(())
}
