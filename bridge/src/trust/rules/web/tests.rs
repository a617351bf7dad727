use super::*;

const ORIGIN: &str = "https://api.example.com";

fn below_users(text: &str) -> Fit {
    fit(text, ORIGIN, &["v1".to_owned(), "users".to_owned()])
}

#[test]
fn an_address_below_the_path_fits_however_it_ends() {
    for text in [
        "https://api.example.com/v1/users",
        "https://api.example.com/v1/users/",
        "https://api.example.com/v1/users/7",
        "https://api.example.com/v1/users/7/a%20b",
        "https://api.example.com/v1/users?to=https://other.example/../x@y",
        "https://api.example.com/v1/users#top",
        "https://api.example.com:443/v1/users",
        "HTTPS://API.Example.COM/v1/users",
        "https://api.example.com/v1/us%65rs",
    ] {
        assert_eq!(below_users(text), Fit::Fits, "{text}");
    }
}

#[test]
fn another_site_or_another_path_differs() {
    for text in [
        "http://api.example.com:8080/v1/users",
        "http://api.example.com/v2",
        "wss://api.example.com/v2",
        "https://api.example.com:8443/v1/users",
        "https://example.com/v1/users",
        "https://evilapi.example.com/v1/users",
        "https://api.example.com.evil.example/v1/users",
        "https://evil.example/https://api.example.com/v1/users",
        "https://evil.example/?x=https://api.example.com/v1/users",
        "https://evil.example/@api.example.com/v1/users",
        "https://api.example.com/v1/usersx",
        "https://api.example.com/v1/user",
        "https://api.example.com/v1",
        "https://api.example.com/",
        "https://api.example.com",
        "https://api.example.com?/v1/users",
        "https://api.example.com/v2/users",
        "https://api.example.com/x/v1/users",
        "ftp://example.com/v1/users",
        "file:///v1/users",
    ] {
        assert_eq!(below_users(text), Fit::Differs, "{text}");
    }
}

#[test]
fn what_somebody_could_read_as_another_address_never_fits_and_never_differs() {
    for text in [
        // Who is before the `@`, and where the host begins.
        "https://user@api.example.com/v1/users",
        "https://user:word@api.example.com/v1/users",
        "https://api.example.com@evil.example/v1/users",
        "https://api.example.com:443@evil.example/v1/users",
        "https://evil.example\\@api.example.com/v1/users",
        "https:\\\\api.example.com\\v1\\users",
        "https:/api.example.com/v1/users",
        "https:api.example.com/v1/users",
        "https:////api.example.com/v1/users",
        "//api.example.com/v1/users",
        "api.example.com/v1/users",
        "api.example.com:443/v1/users",
        " https://api.example.com/v1/users",
        "https://api.example.com/v1/users\n",
        "ht\ttps://api.example.com/v1/users",
        "https://api.exa\tmple.com/v1/users",
        // The same host, spelled in another way.
        "https://api.example.com./v1/users",
        "https://api%2eexample.com/v1/users",
        "https://api。example.com/v1/users",
        "https://ａｐｉ.example.com/v1/users",
        "https://api.example.com:/v1/users",
        "https://api.example.com:0443/v1/users",
        // Paths that climb, or may.
        "https://api.example.com/v1/users/../admin",
        "https://api.example.com/v1/users/%2e%2e/admin",
        "https://api.example.com/v1/users/.%2E/admin",
        "https://api.example.com/v1/users/%252e%252e/admin",
        "https://api.example.com/v1/users/..%2fadmin",
        "https://api.example.com/v1/users/..%5cadmin",
        "https://api.example.com/v1/users/..;/admin",
        "https://api.example.com/v1/users/./x",
        "https://api.example.com/x/../v1/users",
        "https://api.example.com/v1//users",
        "https://api.example.com//v1/users",
        "https://api.example.com/v1%2fusers",
        "https://api.example.com/v1/users/%00",
        "https://api.example.com/v1/users/%ff",
        "https://api.example.com/V1/Users",
        "https://api.example.com/v1/users%20/",
        "https://api.example.com/v1/users./x",
        "https://api.example.com/v1/u\u{17f}ers",
        "https://api.example.com/v1/\u{ff55}sers",
        "https://api.example.com/v1/users%3Fx",
        "https://api.example.com/v1/%E2%80%8Busers",
        "https://api.example.com/v1/users/..%20/admin",
        "https://api.example.com/v1/users/.%20./admin",
        "https://api.example.com/v1/users/\u{ff0e}\u{ff0e}/admin",
        "https://api.example.com/v1/users/%EF%BC%8E%EF%BC%8E/admin",
        "https://api.example.com/v1/users/.%E2%80%8B./admin",
        "https://api.example.com/v1/users/\u{2025}/admin",
        "https://api.example.com/v1/users/.../admin",
        // Patterns, which some programs expand.
        "https://api.example.com/v1/users/{..,x}/admin",
        "https://api.example.com/v1/users/[.-.][.-.]/admin",
        "https://{api.example.com,evil.example}/v1/users",
        "https://ap[i].example.com/v1/users",
        "https://evil.example/{x,y}",
        // More than one.
        "https://evil.example/,https://api.example.com/v1/users",
        "https://evil.example/ https://api.example.com/v1/users",
        "https://evil.example/|https://api.example.com/v1/users",
        "https://api.example.com/v1/users\"https://evil.example",
        "<https://api.example.com/v1/users>",
        // The same host, by another way.
        "http://api.example.com/v1/users",
        "http://api.example.com:443/v1/users",
        "ftp://api.example.com/v1/users",
        "wss://api.example.com/v1/users",
        "git+https://API.example.com/v1/users",
        "feed:https://api.example.com/v1/users",
        "view-source:https://api.example.com/v1/users",
        "file:////api.example.com/v1/users",
        "not an address",
        "",
    ] {
        assert_eq!(below_users(text), Fit::Unsure, "{text:?}");
    }
}

#[test]
fn a_host_in_other_letters_fits_only_as_it_is_sent() {
    let buecher = "https://xn--bcher-kva.example";
    assert_eq!(fit("https://xn--bcher-kva.example/a", buecher, &[]), Fit::Fits);
    assert_eq!(fit("https://bücher.example/a", buecher, &[]), Fit::Unsure);
    // Some readers make `ss` of `ß`, some do not.
    assert_eq!(
        fit("https://straße.example/", "https://strasse.example", &[]),
        Fit::Unsure
    );
}

#[test]
fn a_number_that_is_an_address_in_another_form_never_differs() {
    let origin = "http://127.0.0.1:8080";
    assert_eq!(fit("http://127.0.0.1:8080/x", origin, &[]), Fit::Fits);
    for text in [
        "http://0x7f.1:8080/x",
        "http://2130706433:8080/x",
        "http://127.1:8080/x",
        "http://0177.0.0.1:8080/x",
        "http://[::ffff:127.0.0.1]:8080/x",
        "http://[::ffff:7f00:1]:8080/x",
    ] {
        assert_ne!(fit(text, origin, &[]), Fit::Differs, "{text}");
        assert_ne!(fit(text, origin, &[]), Fit::Fits, "{text}");
    }
    assert_eq!(fit("http://127.0.0.1/x", origin, &[]), Fit::Differs);
    assert_eq!(fit("http://[::1]:8080/x", "http://[::1]:8080", &[]), Fit::Fits);
}

#[test]
fn this_computer_is_the_same_by_each_of_its_names() {
    for origin in ["http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:8080"] {
        for text in [
            "http://localhost:8080/x",
            "http://127.0.0.1:8080/x",
            "http://127.0.0.2:8080/x",
            "http://0.0.0.0:8080/x",
            "http://[::1]:8080/x",
            "http://app.localhost:8080/x",
        ] {
            let expected = match text.strip_suffix("/x") == Some(origin) {
                true => Fit::Fits,
                false => Fit::Unsure,
            };
            assert_eq!(fit(text, origin, &[]), expected, "{text} for {origin}");
        }
        assert_eq!(fit("http://localhost:9090/x", origin, &[]), Fit::Differs);
    }
}

#[test]
fn a_condition_on_a_whole_origin_covers_every_path_that_is_plain() {
    for (text, expected) in [
        ("https://api.example.com", Fit::Fits),
        ("https://api.example.com/", Fit::Fits),
        ("https://api.example.com/a/b", Fit::Fits),
        ("https://api.example.com/a/../b", Fit::Unsure),
        ("https://api.example.org/", Fit::Differs),
    ] {
        assert_eq!(fit(text, ORIGIN, &[]), expected, "{text}");
    }
}

#[test]
fn an_origin_is_written_in_one_way_only() {
    for origin in ["https://example.com", "http://example.com:8080", "https://[::1]:1"] {
        assert!(read_origin(origin).is_some(), "{origin}");
    }
    for origin in [
        "https://example.com/",
        "https://example.com/a",
        "https://Example.com",
        "https://example.com:443",
        "https://user@example.com",
        "https://bücher.example",
        "ftp://example.com",
        "file:///",
        "example.com",
        "",
    ] {
        assert!(read_origin(origin).is_none(), "{origin}");
    }
}
