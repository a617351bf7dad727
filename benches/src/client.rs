//! The leanest HTTP client there is: its own cost must not hide the bridge's.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// One kept-alive connection.
pub(crate) struct Client {
    reader: BufReader<TcpStream>,
    port: u16,
}

impl Client {
    /// `None` while nobody listens.
    pub(crate) fn connect(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self {
            reader: BufReader::with_capacity(256 * 1024, stream),
            port,
        })
    }

    /// The bytes of a GET with these header lines (each ended).
    pub(crate) fn get(&self, path: &str, headers: &str) -> Vec<u8> {
        format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n{headers}\r\n", self.port).into_bytes()
    }

    /// The bytes of a call.
    pub(crate) fn call(&self, body: &str) -> Vec<u8> {
        format!(
            "POST /mcp/call HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )
        .into_bytes()
    }

    /// Sends a request and reads its whole answer: status, entity tag, body.
    pub(crate) fn send(&mut self, request: &[u8]) -> (u16, String, Vec<u8>) {
        self.reader.get_mut().write_all(request).expect("the bridge reads");
        let (mut status, mut length, mut tag) = (0, 0, String::new());
        let mut line = String::new();
        loop {
            line.clear();
            self.reader.read_line(&mut line).expect("the bridge answers");
            let text = line.trim_end();
            if text.is_empty() {
                break;
            }
            match text.split_once(": ") {
                None => {
                    status = text
                        .split(' ')
                        .nth(1)
                        .and_then(|word| word.parse().ok())
                        .expect("a status")
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.parse().expect("a length");
                }
                Some((name, value)) if name.eq_ignore_ascii_case("etag") => value.clone_into(&mut tag),
                Some(_) => {}
            }
        }
        let mut body = vec![0; if status == 304 { 0 } else { length }];
        self.reader.read_exact(&mut body).expect("the whole answer");
        (status, tag, body)
    }
}
