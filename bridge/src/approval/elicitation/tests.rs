use serde_json::json;

use super::*;

fn form(properties: Value) -> Value {
    json!({"message": "Please fill in", "requestedSchema": {"type": "object", "properties": properties}})
}

fn page(url: &str) -> Value {
    json!({"mode": "url", "message": "Look there", "url": url, "elicitationId": "1"})
}

fn said(properties: Value, required: Value, content: Value) -> Result<(), String> {
    let mut params = form(properties);
    params["requestedSchema"]["required"] = required;
    let asks = read(&params).unwrap();
    let content = content.as_object().cloned();
    approved(&asks, content).map(|_| ()).map_err(|wrong| wrong.to_string())
}

#[test]
fn every_kind_of_field_proposes_its_default_and_keeps_its_schema() {
    let properties = json!({
        "name": {"type": "string", "default": "Ann", "x-more": 1},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "gone"], "default": "active"},
        "titled": {"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"},
        "legacy": {"type": "string", "enum": ["x"], "enumNames": ["X"], "default": "x"},
        "several": {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}, "default": ["g"]},
        "several_titled": {"type": "array", "items": {"anyOf": [{"const": "r", "title": "R"}]}, "default": ["r"]},
        "sure": {"type": "boolean", "default": true},
        "none": {"type": "string"},
        "bad": {"type": "integer", "default": "x"},
    });
    let params = form(properties.clone());
    let Elicitation::Form {
        schema,
        defaults,
        message,
    } = read(&params).unwrap()
    else {
        panic!("no form")
    };
    assert_eq!(message, "Please fill in");
    assert_eq!(schema["properties"], properties);
    assert_eq!(
        defaults,
        json!({
            "name": "Ann", "age": 30, "score": 95.5, "status": "active", "titled": "a", "legacy": "x",
            "several": ["g"], "several_titled": ["r"], "sure": true,
        })
    );
}

#[test]
fn values_are_checked_and_the_sentence_names_the_field() {
    let texts = json!({"t": {"type": "string", "minLength": 2, "maxLength": 3}});
    let number = json!({"t": {"type": "number", "minimum": 1, "maximum": 2.5}});
    let whole = json!({"t": {"type": "integer"}});
    let yes = json!({"t": {"type": "boolean"}});
    let one = json!({"t": {"type": "string", "enum": ["a", "b"]}});
    let several = json!({"t": {"type": "array", "minItems": 1, "maxItems": 1, "items": {"enum": ["a", "b"]}}});
    let of = |format: &str| json!({"t": {"type": "string", "format": format}});
    for (properties, good, bad, wanted) in [
        (
            &texts,
            json!("äöü"),
            json!("a"),
            "has to have between 2 and 3 characters",
        ),
        (&texts, json!("ab"), json!(7), "has to be a text"),
        (&number, json!(2.5), json!(2.51), "has to be between 1 and 2.5"),
        (&number, json!(1), json!("1"), "has to be a number"),
        (&whole, json!(3.0), json!(3.5), "has to be a whole number"),
        (&whole, json!(-7), json!(true), "has to be a whole number"),
        (&yes, json!(false), json!("no"), "has to be true or false"),
        (&one, json!("a"), json!("c"), "has to be one of: a, b"),
        (&several, json!(["b"]), json!(["c"]), "cannot hold \"c\", only: a, b"),
        (&several, json!(["a"]), json!([]), "has to have exactly 1 choices"),
        (&several, json!(["a"]), json!("a"), "has to be a list out of: a, b"),
        (
            &of("email"),
            json!("a@b.example"),
            json!("a@"),
            "has to be an e-mail address",
        ),
        (
            &of("uri"),
            json!("https://x.example"),
            json!("x"),
            "has to be a whole address",
        ),
        (
            &of("date"),
            json!("2024-02-29"),
            json!("2023-02-29"),
            "has to be a date",
        ),
        (
            &of("date-time"),
            json!("2026-07-28T12:00:00.5+02:00"),
            json!("2026-07-28 12:00"),
            "has to be a date and time",
        ),
        (&of("unheard-of"), json!("x"), json!(1), "has to be a text"),
    ] {
        let with = |value: Value| said(properties.clone(), json!(["t"]), json!({"t": value}));
        assert_eq!(with(good.clone()), Ok(()), "{good}");
        let told = with(bad.clone()).unwrap_err();
        assert!(told.starts_with(&format!("The field \"t\" {wanted}")), "{bad}: {told}");
    }
    assert_eq!(
        said(whole.clone(), json!(["t"]), json!({})).unwrap_err(),
        "The field \"t\" is needed."
    );
    assert_eq!(said(whole.clone(), json!([]), json!({})), Ok(()));
    assert_eq!(
        said(whole, json!([]), json!({"u": 1})).unwrap_err(),
        "The form has no field \"u\"."
    );
}

#[test]
fn times_that_there_are_not_are_no_times() {
    for bad in [
        "2026-13-01T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00Z",
        "2026-01-01T00:00:00",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+0200",
        "2026-01-01",
        "T",
    ] {
        let told = said(
            json!({"t": {"type": "string", "format": "date-time"}}),
            json!([]),
            json!({"t": bad}),
        );
        assert!(told.is_err(), "{bad}");
    }
}

#[test]
fn a_form_that_asks_for_a_secret_is_not_shown() {
    for property in [
        json!({"password": {"type": "string"}}),
        json!({"apiKey": {"type": "string"}}),
        json!({"github_token": {"type": "string"}}),
        json!({"x": {"type": "string", "format": "password"}}),
        json!({"x": {"type": "string", "title": "Passphrase"}}),
        json!({"x": {"type": "string", "title": "Your API key"}}),
        json!({"x": {"type": "string", "description": "Your personal access token"}}),
        json!({"x": {"type": "string", "description": "paste the client secret here"}}),
        json!({"pin": {"type": "integer"}}),
        json!({"otp": {"type": "number"}}),
    ] {
        let unfit = read(&form(property.clone())).unwrap_err();
        assert!(matches!(unfit, Unfit::Secret(_)), "{property}: {unfit}");
    }
    let mut by_message = form(json!({"value": {"type": "string"}}));
    by_message["message"] = "Enter your password to go on".into();
    assert!(matches!(read(&by_message), Err(Unfit::Secret(_))));
}

fn with_message(message: &str) -> Value {
    let mut form = form(json!({"value": {"type": "string"}}));
    form["message"] = message.into();
    form
}

#[test]
fn a_secret_in_ordinary_words_is_asked_for_all_the_same() {
    for message in [
        "Do not wait, paste your token here",
        "Paste your GitHub token here",
        "Your secret please",
        "Enter the 6 digit code from your authenticator",
        "Please type the six-digit code shown by your authenticator app",
        "Bitte geben Sie Ihr Passwort ein",
        "Entrez votre mot de passe",
        "Introduce tu contraseña",
        "Digite sua senha",
        "Введите пароль",
        "请输入密码",
        "パスワードを入力してください",
        "Enter your p a s s w o r d to go on",
        "Enter your pass\u{ad}word to go on",
        "Enter your pass\u{200b}word to go on",
        "Enter your раѕѕwоrd to go on",
        "Enter your ｐａｓｓｗｏｒｄ to go on",
        "Enter your 𝐩𝐚𝐬𝐬𝐰𝐨𝐫𝐝 to go on",
        "Enter your p@$$w0rd to go on",
    ] {
        let told = read(&with_message(message));
        assert!(matches!(told, Err(Unfit::Secret(_))), "{message}");
    }
    for name in [
        "PAT",
        "TOTP",
        "2fa",
        "mnemonic",
        "passw0rd",
        "p a s s w o r d",
        "p_a_s_s_w_o_r_d",
        "ｐａｓｓｗｏｒｄ",
        "раssword",
        "pass\u{ad}word",
        "Passwort",
        "mot de passe",
        "mot_de_passe",
        "пароль",
        "pässword",
        "authToken",
        "secret",
    ] {
        for property in [
            json!({name: {"type": "string"}}),
            json!({"value": {"type": "string", "title": name}}),
        ] {
            let told = read(&form(property));
            assert!(matches!(told, Err(Unfit::Secret(_))), "{name}");
        }
    }
    for member in ["title", "description"] {
        let mut titled = form(json!({"value": {"type": "string"}}));
        titled["requestedSchema"][member] = "Enter password".into();
        assert!(matches!(read(&titled), Err(Unfit::Secret(_))), "{member}");
    }
}

/// What to show either way was decided here: a sentence with "password" in it is not shown where something is typed, even
/// if it asks for an address.
#[test]
fn a_harmless_form_is_shown_and_a_sentence_about_a_password_is_not() {
    for message in [
        "Where to?",
        "What is the token count?",
        "Do not give us your phone number, pin, or other sensitive info.",
        "Who is your secret santa?",
        "Secret santa name",
        "How many tokens may be spent?",
        "Enter the token limit for this run",
        "Enter your key name",
        "Type the token symbol, such as ETH",
        "Which column is the primary key?",
        "Name your dog",
        "Your name please",
        "Enter the zip code",
        "Which country code do you call from?",
        "Enter the promo code",
        "Review the code before it is merged",
        "Give the branch a name",
        "Which keyboard layout do you use?",
        "Enter your key points",
        "What is the passenger's name?",
        "Enter the passage to translate",
        "Your opinion on the secretary's report",
        "Enter the compass direction",
        "Which spin is it?",
        "Pick a date for the authentication talk",
        "Enter the monkey's age",
        "Wie heißt dein Hund?",
        "Quel est votre nom ?",
        "Как вас зовут?",
        "お名前は？",
    ] {
        assert!(read(&with_message(message)).is_ok(), "{message}");
    }
    for name in [
        "token_count",
        "keyword",
        "author",
        "path",
        "compass",
        "passenger",
        "opinion",
        "spinner",
        "patient",
        "monkey",
        "seedling",
    ] {
        assert!(read(&form(json!({name: {"type": "string"}}))).is_ok(), "{name}");
    }
    let told = read(&with_message("Password reset e-mail sent to which address?"));
    assert!(matches!(told, Err(Unfit::Secret(_))));
}

#[test]
fn forms_that_only_sound_alike_are_shown() {
    for property in [
        json!({"name": {"type": "string", "description": "Your full name"}}),
        json!({"keyboard": {"type": "string"}}),
        json!({"max_tokens": {"type": "integer", "title": "Tokens"}}),
        json!({"reset_password": {"type": "boolean"}}),
        json!({"token": {"type": "string", "enum": ["first", "second"]}}),
        json!({"primary": {"type": "string", "description": "The primary key's column"}}),
        json!({"opinion": {"type": "string"}}),
    ] {
        assert!(read(&form(property.clone())).is_ok(), "{property}");
    }
    let mut only_ticks = form(json!({"sure": {"type": "boolean"}}));
    only_ticks["message"] = "Reset the password?".into();
    assert!(read(&only_ticks).is_ok());
}

#[test]
fn what_is_no_flat_form_is_not_shown() {
    for schema in [
        json!(null),
        json!("object"),
        json!({"type": "array"}),
        json!({"type": "object", "properties": []}),
        json!({"type": "object", "properties": {"x": {"type": "object"}}}),
        json!({"type": "object", "properties": {"x": {"type": "array", "items": {"type": "string"}}}}),
        json!({"type": "object", "properties": {"x": {"type": ["string", "null"]}}}),
        json!({"type": "object", "properties": {"x": {"type": "string", "enum": [1]}}}),
        json!({"type": "object", "properties": {"x": {}}}),
        json!({"type": "object", "properties": {"x": true}}),
    ] {
        let unfit = read(&json!({"message": "m", "requestedSchema": schema})).unwrap_err();
        assert!(matches!(unfit, Unfit::Form(_)), "{schema}: {unfit}");
    }
    assert_eq!(read(&json!({"mode": "dance"})).unwrap_err(), Unfit::Unknown);
    let long = json!({"message": "m".repeat(70_000), "requestedSchema": {"type": "object"}});
    assert_eq!(read(&long).unwrap_err(), Unfit::TooLong);
    assert!(read(&json!({"message": "Sure?", "requestedSchema": {"type": "object"}})).is_ok());
}

#[test]
fn an_address_is_shown_whole_with_the_host_that_is_looked_up() {
    for (given, url, host, warns_of) in [
        (
            "https://Example.com:8443/a?b=c#d",
            "https://example.com:8443/a?b=c#d",
            "example.com",
            None,
        ),
        (
            "https://exаmple.com/",
            "https://xn--exmple-4nf.com/",
            "xn--exmple-4nf.com",
            Some("look like others"),
        ),
        (
            "https://xn--exmple-4nf.com/",
            "https://xn--exmple-4nf.com/",
            "xn--exmple-4nf.com",
            Some("look like others"),
        ),
        (
            "http://example.com/",
            "http://example.com/",
            "example.com",
            Some("not encrypted"),
        ),
        (
            "https://127.0.0.1:9/x",
            "https://127.0.0.1:9/x",
            "127.0.0.1",
            Some("this computer"),
        ),
        (
            "http://localhost/x",
            "http://localhost/x",
            "localhost",
            Some("this computer"),
        ),
        (
            "https://2130706433/",
            "https://127.0.0.1/",
            "127.0.0.1",
            Some("this computer"),
        ),
        ("https://192.0.2.1/", "https://192.0.2.1/", "192.0.2.1", Some("no name")),
    ] {
        let Elicitation::Url {
            url: shown,
            host: looked_up,
            warning,
            ..
        } = read(&page(given)).unwrap()
        else {
            panic!("no page")
        };
        assert_eq!((shown.as_str(), looked_up.as_str()), (url, host));
        match warns_of {
            Some(words) => assert!(
                warning.as_deref().unwrap_or_default().contains(words),
                "{given}: {warning:?}"
            ),
            None => assert_eq!(warning, None, "{given}"),
        }
    }
}

#[test]
fn only_addresses_of_pages_are_shown() {
    for bad in [
        "",
        "example.com",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "ms-msdt:x",
        "data:text/html,x",
        "https://",
        "https://bank.example@evil.example/",
        "https://a:b@evil.example/",
        "https://exa mple.com/",
        "https://example.com/\nx",
        "https://h$(x)/",
    ] {
        let unfit = read(&page(bad)).unwrap_err();
        assert!(matches!(unfit, Unfit::Address(_)), "{bad}: {unfit}");
    }
}
