//! `kubectl auth` against the embedded server with roles.

use klient_apiserver::ApiServer;

use crate::kubectl::Kubectl;

const ROLES: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules:
- {apiGroups: [''], resources: [pods, pods/log], verbs: [get, list]}
- {apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: [update]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}
";

#[test]
fn kubectl_auth_knows_what_a_user_may_do() {
    let Some(kubectl) = Kubectl::start_with(ApiServer::builder().rbac().namespace_objects()) else { return };
    let made = kubectl.with("auth reconcile -f -", ROLES);
    assert!(made.contains("role.rbac.authorization.k8s.io/reader reconciled"), "{made}");
    assert!(made.contains("rolebinding.rbac.authorization.k8s.io/readers reconciled"), "{made}");

    assert_eq!(kubectl.with("auth can-i create deployments", ""), "yes\n");
    assert_eq!(kubectl.with("auth can-i list pods --as bob", ""), "yes\n");
    for denied in ["list pods -A", "delete pods", "update deployments.apps", "get /metrics"] {
        let output = kubectl.output(&format!("auth can-i {denied} --as bob"), "");
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).trim()), (Some(1), "no"), "{denied}");
    }
    assert_eq!(kubectl.with("auth can-i update deployments.apps/web --as bob", ""), "yes\n");
    let list = kubectl.with("auth can-i --list --as bob", "");
    assert!(list.lines().any(|line| line.split_whitespace().eq(["pods/log", "[]", "[]", "[get", "list]"])), "{list}");
    assert!(list.contains("selfsubjectreviews.authentication.k8s.io"), "{list}");

    let who = kubectl.with("auth whoami --as bob --as-group devs", "");
    assert!(who.lines().any(|line| line.split_whitespace().eq(["Username", "bob"])), "{who}");
    assert!(who.contains("[devs system:authenticated]"), "{who}");
    assert!(kubectl.with("auth whoami", "").contains("kubernetes-admin"));

    let more = ROLES.replace("verbs: [get, list]", "verbs: [watch]");
    kubectl.with("auth reconcile -f -", &more);
    assert_eq!(kubectl.with("auth can-i watch pods --as bob", ""), "yes\n");
    assert_eq!(kubectl.with("auth can-i list pods --as bob", ""), "yes\n");
    let output = kubectl.output("get pods --as eve", "");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = "Error from server (Forbidden): pods is forbidden: User \"eve\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"\n";
    assert_eq!(error, expected);
}

#[test]
fn kubectl_creates_tokens_of_service_accounts() {
    let Some(kubectl) = Kubectl::start_with(ApiServer::builder().rbac().namespace_objects()) else { return };
    let token = kubectl.with("create token default --duration 20m", "");
    let who = kubectl
        .with(&format!("auth whoami -o jsonpath={{.status.userInfo.username}} --as-uid= --token {}", token.trim()), "");
    assert_eq!(who, "kubernetes-admin", "a client certificate is looked at before a token");
}
