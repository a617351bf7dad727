//! What happened, for the owner: by pages, or whole as a file.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderValue, header};
use serde::Deserialize;

use super::{
    api::Api,
    extract::{Owner, Params, Refused},
    respond,
    routes::Routes,
};
use crate::{
    bridge::LARGEST_ACTIVITY_PAGE,
    error::ApiError,
    snapshot::{ActivityCaller, ActivityFilter, ActivityKind, ActivityOutcome, ExportFormat},
    store::ActivityCursor,
};

/// Entries in one answer, unless asked otherwise.
const DEFAULT_PAGE: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActivityParams {
    server: Option<String>,
    caller: Option<ActivityCaller>,
    client: Option<String>,
    program: Option<String>,
    outcome: Option<ActivityOutcome>,
    kind: Option<ActivityKind>,
    text: Option<String>,
    from: Option<u64>,
    to: Option<u64>,
    /// The `next` of an earlier answer.
    cursor: Option<u64>,
    /// The id after which entries are wanted, the oldest first.
    after: Option<u64>,
    limit: Option<usize>,
    /// Everything as a file instead of a page.
    format: Option<ExportFormat>,
}

enum Asked {
    Page(ActivityFilter, ActivityCursor, usize),
    File(ActivityFilter, ExportFormat),
}

impl ActivityParams {
    fn asked(self) -> Result<Asked, ApiError> {
        let filter = ActivityFilter {
            server: self.server,
            caller: self.caller,
            client: self.client,
            program: self.program,
            outcome: self.outcome,
            kind: self.kind,
            text: self.text,
            from: self.from,
            to: self.to,
        };
        if let Some(format) = self.format {
            if self.cursor.is_some() || self.after.is_some() || self.limit.is_some() {
                return Err(ApiError::bad_request(
                    "cursor, after and limit are for pages; with format everything comes at once.",
                ));
            }
            return Ok(Asked::File(filter, format));
        }
        let cursor = match (self.cursor, self.after) {
            (None, None) => ActivityCursor::Newest,
            (Some(before), None) => ActivityCursor::Before(before),
            (None, Some(after)) => ActivityCursor::After(after),
            (Some(_), Some(_)) => {
                return Err(ApiError::bad_request("Give cursor or after, not both."));
            }
        };
        let limit = self.limit.unwrap_or(DEFAULT_PAGE);
        if !(1..=LARGEST_ACTIVITY_PAGE).contains(&limit) {
            return Err(ApiError::bad_request(format!(
                "limit has to be between 1 and {LARGEST_ACTIVITY_PAGE}."
            )));
        }
        // SQLite's numbers end there.
        let fits = |number: Option<u64>| number.is_none_or(|number| i64::try_from(number).is_ok());
        if ![self.from, self.to, self.cursor, self.after].into_iter().all(fits) {
            return Err(ApiError::bad_request("from, to, cursor or after is too large."));
        }
        Ok(Asked::Page(filter, cursor, limit))
    }
}

pub(super) async fn list<A: Api>(
    State(routes): State<Routes<A>>,
    _: Owner,
    Params(params): Params<ActivityParams>,
) -> Result<Response, Refused> {
    match params.asked()? {
        Asked::Page(filter, cursor, limit) => {
            let page = routes.api.activity(filter, cursor, limit).await?;
            Ok(respond::json(&page))
        }
        Asked::File(filter, format) => {
            let (kind, name) = match format {
                ExportFormat::Jsonl => ("application/x-ndjson", "attachment; filename=\"activity.jsonl\""),
                ExportFormat::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"activity.csv\""),
            };
            let pieces = routes.api.export_activity(filter, format);
            let mut response = Response::new(Body::from_stream(pieces));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static(name));
            Ok(response)
        }
    }
}

#[cfg(test)]
mod tests;
