//! The oidc auth provider: tokens that expire, an issuer that refreshes them, and the kubeconfig that stores them.

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use http::Response;
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use klient::{
    Api, Client, Error, ErrorKind,
    client::config::{Config, EmbeddedData, Kubeconfig, Overrides},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    support::scripted::{chain, map_json},
    support::served::{Asked, Authority, Served, json_response, unauthorized},
};

/// Returns a token of that user that expires in so many seconds.
fn jwt(user: &str, seconds: i64) -> String {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    let claims = json!({"sub": user, "exp": now + seconds}).to_string();
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims))
}

/// An issuer, an API server that accepts its last token, and a kubeconfig.
struct Setup {
    folder: TempDir,
    authority: Authority,
    issuer: Served,
    server: Served,
    refreshes: Arc<AtomicUsize>,
    accepted: Arc<Mutex<String>>,
}

type TokenHandler = fn(&Asked) -> Response<Full<Bytes>>;

fn refreshed(_: &Asked) -> Response<Full<Bytes>> {
    json_response(200, &json!({"id_token": jwt("new", 3600), "refresh_token": "refresh-2", "access_token": "x"}))
}

impl Setup {
    /// Starts an issuer whose token endpoint is handled by `handler`.
    async fn new(handler: TokenHandler) -> Self {
        let authority = Authority::new();
        let refreshes = Arc::<AtomicUsize>::default();
        let accepted = Arc::<Mutex<String>>::default();
        let (count, newest) = (Arc::clone(&refreshes), Arc::clone(&accepted));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let issuer =
            Served::on(listener, Some(authority.acceptor(&["h2"])), move |asked| match asked.request.uri().path() {
                "/realm/.well-known/openid-configuration" => {
                    json_response(200, &json!({"token_endpoint": format!("https://localhost:{port}/realm/token")}))
                }
                "/realm/token" => {
                    count.fetch_add(1, Ordering::SeqCst);
                    let response = handler(asked);
                    *newest.lock().unwrap() = jwt("new", 3600);
                    response
                }
                _ => json_response(404, &json!({})),
            });
        let newest = Arc::clone(&accepted);
        let server = Served::start(Some(authority.acceptor(&["h2"])), move |asked| {
            // Compared by user, because tokens differ by the second.
            let user = |token: &str| token.split('.').nth(1).map(|claims| URL_SAFE_NO_PAD.decode(claims).unwrap());
            let user = |token: &str| Some(serde_json::from_slice::<Value>(&user(token)?).unwrap()["sub"].clone());
            let known = user(&newest.lock().unwrap());
            match known.is_some() && user(asked.authorization()) == known {
                true => json_response(200, &map_json("web")),
                false => unauthorized(),
            }
        })
        .await;
        Self { folder: tempfile::tempdir().unwrap(), authority, issuer, server, refreshes, accepted }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kube").join("config")
    }

    fn write(&self, tokens: &str) {
        let authority = EmbeddedData::from_bytes(self.authority.pem());
        let text = format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', tls-server-name: localhost, \
             certificate-authority-data: {ca}}}}}]\n\
             users: [{{name: u, user: {{auth-provider: {{name: oidc, config: {{\
             idp-issuer-url: 'https://localhost:{}/realm/', client-id: a b, extra-scopes: groups, \
             idp-certificate-authority-data: {ca}, {tokens}}}}}}}}}]\n",
            self.server.port(),
            self.issuer.port(),
            ca = authority.as_base64(),
        );
        fs::create_dir_all(self.kubeconfig().parent().unwrap()).unwrap();
        fs::write(self.kubeconfig(), text).unwrap();
    }

    fn maps(&self, tokens: &str) -> Api<ConfigMap> {
        self.write(tokens);
        let kubeconfig = Kubeconfig::from_file(self.kubeconfig()).unwrap();
        let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap();
        Api::namespaced(Client::builder_from_config(&config).unwrap().json_only().build(), "default")
    }

    fn refreshes(&self) -> usize {
        self.refreshes.load(Ordering::SeqCst)
    }

    fn stored(&self, name: &str) -> String {
        let kubeconfig = Kubeconfig::from_file(self.kubeconfig()).unwrap();
        kubeconfig.users.get("u").unwrap().auth_provider.as_ref().unwrap().config[name].clone()
    }

    /// Returns the forms that the token endpoint received, with the `Authorization` of each.
    async fn forms(&self) -> Vec<(String, String)> {
        let asked = self.issuer.asked.lock().await;
        let forms = asked.iter().filter(|asked| asked.request.method() == http::Method::POST);
        let text = |asked: &Asked| String::from_utf8(asked.request.body().to_vec()).unwrap();
        forms.map(|asked| (text(asked), asked.authorization().to_owned())).collect()
    }
}

async fn get(maps: &Api<ConfigMap>) -> Result<ConfigMap, Error> {
    maps.get("web").await
}

#[tokio::test]
async fn oidc_token_is_used_until_it_expires() {
    let setup = Setup::new(refreshed).await;
    *setup.accepted.lock().unwrap() = jwt("old", 0);
    let maps = setup.maps(&format!("id-token: {}, refresh-token: refresh-1", jwt("old", 3600)));
    for _ in 0..3 {
        get(&maps).await.unwrap();
    }
    assert_eq!(setup.refreshes(), 0);
}

#[tokio::test]
async fn expired_oidc_token_is_refreshed_once_and_stored() {
    let setup = Setup::new(refreshed).await;
    let maps = setup.maps(&format!("id-token: {}, refresh-token: refresh-1", jwt("old", -5)));
    let requests: Vec<_> = (0..20)
        .map(|_| {
            let maps = maps.clone();
            tokio::spawn(async move { get(&maps).await })
        })
        .collect();
    for request in requests {
        request.await.unwrap().unwrap();
    }
    assert_eq!(setup.refreshes(), 1);
    assert_eq!(setup.stored("refresh-token"), "refresh-2");
    assert_eq!(setup.stored("client-id"), "a b");
    assert!(setup.stored("id-token").len() > 20 && setup.stored("id-token") != jwt("old", -5));
    let form = "grant_type=refresh_token&refresh_token=refresh-1&client_id=a%20b";
    assert_eq!(setup.forms().await, [(form.to_owned(), String::new())]);
}

#[tokio::test]
async fn client_secret_is_sent_in_a_header_or_else_in_the_form() {
    fn only_forms(asked: &Asked) -> Response<Full<Bytes>> {
        match asked.authorization() {
            "" => refreshed(asked),
            _ => json_response(401, &json!({"error": "invalid_client"})),
        }
    }
    for (handler, forms) in [(refreshed as TokenHandler, 1), (only_forms, 2)] {
        let setup = Setup::new(handler).await;
        let maps = setup.maps("refresh-token: refresh-1, client-secret: s/cret");
        get(&maps).await.unwrap();
        let seen = setup.forms().await;
        // a%20b:s%2Fcret
        let header = "Basic YSUyMGI6cyUyRmNyZXQ=";
        assert_eq!(seen[0], ("grant_type=refresh_token&refresh_token=refresh-1".to_owned(), header.to_owned()));
        assert_eq!(seen.len(), forms);
        if let Some((form, header)) = seen.get(1) {
            assert!(form.ends_with("&client_id=a%20b&client_secret=s%2Fcret") && header.is_empty(), "{form}");
        }
    }
}

#[tokio::test]
async fn oidc_tokens_refreshed_by_another_program_are_used() {
    let setup = Setup::new(refreshed).await;
    *setup.accepted.lock().unwrap() = jwt("other", 0);
    let maps = setup.maps(&format!("id-token: {}, refresh-token: refresh-1", jwt("old", -5)));
    setup.write(&format!("id-token: {}, refresh-token: refresh-9", jwt("other", 3600)));
    get(&maps).await.unwrap();
    assert_eq!(setup.refreshes(), 0);
    assert_eq!(setup.stored("refresh-token"), "refresh-9");
}

/// Refreshes an expired token while another program holds the kubeconfig's lock, and writes to it meanwhile.
async fn refresh_while_another_program_writes(tokens: &str) -> Setup {
    let setup = Setup::new(refreshed).await;
    let maps = setup.maps(&format!("id-token: {}, refresh-token: refresh-1", jwt("old", -5)));
    let lock = setup.kubeconfig().with_extension("lock");
    fs::write(&lock, "").unwrap();
    let request = tokio::spawn(async move { get(&maps).await });
    while setup.refreshes() == 0 {
        tokio::task::yield_now().await;
    }
    setup.write(tokens);
    fs::remove_file(&lock).unwrap();
    request.await.unwrap().unwrap();
    assert_eq!(setup.refreshes(), 1);
    setup
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oidc_refresh_does_not_overwrite_newer_tokens() {
    let newer = jwt("other", 7200);
    let tokens = format!("id-token: {newer}, refresh-token: refresh-9");
    let setup = refresh_while_another_program_writes(&tokens).await;
    assert_eq!((setup.stored("id-token"), setup.stored("refresh-token")), (newer, "refresh-9".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oidc_refresh_keeps_other_settings_of_the_file() {
    let tokens = format!("id-token: {}, refresh-token: refresh-9, client-secret: changed", jwt("other", 60));
    let setup = refresh_while_another_program_writes(&tokens).await;
    assert_eq!(setup.stored("refresh-token"), "refresh-2");
    assert_eq!(setup.stored("client-secret"), "changed");
}

#[tokio::test]
async fn oidc_issuer_without_tls_gets_no_token_unless_allowed() {
    let setup = Setup::new(refreshed).await;
    *setup.accepted.lock().unwrap() = jwt("new", 0);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let endpoint = format!("{url}/token");
    let issuer = Served::on(listener, None, move |asked| match asked.request.uri().path() {
        "/token" => refreshed(asked),
        _ => json_response(200, &json!({"token_endpoint": endpoint})),
    });
    setup.write("refresh-token: refresh-1");
    let text = fs::read_to_string(setup.kubeconfig()).unwrap();
    let secure = format!("https://localhost:{}/realm/", setup.issuer.port());
    fs::write(setup.kubeconfig(), text.replace(&secure, &url)).unwrap();
    let kubeconfig = Kubeconfig::from_file(setup.kubeconfig()).unwrap();
    let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap();
    let maps = |config: &Config| {
        Api::<ConfigMap>::namespaced(Client::builder_from_config(config).unwrap().json_only().build(), "default")
    };
    let error = get(&maps(&config)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("is not encrypted"), "{error}");
    assert_eq!(issuer.accepted(), 0);
    get(&maps(&config.allow_http_issuer(true))).await.unwrap();
}

#[tokio::test]
async fn rejected_oidc_token_is_refreshed() {
    let setup = Setup::new(refreshed).await;
    let maps = setup.maps(&format!("id-token: {}, refresh-token: refresh-1", jwt("old", 3600)));
    get(&maps).await.unwrap();
    assert_eq!(setup.refreshes(), 1);
}

#[tokio::test]
async fn unwritable_kubeconfig_does_not_fail_requests() {
    let setup = Setup::new(refreshed).await;
    let maps = setup.maps(&format!("id-token: {}, refresh-token: refresh-1", jwt("old", -5)));
    fs::remove_dir_all(setup.kubeconfig().parent().unwrap()).unwrap();
    // A file in place of the directory, so that nothing can be created below it, not even by root.
    fs::write(setup.kubeconfig().parent().unwrap(), "").unwrap();
    get(&maps).await.unwrap();
    get(&maps).await.unwrap();
    assert_eq!(setup.refreshes(), 1);
}

#[tokio::test]
async fn oidc_error_names_the_problem_without_the_tokens() {
    let old = format!("id-token: {}", jwt("s3cret", -5));
    let refreshing = format!("{old}, refresh-token: s3cret");
    let denied: TokenHandler =
        |_| json_response(400, &json!({"error": "invalid_grant", "error_description": "token was used"}));
    let empty: TokenHandler = |_| json_response(200, &json!({"access_token": "s3cret"}));
    let garbled: TokenHandler = |_| json_response(200, &json!({"id_token": "s3cret"}));
    let broken: TokenHandler = |_| Response::builder().status(502).body(Full::new(Bytes::from("<p>s3cret"))).unwrap();
    for (handler, tokens, expected) in [
        (refreshed as TokenHandler, old.as_str(), "there is no refresh-token: log in again"),
        (refreshed, "id-token: s3cret", "invalid oidc id-token: it does not have three parts"),
        (refreshed, "extra: s3cret", "there is no refresh-token: log in again"),
        (denied, &refreshing, "status 400 Bad Request: invalid_grant (token was used)"),
        (empty, &refreshing, "sent a response without an id_token"),
        (garbled, &refreshing, "invalid oidc id-token: it does not have three parts"),
        (broken, &refreshing, "status 502 Bad Gateway"),
    ] {
        let setup = Setup::new(handler).await;
        let error = get(&setup.maps(tokens)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Auth);
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!format!("{error:?} {}", chain(&error)).contains("s3cret"), "{error:?}");
        assert_eq!(setup.server.accepted(), 0);
    }
}

#[tokio::test]
async fn untrusted_issuer_gets_no_token() {
    let setup = Setup::new(refreshed).await;
    setup.write("refresh-token: refresh-1");
    let other = EmbeddedData::from_bytes(Authority::new().pem());
    let text = fs::read_to_string(setup.kubeconfig()).unwrap();
    let right = EmbeddedData::from_bytes(setup.authority.pem());
    let wrong = text.replace(
        &format!("idp-certificate-authority-data: {}", right.as_base64()),
        &format!("idp-certificate-authority-data: {}", other.as_base64()),
    );
    fs::write(setup.kubeconfig(), wrong).unwrap();
    let kubeconfig = Kubeconfig::from_file(setup.kubeconfig()).unwrap();
    let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_config(&config).unwrap(), "default");
    let error = get(&maps).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(chain(&error).contains("was signed by an unknown authority"), "{}", chain(&error));
    assert_eq!(setup.refreshes(), 0);
}

#[test]
fn error_of_a_removed_provider_names_its_replacement() {
    use klient::client::config::{AuthProvider, AuthProviderConfig, Credentials};
    for (name, expected) in [("gcp", "gke-gcloud-auth-plugin"), ("azure", "kubelogin"), ("other", "expected oidc")] {
        let provider = AuthProvider::new(AuthProviderConfig::new(name));
        let config = Config::new("http://host").unwrap();
        let config = config.credentials(Credentials::AuthProvider(Box::new(provider)));
        let error = Client::from_config(&config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(error.to_string().contains(expected), "{error}");
    }
}
