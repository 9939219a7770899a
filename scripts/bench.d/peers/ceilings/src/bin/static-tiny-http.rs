//! A constant reply, for comparison: static-tiny-http ADDRESS FILE.

use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let words: Vec<String> = std::env::args().collect();
    let body: &'static [u8] = std::fs::read(&words[2])?.leak();
    let server = Arc::new(tiny_http::Server::http(&words[1])?);
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let server = Arc::clone(&server);
            std::thread::spawn(move || {
                while let Ok(request) = server.recv() {
                    let mut response = tiny_http::Response::from_data(body);
                    if let Ok(header) = "Content-Type: application/json".parse::<tiny_http::Header>() {
                        response.add_header(header);
                    }
                    let _ = request.respond(response);
                }
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| drop(worker.join()));
    Ok(())
}
