//! A constant reply, for comparison: static-axum ADDRESS FILE.

use axum::http::header::CONTENT_TYPE;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().collect();
    let body: &'static [u8] = std::fs::read(&words[2])?.leak();
    let app = axum::Router::new().fallback(move || async move { ([(CONTENT_TYPE, "application/json")], body) });
    let listener = tokio::net::TcpListener::bind(&words[1]).await?;
    axum::serve(axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true))), app).await?;
    Ok(())
}
