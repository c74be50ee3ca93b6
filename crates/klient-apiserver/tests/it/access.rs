//! Users, roles, tokens, the audit log and recorded permissions.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use k8s_openapi::api::{
    authentication::v1::SelfSubjectReview,
    core::v1::{ConfigMap, Pod, ServiceAccount},
    rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding},
};
use klient::{
    Api, Client,
    client::config::{Config, Kubeconfig, Overrides},
};
use klient_apiserver::{ApiServer, AuditPolicy, ManualClock, User};
use serde_json::{Value, json};

async fn ask(server: &ApiServer, method: Method, path: &str, headers: &[(&str, &str)], body: Value) -> (u16, Value) {
    let mut request = http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let response = server.handle(request.body(body).unwrap()).await;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

fn of<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn named(name: &str) -> ConfigMap {
    of(json!({"metadata": {"name": name}}))
}

/// Creates a role in `default` and binds it to a user.
async fn allow(server: &ApiServer, user: &str, rules: Value) {
    let admin = Client::from_service(server.service());
    let roles: Api<Role> = Api::namespaced(admin.clone(), "default");
    roles.create(&of(json!({"metadata": {"name": user}, "rules": rules}))).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(admin, "default");
    let binding = json!({"metadata": {"name": user}, "subjects": [{"kind": "User", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user}});
    bindings.create(&of(binding)).await.unwrap();
}

#[tokio::test]
async fn roles_decide_if_rbac_is_enabled() {
    let server = ApiServer::builder().rbac().start().await.unwrap();
    let maps =
        |user: User| -> Api<ConfigMap> { Api::namespaced(Client::from_service(server.service_as(user)), "default") };
    let bob = maps(User::new("bob"));
    let error = bob.get("a").await.unwrap_err();
    let message = "configmaps \"a\" is forbidden: User \"bob\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"default\"";
    assert_eq!(error.status().unwrap().message, message);
    allow(&server, "bob", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"]}])).await;
    bob.create(&named("a")).await.unwrap();
    assert_eq!(bob.get("a").await.unwrap().metadata.name.as_deref(), Some("a"));
    assert!(bob.list().await.unwrap_err().is_forbidden());
    assert!(maps(User::new("eve")).get("a").await.unwrap_err().is_forbidden());
    assert_eq!(maps(User::new("root").group("system:masters")).list().await.unwrap().items.len(), 1);

    let admin = Client::from_service(server.service());
    Api::<RoleBinding>::namespaced(admin, "default").delete("bob").await.unwrap();
    assert!(bob.get("a").await.unwrap_err().is_forbidden());
}

#[tokio::test]
async fn everything_is_allowed_without_rbac() {
    let server = ApiServer::start().await.unwrap();
    let bob = Client::from_service(server.service_as(User::new("bob")));
    Api::<ConfigMap>::namespaced(bob.clone(), "default").create(&named("a")).await.unwrap();
    let roles = Api::<ClusterRole>::cluster(bob).list().await.unwrap();
    assert!(roles.items.is_empty(), "only servers with RBAC have the default roles");
}

#[tokio::test]
async fn default_roles_are_aggregated() {
    let server = ApiServer::builder().rbac().start().await.unwrap();
    let admin = Client::from_service(server.service());
    let roles: Api<ClusterRole> = Api::cluster(admin.clone());
    let count = |role: ClusterRole| role.rules.unwrap_or_default().len();
    let (view, edit) = (count(roles.get("view").await.unwrap()), count(roles.get("edit").await.unwrap()));
    let all = count(roles.get("admin").await.unwrap());
    assert!(0 < view && view < edit && edit < all, "{view} {edit} {all}");

    let bindings: Api<ClusterRoleBinding> = Api::cluster(admin);
    let binding = json!({"metadata": {"name": "viewers"}, "subjects": [{"kind": "Group", "name": "viewers"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}});
    bindings.create(&of(binding)).await.unwrap();
    let user = User::new("bob").group("viewers");
    let path = "/apis/ex.io/v1/namespaces/default/foos";
    let request = |path: &str| http::Request::get(path).body(Bytes::new()).unwrap();
    assert_eq!(server.service_as(user.clone())(request(path)).await.status(), 403);
    let role = json!({"metadata": {"name": "foos", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["ex.io"], "resources": ["foos"], "verbs": ["list"]}]});
    roles.create(&of(role)).await.unwrap();
    // The chain view, edit, admin is complete when the write returns: 404 because there is no such kind.
    assert_eq!(server.service_as(user.clone())(request(path)).await.status(), 404);
    assert_eq!(count(roles.get("admin").await.unwrap()), all + 1);
    roles.delete("foos").await.unwrap();
    assert_eq!(server.service_as(user)(request(path)).await.status(), 403);
    assert_eq!(count(roles.get("admin").await.unwrap()), all);
}

#[tokio::test]
async fn cyclic_aggregation_ends() {
    let server = ApiServer::builder().rbac().start().await.unwrap();
    let roles: Api<ClusterRole> = Api::cluster(Client::from_service(server.service()));
    for (name, selected) in [("a", "b"), ("b", "c"), ("c", "a")] {
        let role = json!({"metadata": {"name": name, "labels": {"is": name}},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"is": selected}}, {"matchLabels": {"x": "y"}}]}});
        roles.create(&of(role)).await.unwrap();
    }
    let role = json!({"metadata": {"name": "d", "labels": {"x": "y"}},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]});
    roles.create(&of(role)).await.unwrap();
    for name in ["a", "b", "c"] {
        assert_eq!(roles.get(name).await.unwrap().rules.unwrap_or_default().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn roles_of_a_folder_decide_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let start = || ApiServer::builder().rbac().folder(folder.path()).start();
    let server = start().await.unwrap();
    allow(&server, "bob", json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}])).await;
    let token = account_token(&server, json!({})).await;
    drop(server);
    let server = start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(Client::from_service(server.service_as(User::new("bob"))), "default");
    maps.list().await.unwrap();
    let bearer = format!("Bearer {token}");
    let (code, _) = ask(&server, Method::GET, "/version", &[("authorization", &bearer)], Value::Null).await;
    assert_eq!(code, 200, "the key of tokens is in the folder");
}

/// Creates the service account `default/robot` unless it exists, and returns a token for it.
async fn account_token(server: &ApiServer, spec: Value) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(Client::from_service(server.service()), "default");
    let _ = accounts.create(&of(json!({"metadata": {"name": "robot"}}))).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let (code, answer) = ask(server, Method::POST, path, &[], json!({"spec": spec})).await;
    assert_eq!(code, 201, "{answer}");
    answer["status"]["token"].as_str().unwrap().to_owned()
}

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

#[tokio::test]
async fn issued_tokens_expire() {
    let clock = Arc::new(ManualClock::new("2026-01-01T00:00:00Z".parse().unwrap()));
    let server = ApiServer::builder().clock(Arc::clone(&clock)).rbac().start().await.unwrap();
    let bearer = format!("Bearer {}", account_token(&server, json!({"expirationSeconds": 600})).await);
    let who = async || ask(&server, Method::POST, WHO, &[("authorization", &bearer)], json!({})).await;
    let (code, answer) = who().await;
    assert_eq!(code, 201);
    assert_eq!(answer["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    clock.advance(jiff::SignedDuration::from_secs(659));
    assert_eq!(who().await.0, 201);
    clock.advance(jiff::SignedDuration::from_secs(2));
    assert_eq!(who().await.0, 401);
}

#[tokio::test]
async fn bad_tokens_are_refused() {
    for builder in [ApiServer::builder(), ApiServer::builder().rbac(), ApiServer::builder().token("a", "jane")] {
        let server = builder.start().await.unwrap();
        let good = match server.handle(http::Request::get("/version").body(Bytes::new()).unwrap()).await.status() {
            http::StatusCode::OK => account_token(&server, json!({})).await,
            _ => "a.b.c".to_owned(),
        };
        let (head, signature) = good.rsplit_once('.').unwrap();
        let (_, payload) = head.split_once('.').unwrap();
        // {"alg":"none"}
        let none = format!("eyJhbGciOiJub25lIn0.{payload}.");
        let huge = format!("{}.{payload}.{signature}", "A".repeat(200_000));
        for token in [none, huge, format!("{head}.AAAA"), format!("{head}x.{signature}"), "..".into(), "a.b.c".into()] {
            let bearer = format!("Bearer {token}");
            let (code, answer) =
                ask(&server, Method::GET, "/version", &[("authorization", &bearer)], Value::Null).await;
            assert_eq!(
                (code, &answer["message"]),
                (401, &json!("Unauthorized")),
                "{}",
                &bearer[..bearer.len().min(80)]
            );
        }
    }
}

#[tokio::test]
async fn tokens_that_are_not_text_are_refused() {
    let server = ApiServer::builder().rbac().start().await.unwrap();
    let value = http::HeaderValue::from_bytes(b"Bearer a.b\xd2\x9f").unwrap();
    let request = http::Request::get("/version").header("authorization", value).body(Bytes::new()).unwrap();
    assert_eq!(server.handle(request).await.status(), 401);
}

#[tokio::test]
async fn tokens_for_other_audiences_are_refused() {
    let server = ApiServer::builder().rbac().start().await.unwrap();
    let bearer = format!("Bearer {}", account_token(&server, json!({"audiences": ["vault"]})).await);
    let (code, _) = ask(&server, Method::POST, WHO, &[("authorization", &bearer)], json!({})).await;
    assert_eq!(code, 401);
}

#[tokio::test]
async fn discovery_has_the_key_of_issued_tokens() {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    let server = ApiServer::builder().token_issuer("https://example.test").start().await.unwrap();
    let token = account_token(&server, json!({})).await;
    let path = "/.well-known/openid-configuration";
    let (_, configuration) = ask(&server, Method::GET, path, &[("host", "a:1")], Value::Null).await;
    assert_eq!(configuration["issuer"], "https://example.test");
    assert_eq!(configuration["jwks_uri"], "https://a:1/openid/v1/jwks");
    let (_, keys) = ask(&server, Method::GET, "/openid/v1/jwks", &[], Value::Null).await;
    let part = |at: usize| URL_SAFE_NO_PAD.decode(token.split('.').nth(at).unwrap()).unwrap();
    let header: Value = serde_json::from_slice(&part(0)).unwrap();
    assert_eq!(keys["keys"][0]["kid"], header["kid"]);
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(keys["keys"][0][name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point);
    key.verify(token.rsplit_once('.').unwrap().0.as_bytes(), &part(2)).unwrap();
    let claims: Value = serde_json::from_slice(&part(1)).unwrap();
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("https://example.test"), &json!(["https://example.test"])));
}

#[tokio::test]
async fn certificates_and_anonymous_requests_have_users() {
    let server = ApiServer::builder().rbac().start().await.unwrap();
    let listening = server.listen(0).await.unwrap();
    let client = |kubeconfig: &str| {
        let config = Config::from_kubeconfig(&Kubeconfig::parse(kubeconfig.as_bytes()).unwrap(), &Overrides::default());
        Client::from_config(&config.unwrap()).unwrap()
    };
    let who = async |client: Client| {
        let review = Api::<SelfSubjectReview>::cluster(client).create(&SelfSubjectReview::default()).await?;
        let info = review.status.unwrap().user_info.unwrap();
        Ok::<_, klient::Error>((info.username.unwrap(), info.groups.unwrap()))
    };
    let bob = client(&listening.kubeconfig_of(&User::new("bob").group("devs")).unwrap());
    let groups = vec!["devs".to_owned(), "system:authenticated".to_owned()];
    assert_eq!(who(bob.clone()).await.unwrap(), ("bob".to_owned(), groups));
    assert!(Api::<Pod>::namespaced(bob, "default").list().await.unwrap_err().is_forbidden());
    let admin = client(&listening.kubeconfig(None));
    assert_eq!(who(admin).await.unwrap().0, "kubernetes-admin");

    let kubeconfig = Kubeconfig::parse(listening.kubeconfig(None).as_bytes()).unwrap();
    let config = Config::from_kubeconfig(&kubeconfig, &Overrides::default()).unwrap();
    let anonymous = Client::from_config(&config.anonymous()).unwrap();
    let error = Api::<Pod>::namespaced(anonymous, "default").list().await.unwrap_err();
    assert!(error.to_string().contains("User \"system:anonymous\" cannot list resource \"pods\""), "{error}");
    assert!(server.listen(0).http().await.unwrap().kubeconfig_of(&User::new("bob")).is_err());
}

#[tokio::test]
async fn in_process_requests_can_impersonate() {
    let server = ApiServer::start().await.unwrap();
    let headers = [("impersonate-user", "bob"), ("impersonate-group", "devs"), ("impersonate-uid", "7")];
    let (code, answer) = ask(&server, Method::POST, WHO, &headers, json!({})).await;
    assert_eq!(code, 201);
    let info = json!({"username": "bob", "uid": "7", "groups": ["devs", "system:authenticated"]});
    assert_eq!(answer["status"]["userInfo"], info);
    let (code, _) = ask(&server, Method::GET, "/version", &headers[1..], Value::Null).await;
    assert_eq!(code, 400, "a group without a user");
}

fn logged(policy: AuditPolicy) -> (klient_apiserver::ApiServerBuilder, Arc<Mutex<Vec<Value>>>) {
    let lines: Arc<Mutex<Vec<Value>>> = Arc::default();
    let sink = Arc::clone(&lines);
    let add = move |line: &str| sink.lock().unwrap().push(serde_json::from_str(line).unwrap());
    (ApiServer::builder().audit(policy, add), lines)
}

#[tokio::test]
async fn audit_log_has_stages_objects_and_decisions() {
    let (builder, lines) = logged(AuditPolicy::request_response());
    let server = builder.rbac().start().await.unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let headers = [("user-agent", "test/1"), ("audit-id", "my-id")];
    ask(&server, Method::POST, maps, &headers, json!({"metadata": {"name": "a"}})).await;
    let seen = std::mem::take(&mut *lines.lock().unwrap());
    assert_eq!(seen.len(), 2);
    assert_eq!((&seen[0]["stage"], &seen[1]["stage"]), (&json!("RequestReceived"), &json!("ResponseComplete")));
    let event = &seen[1];
    assert_eq!(event["auditID"], "my-id");
    assert_eq!(
        (&event["verb"], &event["requestURI"], &event["userAgent"]),
        (&json!("create"), &json!(maps), &json!("test/1"))
    );
    let reference = json!({"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"});
    assert_eq!(event["objectRef"], reference);
    assert_eq!(event["responseStatus"], json!({"metadata": {}, "code": 201}));
    assert_eq!(event["requestObject"]["kind"], "ConfigMap");
    assert_eq!(event["responseObject"]["metadata"]["name"], "a");
    assert_eq!(event["annotations"]["authorization.k8s.io/decision"], "allow");

    let (code, _) = ask(&server, Method::GET, maps, &[("impersonate-user", "bob")], Value::Null).await;
    assert_eq!(code, 403);
    let seen = std::mem::take(&mut *lines.lock().unwrap());
    assert_eq!(seen[1]["user"]["username"], "kubernetes-admin");
    assert_eq!(seen[1]["impersonatedUser"]["username"], "bob");
    assert_eq!(seen[1]["authenticationMetadata"]["impersonationConstraint"], "impersonate:user-info");
    assert_eq!(seen[1]["responseStatus"]["reason"], "Forbidden");
    assert_eq!(seen[1]["annotations"]["authorization.k8s.io/decision"], "forbid");
}

#[tokio::test]
async fn audit_log_of_a_watch_ends_with_its_body() {
    let (builder, lines) = logged(AuditPolicy::metadata());
    let server = builder.start().await.unwrap();
    let stages = || lines.lock().unwrap().iter().map(|event| event["stage"].clone()).collect::<Vec<_>>();
    let request = http::Request::get("/api/v1/configmaps?watch=1").body(Bytes::new()).unwrap();
    let response = server.handle(request).await;
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted"]);
    drop(response);
    assert_eq!(stages(), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
}

#[tokio::test]
async fn audit_policy_chooses_by_the_first_rule() {
    let policy = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: [quiet]}
- {level: Metadata, resources: [{group: '', resources: [secrets]}]}
- {level: Request, verbs: [create], omitManagedFields: true}
- {level: None, nonResourceURLs: ['/version*']}
- {level: RequestResponse, namespaces: [default]}
";
    let (builder, lines) = logged(AuditPolicy::from_yaml(policy).unwrap());
    let server = builder.start().await.unwrap();
    let take = || std::mem::take(&mut *lines.lock().unwrap());
    let secrets = "/api/v1/namespaces/default/secrets";
    ask(&server, Method::POST, secrets, &[], json!({"metadata": {"name": "a"}, "stringData": {"k": "hush"}})).await;
    let seen = take();
    assert_eq!((seen.len(), &seen[0]["level"]), (1, &json!("Metadata")));
    assert!(!seen[0].to_string().contains("hush") && seen[0].get("requestObject").is_none());
    ask(&server, Method::POST, "/api/v1/namespaces/default/configmaps", &[], json!({"metadata": {"name": "a"}})).await;
    let seen = take();
    assert!(seen[0].get("requestObject").is_some() && seen[0].get("responseObject").is_none());
    ask(&server, Method::GET, "/version", &[], Value::Null).await;
    ask(&server, Method::GET, "/api/v1/nodes", &[], Value::Null).await;
    ask(&server, Method::GET, secrets, &[("impersonate-user", "quiet")], Value::Null).await;
    assert_eq!(take().len(), 1, "the policy is about the user who impersonates");
    let quiet = server.service_as(User::new("quiet"));
    quiet(http::Request::get(secrets).body(Bytes::new()).unwrap()).await;
    assert!(take().is_empty());
    for bad in [
        "a: b",
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Zork}]",
        "[",
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, nonResourceURLs: [a]}]",
    ] {
        let error = AuditPolicy::from_yaml(bad).unwrap_err();
        assert!(error.to_string().starts_with("invalid audit policy: "), "{error}");
    }
}

#[tokio::test]
async fn recorded_permissions_allow_what_was_done() {
    async fn work(client: Client) -> Result<(), klient::Error> {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        maps.create(&named("a")).await?;
        maps.get("a").await?;
        maps.list().await?;
        maps.delete("a").await?;
        Api::<Pod>::all(client.clone()).list().await?;
        let _ = client.rest().get().path("/metrics").bytes().await?;
        client.rest().get().path("/version").bytes().await?;
        Ok(())
    }
    let user = User::service_account("default", "robot");
    let server = ApiServer::builder().record_permissions().start().await.unwrap();
    work(Client::from_service(server.service_as(user.clone()))).await.unwrap();
    let used = server.used_permissions();
    assert_eq!(used.users().collect::<Vec<_>>(), [user.name()]);
    let expected = json!([
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ]);
    let objects = used.of(user.name()).objects();
    assert_eq!((&objects[0]["kind"], &objects[0]["rules"]), (&json!("ClusterRole"), &expected));
    let local = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "delete"]}]);
    assert_eq!((&objects[2]["kind"], &objects[2]["rules"]), (&json!("Role"), &local));

    // With these roles and nothing else the same work succeeds, and no single rule can be missing.
    for left_out in [None, Some(0), Some(2)] {
        let server = ApiServer::builder().rbac().start().await.unwrap();
        for (at, mut object) in objects.clone().into_iter().enumerate() {
            if left_out == Some(at) {
                object["rules"].as_array_mut().unwrap().remove(0);
            }
            let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
            let path = match object["metadata"]["namespace"].as_str() {
                Some(namespace) => format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/{plural}"),
                None => format!("/apis/rbac.authorization.k8s.io/v1/{plural}"),
            };
            let (code, answer) = ask(&server, Method::POST, &path, &[], object).await;
            assert_eq!(code, 201, "{answer}");
        }
        let outcome = work(Client::from_service(server.service_as(user.clone()))).await;
        assert_eq!(outcome.is_ok(), left_out.is_none(), "{left_out:?}");
    }
    assert!(used.to_yaml().contains("kind: ClusterRoleBinding"));
}
