//! What a client's token has to be good for, route by route. Pure.

use http::Method;

use super::credential::PAIR_PATH;
use crate::caller::Scope;

/// What this path needs of a client; `None` = nothing, or what its handler says by itself. A path that is not served needs
/// nothing: there is nothing at it.
pub(super) fn needed(method: &Method, path: &str) -> Option<Scope> {
    match path {
        "/healthz" | PAIR_PATH => return None,
        "/mcp/call" | "/mcp/resources/read" | "/mcp/prompts/get" => return Some(Scope::Call),
        _ => {}
    }
    if path.starts_with("/mcp/results/") {
        return Some(Scope::Call);
    }
    // What became of a wish is for whoever had it, whatever else it may.
    if path.starts_with("/mcp/approvals/") {
        return None;
    }
    let reads = matches!(*method, Method::GET | Method::HEAD);
    // Changes are weighed where it is known what they are.
    (reads && path.starts_with("/mcp/")).then_some(Scope::Read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::served;

    #[test]
    fn every_route_that_tells_or_does_something_needs_a_scope() {
        for (method, path) in served() {
            let needs = needed(&method, path);
            let expected = match (method.as_str(), path) {
                ("GET", "/healthz" | "/mcp/approvals/{id}") | ("POST", "/mcp/clients/pair") => None,
                ("POST", "/mcp/call" | "/mcp/resources/read" | "/mcp/prompts/get") | ("GET", "/mcp/results/{id}") => {
                    Some(Scope::Call)
                }
                // The handlers of these know whether a client may.
                ("POST" | "DELETE", _) => None,
                _ => Some(Scope::Read),
            };
            assert_eq!(needs, expected, "{method} {path}");
        }
    }
}
