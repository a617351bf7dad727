//! Requests to a token endpoint: codes, refreshing, client credentials, revocation.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use futures::future::BoxFuture;
use http::header;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use oauth2::{
    AsyncHttpClient, AuthType, AuthorizationCode, ClientId, ClientSecret, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope, TokenResponse as _, TokenUrl,
    basic::{BasicClient, BasicErrorResponse, BasicErrorResponseType, BasicTokenResponse},
};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;
use url::form_urlencoded;

use super::{
    fetch::{Fetch, FetchError},
    record::{Client, Endpoints, Proof},
    target::place,
};

/// How long a signed proof of who we are holds.
const ASSERTION_LIFE: Duration = Duration::from_secs(60);
/// RFC 7523 §2.2.
const ASSERTION_KIND: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// What a token endpoint gave.
#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access: SecretString,
    pub(super) refresh: Option<SecretString>,
    pub(super) lifetime: Option<Duration>,
    pub(super) scopes: Option<Vec<String>>,
}

/// Why it gave nothing. Texts are the ends of sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenError {
    /// It could not be asked, or gave no answer that means anything: what one has may still be good.
    Unavailable(String),
    /// What was shown to it is over (`invalid_grant`).
    Over,
    /// It does not know the client, or not any longer (`invalid_client`, `unauthorized_client`).
    UnknownClient,
    /// It says no in another way.
    Refused(String),
}

/// What a token is for (RFC 7009 §2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Access,
    Refresh,
}

impl TokenKind {
    fn hint(self) -> &'static str {
        match self {
            Self::Access => "access_token",
            Self::Refresh => "refresh_token",
        }
    }
}

/// One client at one token endpoint.
pub(super) struct TokenEndpoint<'a> {
    pub(super) fetch: &'a Fetch,
    pub(super) server: &'a Endpoints,
    pub(super) client: &'a Client,
    /// Unix milliseconds.
    pub(super) now: u64,
}

impl<'c> AsyncHttpClient<'c> for Fetch {
    type Error = FetchError;
    type Future = BoxFuture<'c, Result<HttpResponse, FetchError>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.carry(request))
    }
}

type OAuthClient = BasicClient<EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;
type Failure = RequestTokenError<FetchError, BasicErrorResponse>;

impl TokenEndpoint<'_> {
    /// RFC 6749 §4.1.3 with the verifier of RFC 7636.
    pub(super) async fn exchange(
        &self,
        code: &SecretString,
        verifier: &SecretString,
        redirect_uri: &str,
        resource: &str,
    ) -> Result<Tokens, TokenError> {
        let client = self.client();
        let redirect = RedirectUrl::new(redirect_uri.to_owned())
            .map_err(|_not_a_url| TokenError::Refused("the way back is no address".to_owned()))?;
        let mut request = client
            .exchange_code(AuthorizationCode::new(code.expose_secret().to_owned()))
            .set_pkce_verifier(PkceCodeVerifier::new(verifier.expose_secret().to_owned()))
            .set_redirect_uri(std::borrow::Cow::Owned(redirect))
            .add_extra_param("resource", resource.to_owned());
        for (name, value) in self.more()? {
            request = request.add_extra_param(name, value);
        }
        self.read(request.request_async(self.fetch).await)
    }

    /// RFC 6749 §6; no scopes, so that none is lost.
    pub(super) async fn refresh(&self, refresh: &SecretString, resource: &str) -> Result<Tokens, TokenError> {
        let client = self.client();
        let token = RefreshToken::new(refresh.expose_secret().to_owned());
        let mut request = client
            .exchange_refresh_token(&token)
            .add_extra_param("resource", resource.to_owned());
        for (name, value) in self.more()? {
            request = request.add_extra_param(name, value);
        }
        self.read(request.request_async(self.fetch).await)
    }

    /// RFC 6749 §4.4.
    pub(super) async fn client_credentials(&self, scopes: &[String], resource: &str) -> Result<Tokens, TokenError> {
        let client = self.client();
        let mut request = client
            .exchange_client_credentials()
            .add_scopes(scopes.iter().cloned().map(Scope::new))
            .add_extra_param("resource", resource.to_owned());
        for (name, value) in self.more()? {
            request = request.add_extra_param(name, value);
        }
        self.read(request.request_async(self.fetch).await)
    }

    /// RFC 7009, where the server offers it; whether it did so. By hand: `oauth2` asks no server of this computer, which
    /// has no encryption.
    pub(super) async fn revoke(&self, token: &SecretString, kind: TokenKind) -> bool {
        let Some(request) = self.revocation(token, kind) else {
            return false;
        };
        let answer = self.fetch.carry(request).await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    fn revocation(&self, token: &SecretString, kind: TokenKind) -> Option<HttpRequest> {
        let (at, more) = (self.server.revocation.as_ref()?, self.more().ok()?);
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("token", token.expose_secret());
        form.append_pair("token_type_hint", kind.hint());
        form.extend_pairs(more);
        let mut request = http::Request::post(at.as_str())
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json");
        match &self.client.proof {
            Proof::None | Proof::PrivateKeyJwt { .. } => drop(form.append_pair("client_id", &self.client.id)),
            Proof::ClientSecretPost { secret } => {
                form.append_pair("client_id", &self.client.id);
                form.append_pair("client_secret", secret.expose_secret());
            }
            Proof::ClientSecretBasic { secret } => {
                // RFC 6749 §2.3.1.
                let part = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
                let both = format!("{}:{}", part(&self.client.id), part(secret.expose_secret()));
                request = request.header(header::AUTHORIZATION, format!("Basic {}", STANDARD.encode(both)));
            }
        }
        request.body(form.finish().into_bytes()).ok()
    }

    fn client(&self) -> OAuthClient {
        let client = BasicClient::new(ClientId::new(self.client.id.clone()))
            .set_token_uri(TokenUrl::from_url(self.server.token.clone()));
        let with = |client: OAuthClient, secret: &SecretString, kind| {
            client
                .set_client_secret(ClientSecret::new(secret.expose_secret().to_owned()))
                .set_auth_type(kind)
        };
        match &self.client.proof {
            Proof::None | Proof::PrivateKeyJwt { .. } => client.set_auth_type(AuthType::RequestBody),
            Proof::ClientSecretBasic { secret } => with(client, secret, AuthType::BasicAuth),
            Proof::ClientSecretPost { secret } => with(client, secret, AuthType::RequestBody),
        }
    }

    /// What a request holds besides: the signed proof of who we are, where that is how this client proves it (RFC 7523
    /// §2.2); the client's id, which servers made with the official Python SDK look for there beside a Basic header too.
    fn more(&self) -> Result<Vec<(&'static str, String)>, TokenError> {
        let (key, algorithm) = match &self.client.proof {
            Proof::PrivateKeyJwt { key, algorithm } => (key, algorithm),
            Proof::ClientSecretBasic { .. } => return Ok(vec![("client_id", self.client.id.clone())]),
            Proof::None | Proof::ClientSecretPost { .. } => return Ok(Vec::new()),
        };
        #[derive(Serialize)]
        struct Claims<'c> {
            iss: &'c str,
            sub: &'c str,
            aud: &'c str,
            jti: String,
            iat: u64,
            exp: u64,
        }
        let unusable = || TokenError::Refused("the private key of the entry cannot be used".to_owned());
        let algorithm: Algorithm = algorithm.parse().map_err(|_unknown| unusable())?;
        let pem = key.expose_secret().as_bytes();
        let key = match algorithm {
            Algorithm::ES256 | Algorithm::ES384 => EncodingKey::from_ec_pem(pem),
            _ => EncodingKey::from_rsa_pem(pem),
        };
        let seconds = self.now / 1000;
        let claims = Claims {
            iss: &self.client.id,
            sub: &self.client.id,
            aud: &self.server.issuer,
            jti: oauth2::CsrfToken::new_random().secret().clone(),
            iat: seconds,
            exp: seconds + ASSERTION_LIFE.as_secs(),
        };
        let signed = key.and_then(|key| jsonwebtoken::encode(&Header::new(algorithm), &claims, &key));
        let signed = signed.map_err(|_unusable| unusable())?;
        Ok(vec![
            ("client_assertion_type", ASSERTION_KIND.to_owned()),
            ("client_assertion", signed),
        ])
    }

    fn read(&self, answer: Result<BasicTokenResponse, Failure>) -> Result<Tokens, TokenError> {
        let response = answer.map_err(|failure| self.failure(failure))?;
        Ok(Tokens {
            access: response.access_token().secret().clone().into(),
            refresh: response.refresh_token().map(|token| token.secret().clone().into()),
            lifetime: response.expires_in(),
            scopes: response
                .scopes()
                .map(|scopes| scopes.iter().map(|scope| scope.as_str().to_owned()).collect()),
        })
    }

    /// Nothing of an answer that could not be read is told: it may hold a token.
    fn failure(&self, failure: Failure) -> TokenError {
        let at = place(&self.server.token);
        match failure {
            RequestTokenError::ServerResponse(error) => refusal(&at, &error),
            RequestTokenError::Request(FetchError::Forbidden(what)) => {
                TokenError::Refused(format!("{what} may not be contacted"))
            }
            RequestTokenError::Request(error @ (FetchError::Unreachable(_) | FetchError::TooMuch(_))) => {
                TokenError::Unavailable(error.to_string())
            }
            // Some servers refuse with a success.
            RequestTokenError::Parse(_, body) => match serde_json::from_slice::<BasicErrorResponse>(&body) {
                Ok(error) => refusal(&at, &error),
                Err(_) => TokenError::Unavailable(format!("{at} sent an answer that makes no sense")),
            },
            RequestTokenError::Other(_) => TokenError::Unavailable(format!("{at} sent an answer that makes no sense")),
        }
    }
}

fn refusal(at: &str, error: &BasicErrorResponse) -> TokenError {
    match error.error() {
        BasicErrorResponseType::InvalidGrant => TokenError::Over,
        BasicErrorResponseType::InvalidClient | BasicErrorResponseType::UnauthorizedClient => TokenError::UnknownClient,
        BasicErrorResponseType::Extension(code) if code == "temporarily_unavailable" || code == "server_error" => {
            TokenError::Unavailable(format!("{at} has a problem of its own"))
        }
        other @ (BasicErrorResponseType::InvalidRequest
        | BasicErrorResponseType::InvalidScope
        | BasicErrorResponseType::UnsupportedGrantType
        | BasicErrorResponseType::Extension(_)) => {
            TokenError::Refused(format!("{at} refused it ({})", error_code(other.as_ref())))
        }
    }
}

/// An error's code, where it looks like one that somebody registered (RFC 6749 §11.4): a server may write there what it
/// was sent.
pub(super) fn error_code(code: &str) -> &str {
    let is_code = !code.is_empty() && code.len() <= 40 && code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    if is_code { code } else { "a code of its own" }
}
