//! The three operations, and the change of a pet, on axum and sqlx: peer-axum-sqlx ADDRESS DATABASE.

use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{Path, Query, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};

#[derive(Serialize, sqlx::FromRow)]
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

fn failed(error: sqlx::Error) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response()
}

async fn authenticate(State(pool): State<SqlitePool>, request: Request, next: Next) -> Response {
    let key = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let Some(key) = key else { return StatusCode::UNAUTHORIZED.into_response() };
    let digest = Sha256::digest(key).to_vec();
    let expires: Result<Option<(Option<i64>,)>, _> =
        sqlx::query_as("SELECT expires_at FROM api_keys WHERE digest = ?1").bind(digest).fetch_optional(&pool).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() as i64;
    match expires {
        Ok(Some((expires,))) if expires.is_none_or(|at| at > now) => next.run(request).await,
        Ok(_) => StatusCode::UNAUTHORIZED.into_response(),
        Err(error) => failed(error),
    }
}

async fn list(State(pool): State<SqlitePool>, Query(page): Query<Page>) -> Response {
    let limit = page.limit.unwrap_or(20);
    if !(1..=100).contains(&limit) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let after = page.after.unwrap_or(i64::MIN);
    let pets = match page.status {
        Some(status) => {
            sqlx::query_as::<_, Pet>("SELECT id, name, category_id, status FROM pets WHERE status = ?1 AND id > ?2 ORDER BY id LIMIT ?3")
                .bind(status).bind(after).bind(limit).fetch_all(&pool).await
        }
        None => {
            sqlx::query_as::<_, Pet>("SELECT id, name, category_id, status FROM pets WHERE id > ?1 ORDER BY id LIMIT ?2")
                .bind(after).bind(limit).fetch_all(&pool).await
        }
    };
    pets.map_or_else(failed, |pets| Json(pets).into_response())
}

async fn show(State(pool): State<SqlitePool>, Path(id): Path<i64>) -> Response {
    let pet = sqlx::query_as::<_, Pet>("SELECT id, name, category_id, status FROM pets WHERE id = ?1")
        .bind(id).fetch_optional(&pool).await;
    match pet {
        Ok(Some(pet)) => Json(pet).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => failed(error),
    }
}

async fn create(State(pool): State<SqlitePool>, Json(new): Json<NewPet>) -> Response {
    let created = sqlx::query_as::<_, Pet>(
        "INSERT INTO pets (name, category_id, status) VALUES (?1, ?2, ?3) RETURNING id, name, category_id, status",
    )
    .bind(new.name).bind(new.category_id).bind(new.status).fetch_one(&pool).await;
    created.map_or_else(failed, |pet| (StatusCode::CREATED, Json(pet)).into_response())
}

async fn change(State(pool): State<SqlitePool>, Path(id): Path<i64>, Json(patch): Json<PetPatch>) -> Response {
    let changed = sqlx::query_as::<_, Pet>(
        "UPDATE pets SET name = coalesce(?2, name), category_id = coalesce(?3, category_id), \
         status = coalesce(?4, status) WHERE id = ?1 RETURNING id, name, category_id, status",
    )
    .bind(id).bind(patch.name).bind(patch.category_id).bind(patch.status).fetch_optional(&pool).await;
    match changed {
        Ok(Some(pet)) => Json(pet).into_response(),
        Ok(None) => StatusCode::NOT_FOUND.into_response(),
        Err(error) => failed(error),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let options = SqliteConnectOptions::from_str(&words[2])?
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_secs(30));
    let pool = SqlitePoolOptions::new().connect_with(options).await?;
    let app = Router::new()
        .route("/v1/pets", get(list).post(create))
        .route("/v1/pets/{id}", get(show).patch(change))
        .layer(middleware::from_fn_with_state(pool.clone(), authenticate))
        .with_state(pool);
    let listener = tokio::net::TcpListener::bind(&words[1]).await?;
    axum::serve(axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true))), app).await?;
    Ok(())
}
