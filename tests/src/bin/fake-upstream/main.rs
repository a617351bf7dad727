//! An MCP server that behaves as its arguments say, well or badly, over stdio or HTTP.
//!
//! Speaks raw JSON without any SDK, so that tests see exactly what was sent and can answer what no SDK would.
//! `fake-upstream [KIND] [--name value]…`; the kinds and names are listed in `options`.

mod answers;
mod asking;
mod gzip;
mod http;
mod offers;
mod old_sse;
mod options;
mod protocol;
mod record;
mod sandbox;
mod stdio;
mod tools;

use std::process::ExitCode;

use options::Options;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("fake-upstream: {message}");
            return ExitCode::from(64);
        }
    };
    match options.http {
        Some(port) => http::serve(port, options),
        None => stdio::serve(options),
    }
}
