//! A browser without a screen, for sign-ins that no person is needed for: it follows redirects one at a time, keeps
//! cookies, and knows the forms of a page. Loopback only, as plain HTTP.

use url::Url;

use crate::http::{Address, Answer, Connection};

/// A sign-in needs a handful; more go in a circle.
const MOST_REDIRECTS: usize = 20;

/// What one person's browser remembers.
#[derive(Debug, Default)]
pub struct Browser {
    /// Port, name, value: all hosts are this computer.
    cookies: Vec<(u16, String, String)>,
}

/// A page, or a redirect that was not followed.
#[derive(Debug)]
pub struct Page {
    pub url: Url,
    pub status: u16,
    pub body: String,
    /// Where it sends the browser.
    pub location: Option<Url>,
}

/// A form as it would be sent without a person's change.
#[derive(Debug, PartialEq, Eq)]
pub struct Form {
    pub action: Url,
    pub fields: Vec<(String, String)>,
}

impl Browser {
    /// Opens an address, and goes wherever it is sent, up to an address that begins with `end`, which is not opened.
    ///
    /// # Errors
    /// The page at which it stands, where nothing sends it on.
    ///
    /// # Panics
    /// When an address is not on this computer, nobody answers, or the redirects have no end.
    pub fn follow(&mut self, url: &Url, end: &str) -> Result<Url, Box<Page>> {
        let page = self.get(url);
        self.follow_from(page, end)
    }

    /// The same from a page on.
    ///
    /// # Errors
    /// As [`Browser::follow`].
    ///
    /// # Panics
    /// As [`Browser::follow`].
    pub fn follow_from(&mut self, mut page: Page, end: &str) -> Result<Url, Box<Page>> {
        for _ in 0..MOST_REDIRECTS {
            match page.location.take() {
                Some(next) if next.as_str().starts_with(end) => return Ok(next),
                Some(next) => page = self.get(&next),
                None => return Err(Box::new(page)),
            }
        }
        panic!("redirects without an end, at last to {}", page.url);
    }

    /// Opens one address.
    ///
    /// # Panics
    /// As [`Browser::follow`].
    pub fn get(&mut self, url: &Url) -> Page {
        self.send("GET", url, "")
    }

    /// Sends a form, with some fields filled in.
    ///
    /// # Panics
    /// As [`Browser::follow`].
    pub fn submit(&mut self, form: &Form, filled: &[(&str, &str)]) -> Page {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in &form.fields {
            if !filled.iter().any(|(filled, _)| filled == name) {
                body.append_pair(name, value);
            }
        }
        body.extend_pairs(filled);
        self.send("POST", &form.action, &body.finish())
    }

    fn send(&mut self, method: &str, url: &Url, body: &str) -> Page {
        let host = url.host_str().unwrap_or_default();
        let is_here = url.scheme() == "http" && matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        assert!(is_here, "{url} is not a plain address on this computer");
        let port = url.port().expect("servers of tests have ports of their own");
        let authority = format!("{host}:{port}");
        let mine = self.cookies.iter().filter(|(of, ..)| *of == port);
        let cookies: Vec<_> = mine.map(|(_, name, value)| format!("{name}={value}")).collect();
        let cookies = cookies.join("; ");
        // As on every way from one server to another.
        let mut headers = vec![("host", authority.as_str()), ("sec-fetch-site", "cross-site")];
        if !cookies.is_empty() {
            headers.push(("cookie", &cookies));
        }
        if !body.is_empty() {
            headers.push(("content-type", "application/x-www-form-urlencoded"));
        }
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let answer = Connection::open(&Address::Tcp(port)).send(method, path, &headers, body.as_bytes());
        self.remember(port, &answer);
        Page {
            url: url.clone(),
            status: answer.status,
            location: (300..400)
                .contains(&answer.status)
                .then(|| answer.header("location").and_then(|to| url.join(to).ok()))
                .flatten(),
            body: answer.text(),
        }
    }

    fn remember(&mut self, port: u16, answer: &Answer) {
        for header in answer.headers.get_all("set-cookie") {
            let text = header.to_str().unwrap_or_default();
            let Some((name, value)) = text.split(';').next().and_then(|pair| pair.split_once('=')) else {
                continue;
            };
            self.cookies
                .retain(|(of, known, _)| (*of, known.as_str()) != (port, name));
            if !value.is_empty() {
                self.cookies.push((port, name.to_owned(), value.to_owned()));
            }
        }
    }
}

impl Page {
    /// The page's first form.
    ///
    /// # Panics
    /// When it has none.
    pub fn form(&self) -> Form {
        let start = self
            .body
            .find("<form")
            .unwrap_or_else(|| panic!("no form at {}: {}", self.url, self.body));
        let whole = &self.body[start..];
        let whole = &whole[..whole.find("</form>").unwrap_or(whole.len())];
        let action = attribute(whole, "action").unwrap_or_default();
        let fields = whole.split("<input").skip(1).filter_map(|input| {
            let input = &input[..input.find('>').unwrap_or(input.len())];
            Some((attribute(input, "name")?, attribute(input, "value").unwrap_or_default()))
        });
        Form {
            action: self.url.join(&action).expect("a form leads somewhere"),
            fields: fields.collect(),
        }
    }
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    Some(rest.split('"').next()?.replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_with_its_hidden_fields() {
        let page = Page {
            url: Url::parse("http://localhost:1/a/b").unwrap(),
            status: 200,
            location: None,
            body: r#"<h1>Sign in</h1><form autocomplete="off" action="/x?y=1&amp;z" method="post">
                <input type="hidden" name="prompt" value="login"/><input required type="text" name="login"></form>"#
                .to_owned(),
        };
        let form = page.form();
        assert_eq!(form.action.as_str(), "http://localhost:1/x?y=1&z");
        assert_eq!(
            form.fields,
            [
                ("prompt".to_owned(), "login".to_owned()),
                ("login".to_owned(), String::new())
            ]
        );
    }
}
