//! An authorization server, and an MCP server that it protects, that behave as their arguments say, well or badly.
//!
//! `fake-authority [--name value]…` listens at 127.0.0.1, prints its port as the first line and serves until it is killed.
//! The MCP server is at `/mcp` (streamable HTTP with plain JSON answers); the sign-in page says yes at once.
//! `POST /fake/set` with a JSON object of names and values changes options while it runs; `GET /fake/state` counts.
//! Every other request is one line of JSON in `--record`: `{"method","path","query","authorization","body"}`, the body of
//! a form as an object.
//!
//! | name | values (the first is the default) | what |
//! |---|---|---|
//! | `port` | `0`, a number | where it listens |
//! | `record` | a file | what arrived |
//! | `host` | `127.0.0.1`, `localhost` | the host that its own addresses name |
//! | `issuer-path` | empty, such as `/tenant` | the path of the issuer |
//! | `authority` | empty, an address | the MCP server names this issuer instead of our own |
//! | `challenge` | `absolute` `relative` `absent` `bare` `basic` `odd` | `resource_metadata` of a 401; no header; another scheme |
//! | `challenge-metadata` | empty, an address | `resource_metadata` as given |
//! | `prm` | `path` `root` `none` `broken` | where RFC 9728 metadata is; `broken` answers 502 |
//! | `resource` | empty, an address | what that metadata says it protects |
//! | `metadata` | `inserted` `appended` `root` `oidc` `oidc-appended` `none` `broken` | where the server's own metadata is |
//! | `metadata-issuer` | empty, a text | the issuer that it claims |
//! | `authorization-endpoint`, `token-endpoint`, `registration-endpoint`, `revocation-endpoint` | empty, a text | as given |
//! | `pkce` | `S256` `none` `plain` | what it says of PKCE; it always checks |
//! | `registration` | `open` `absent` `null` `refused` `refuses-scheme` `drops-scheme` `html` | dynamic registration |
//! | `auth-methods` | `none`, such as `client_secret_basic` | methods that it supports; it registers clients with the first |
//! | `method-returned` | empty, a method | registers clients with this method instead |
//! | `client-id`, `client-secret` | empty, texts | a client that is registered already |
//! | `metadata-documents` | `false` `true` | takes client metadata documents: any https client id |
//! | `authorize` | `ok` `deny` `refuses-scheme` | the sign-in page |
//! | `redirects` | `exact` `any-port` | how redirect addresses are compared |
//! | `iss` | `right` `wrong` `absent` `slash` | RFC 9207 |
//! | `iss-advertised` | `true` `false` | whether its metadata promises it |
//! | `lifetime` | `3600`, seconds | of a token |
//! | `refresh` | `rotate` `keep` `none` | refresh tokens |
//! | `token-fails` | `no`, a status, `html`, `redirect`, `repeats`, an error code | what token requests get; what they sent |
//! | `token-fails-for` | `all` `refresh` `code` | which |
//! | `token-delay` | `0`, milliseconds | before a token request is answered |
//! | `scopes` | empty, such as `read write` | what the challenge asks for |
//! | `scopes-supported` | empty, a list | what the MCP server's metadata tells |
//! | `authority-scopes` | empty, a list | what the authorization server's metadata tells |
//! | `step-up` | empty, a scope, `endless` | calls of `write` need this scope more |
//! | `refuse-tokens` | `false` `true` | the MCP server accepts no token |
//! | `repeats` | `no` `everything` `protocol` | puts what it was sent into its MCP answers; names it as its protocol revision |
//! | `open` | `false` `true` | the MCP server wants no token |
//! | `forget-clients` | setting it to anything forgets them once | as after a database loss |

mod authority;
mod mcp;
mod options;
mod repeating;
mod web;

use std::{process::ExitCode, sync::Arc};

use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use options::Options;
use web::Site;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("fake-authority: {message}");
            return ExitCode::from(64);
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async move {
        let port: u16 = options.get("port").parse().expect("a port");
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", port))
            .await
            .expect("the port is free");
        let port = listener.local_addr().expect("bound").port();
        println!("{port}");
        let site = Arc::new(Site::new(port, options));
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                return ExitCode::FAILURE;
            };
            let site = Arc::clone(&site);
            tokio::spawn(async move {
                let service = service_fn(move |request| web::respond(Arc::clone(&site), request));
                // A client that hangs up is no concern of ours.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}
