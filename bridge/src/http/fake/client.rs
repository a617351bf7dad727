//! A client that sends exactly the bytes it is given, and what it reads.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

pub(in crate::http) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

pub(in crate::http) fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// One HTTP answer, as far as it came.
#[derive(Debug)]
pub(in crate::http) struct Reply {
    /// 0 = the connection ended without one.
    pub(in crate::http) status: u16,
    pub(in crate::http) head: String,
    pub(in crate::http) body: String,
}

impl Reply {
    pub(in crate::http) async fn read(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Self {
        let read = async {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut byte).await {
                    Ok(1) => head.push(byte[0]),
                    Ok(_) | Err(_) => break,
                }
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let status = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
            let length = head
                .split("\r\n")
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok())
                .unwrap_or(0);
            let mut body = Vec::new();
            let _ = stream.take(length).read_to_end(&mut body).await;
            let body = String::from_utf8(body).unwrap();
            Self { status, head, body }
        };
        tokio::time::timeout(Duration::from_secs(20), read)
            .await
            .expect("an answer in time")
    }

    pub(in crate::http) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Checks what every refusal looks like and gives its code.
    #[track_caller]
    pub(in crate::http) fn refusal(&self) -> String {
        let body = self.json();
        assert_eq!(body["ok"], false, "{self:?}");
        assert!(
            body["error"].as_str().is_some_and(|error| !error.is_empty()),
            "{self:?}"
        );
        self.assert_common_headers();
        body["code"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(in crate::http) fn assert_common_headers(&self) {
        for line in [
            "x-content-type-options: nosniff",
            "cache-control: no-store",
            "content-security-policy: default-src 'none'; frame-ancestors 'none'",
            "cross-origin-resource-policy: same-origin",
            "referrer-policy: no-referrer",
        ] {
            assert!(self.head.contains(line), "{line} is missing in {self:?}");
        }
        assert!(!self.head.contains("access-control-"), "{self:?}");
    }
}
