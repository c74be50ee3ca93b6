//! kubectl against the embedded server.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Command, Output, Stdio},
};

use klient_apiserver::{ApiServer, ApiServerBuilder};
use klient_harness::Programs;
use serde_json::Value;

use crate::endpoint::{Endpoint, skip};

/// kubectl with its own server.
pub(crate) struct Kubectl {
    program: PathBuf,
    endpoint: Endpoint,
}

impl Kubectl {
    /// Starts a server. Returns `None` if kubectl is not available and not required.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(ApiServer::builder())
    }

    /// Starts a server with settings of its own, as [`start`](Self::start) does.
    pub(crate) fn start_with(builder: ApiServerBuilder) -> Option<Self> {
        let found = Programs::for_tests().unwrap().map(|programs| programs.folder().join("kubectl"));
        let Some(program) = found.filter(|program| program.is_file()) else {
            skip("kubectl, since there is none");
            return None;
        };
        Some(Self { program, endpoint: Endpoint::start_with(builder) })
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(line.split(' '))
            .env("KUBECONFIG", self.endpoint.kubeconfig())
            // kubectl caches discovery there.
            .env("HOME", self.endpoint.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn output(&self, line: &str, input: &str) -> Output {
        let mut child = self.command(line).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    /// Runs kubectl with an input, and returns its output. kubectl must succeed.
    pub(crate) fn with(&self, line: &str, input: &str) -> String {
        let output = self.output(line, input);
        assert!(output.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn run(&self, line: &str) -> String {
        self.with(line, "")
    }

    /// Runs kubectl, which must fail, and returns its error output.
    pub(crate) fn fail(&self, line: &str) -> String {
        self.fail_with(line, "")
    }

    /// Runs kubectl with an input, as [`fail`](Self::fail) does.
    pub(crate) fn fail_with(&self, line: &str, input: &str) -> String {
        let output = self.output(line, input);
        assert!(!output.status.success(), "kubectl {line} succeeded");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        serde_json::from_str(&self.run(&format!("{line} -o json"))).unwrap()
    }
}

/// Returns the words of each line, because the widths of columns vary.
fn cells(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn kubectl_gets_objects_in_every_format() {
    let Some(kubectl) = Kubectl::start() else { return };
    assert_eq!(kubectl.with("create -f -", WEB), "deployment.apps/web created\nservice/web created\n");
    let table = kubectl.run("get deployments");
    assert_eq!(cells(&table)[0], ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]);
    assert_eq!(cells(&table)[1][..4], ["web", "0/2", "0", "0"]);
    let wide = kubectl.run("get deploy web -o wide");
    assert_eq!(cells(&wide)[0][5..], ["CONTAINERS", "IMAGES", "SELECTOR"]);
    assert_eq!(cells(&wide)[1][5..], ["main", "nginx:1", "app=web"]);
    assert_eq!(kubectl.run("get svc,deploy -o name"), "service/kubernetes\nservice/web\ndeployment.apps/web\n");
    let object = kubectl.json("get deploy web");
    assert_eq!(object["spec"]["template"]["spec"]["containers"][0]["ports"][0]["protocol"], "TCP");
    let yaml = kubectl.run("get deploy web -o yaml");
    assert!(yaml.starts_with("apiVersion: apps/v1\nkind: Deployment\n"), "{yaml}");
    assert_eq!(kubectl.run("get deploy web -o jsonpath={.spec.replicas}"), "2");
    assert_eq!(cells(&kubectl.run("get deploy -l app=web --no-headers")).len(), 1);
    assert_eq!(kubectl.run("get deploy -l app!=web"), "");
    assert_eq!(cells(&kubectl.run("get all -A --no-headers")).len(), 3);
    let missing = kubectl.fail("get deploy missing");
    assert_eq!(missing, "Error from server (NotFound): deployments.apps \"missing\" not found\n");
    let unknown = kubectl.fail("get gizmos");
    assert_eq!(unknown, "error: the server doesn't have a resource type \"gizmos\"\n");
}

#[test]
fn describes_objects() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.with("create -f -", WEB);
    kubectl.run("run one --image=busybox --labels=app=web");
    for (line, expected) in [
        ("describe deploy web", &["Name:                   web", "Replicas:               2 desired | 0 updated"][..]),
        ("describe svc web", &["Type:                     ClusterIP", "TargetPort:               80/TCP"]),
        (
            "describe pod one",
            &["Status:           Pending", "    Image:        busybox", "QoS Class:        BestEffort"],
        ),
        ("describe ns default", &["Status:       Active", "No resource quota."]),
    ] {
        let text = kubectl.run(line);
        for part in expected {
            assert!(text.contains(part), "{line}: no {part:?} in\n{text}");
        }
    }
}

#[test]
fn kubectl_applies_repeatedly() {
    let Some(kubectl) = Kubectl::start() else { return };
    let apply = |text: &str| kubectl.with("apply -f -", text);
    assert_eq!(apply(WEB), "deployment.apps/web created\nservice/web created\n");
    assert_eq!(apply(WEB), "deployment.apps/web unchanged\nservice/web unchanged\n");
    // A label that another client set stays. A label that is no longer applied is removed.
    kubectl.run("label deploy web theirs=yes");
    let changed = WEB.replace("nginx:1", "nginx:2").replace("labels: {app: web, tier: front}", "labels: {app: web}");
    assert_eq!(apply(&changed), "deployment.apps/web configured\nservice/web unchanged\n");
    let object = kubectl.json("get deploy web");
    assert_eq!(object["metadata"]["labels"], serde_json::json!({"app": "web", "theirs": "yes"}));
    assert_eq!(object["spec"]["template"]["spec"]["containers"][0]["image"], "nginx:2");
    assert_eq!(object["metadata"]["generation"], 2);
    assert_eq!(kubectl.with("diff -f -", &changed), "");
    let removed = kubectl.with("delete -f -", &changed);
    assert_eq!(
        removed,
        "deployment.apps \"web\" deleted from default namespace\nservice \"web\" deleted from default namespace\n"
    );
}

#[test]
fn kubectl_patches_labels_annotates_and_scales() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.with("create -f -", WEB);
    let image = r#"{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:2"}]}}}}"#;
    assert_eq!(kubectl.run(&format!("patch deploy web -p {image}")), "deployment.apps/web patched\n");
    assert_eq!(kubectl.run(&format!("patch deploy web -p {image}")), "deployment.apps/web patched (no change)\n");
    kubectl.run(r#"patch deploy web --type=merge -p {"spec":{"paused":true}}"#);
    kubectl.run(r#"patch deploy web --type=json -p [{"op":"add","path":"/spec/minReadySeconds","value":7}]"#);
    assert_eq!(kubectl.run("scale deploy web --replicas=5"), "deployment.apps/web scaled\n");
    let refused = kubectl.fail("scale deploy web --replicas=9 --current-replicas=1");
    assert!(refused.to_lowercase().contains("expected replicas to be 1, was 5"), "{refused}");
    assert_eq!(kubectl.run("label deploy web owner=jane"), "deployment.apps/web labeled\n");
    let taken = kubectl.fail("label deploy web owner=joe");
    assert!(taken.contains("'owner' already has a value (jane), and --overwrite is false"), "{taken}");
    assert_eq!(kubectl.run("annotate deploy web note=hello"), "deployment.apps/web annotated\n");
    assert_eq!(kubectl.run("label deploy web owner-"), "deployment.apps/web unlabeled\n");
    assert_eq!(kubectl.run("set image deploy/web main=nginx:3"), "deployment.apps/web image updated\n");
    let object = kubectl.json("get deploy web");
    let spec = &object["spec"];
    assert_eq!((&spec["replicas"], &spec["minReadySeconds"], &spec["paused"]), (&5.into(), &7.into(), &true.into()));
    assert_eq!(spec["template"]["spec"]["containers"][0]["ports"][0]["containerPort"], 80);
    assert_eq!(spec["template"]["spec"]["containers"][0]["image"], "nginx:3");
    assert_eq!(object["metadata"]["annotations"]["note"], "hello");
    assert!(object["metadata"]["labels"].get("owner").is_none());
    let bad = kubectl.fail(r#"patch deploy web --type=merge -p {"spec":{"selector":null}}"#);
    assert!(bad.contains("spec.selector: Required value"), "{bad}");
}

#[test]
fn waits_and_deletes() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.run("run one --image=busybox");
    let late = kubectl.fail("wait --for=condition=Ready pod/one --timeout=1s");
    assert_eq!(late, "error: timed out waiting for the condition on pods/one\n");
    let mut waiting = kubectl.command("wait --for=condition=Ready pod/one --timeout=60s").spawn().unwrap();
    let status = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    kubectl.run(&format!("patch pod one --subresource=status -p {status}"));
    assert!(waiting.wait().unwrap().success());
    assert_eq!(kubectl.run("wait --for=jsonpath={.status.phase}=Running pod/one"), "pod/one condition met\n");
    kubectl.run(r#"patch pod one -p {"metadata":{"finalizers":["klient.invalid/hold"]}}"#);
    let mut deleting = kubectl.command("delete pod one --grace-period=1").spawn().unwrap();
    let wait = "wait --for=jsonpath={.metadata.deletionGracePeriodSeconds} pod/one --timeout=60s";
    assert_eq!(kubectl.run(wait), "pod/one condition met\n");
    assert!(deleting.try_wait().unwrap().is_none(), "its finalizer is still there");
    kubectl.run(r#"patch pod one --type=merge -p {"metadata":{"finalizers":null}}"#);
    assert!(deleting.wait().unwrap().success());
    assert!(kubectl.fail("get pod one").contains("NotFound"));
    kubectl.run("create configmap a --from-literal=k=v");
    kubectl.run("create configmap b --from-literal=k=v");
    assert_eq!(cells(&kubectl.run("delete configmap --all")).len(), 2);
    assert_eq!(kubectl.run("delete ns missing --ignore-not-found"), "");
    kubectl.run("create ns other");
    kubectl.run("create configmap a -n other");
    assert_eq!(kubectl.run("delete ns other --timeout=60s"), "namespace \"other\" deleted\n");
}

#[test]
fn watches_what_changes() {
    let Some(kubectl) = Kubectl::start() else { return };
    let mut watching = kubectl.command("get configmaps -w -o name").spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    kubectl.run("create configmap one --from-literal=k=v");
    assert_eq!(lines.next().unwrap(), "configmap/one");
    kubectl.run("label configmap one a=b");
    assert_eq!(lines.next().unwrap(), "configmap/one");
    kubectl.run("delete configmap one");
    assert_eq!(lines.next().unwrap(), "configmap/one");
    watching.kill().unwrap();
    watching.wait().unwrap();

    let mut watching = kubectl.command("get configmaps --watch-only --output-watch-events").spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map(Result::unwrap);
    // kubectl prints nothing before the first event, and misses objects that were created before its watch.
    let mut made = 0;
    let seen = std::thread::scope(|scope| {
        let first = scope.spawn(|| [lines.next().unwrap(), lines.next().unwrap()]);
        while !first.is_finished() {
            kubectl.run(&format!("create configmap made-{made}"));
            made += 1;
        }
        first.join().unwrap()
    });
    assert_eq!(cells(&seen[0])[0], ["EVENT", "NAME", "DATA", "AGE"]);
    assert_eq!(cells(&seen[1])[0][0], "ADDED");
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn kubectl_discovers_new_custom_kinds() {
    let Some(kubectl) = Kubectl::start() else { return };
    let table = kubectl.run("api-resources");
    let rows = cells(&table);
    assert_eq!(rows[0], ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND"]);
    assert!(rows.contains(&vec!["pods", "po", "v1", "true", "Pod"]));
    assert!(rows.contains(&vec!["deployments", "deploy", "apps/v1", "true", "Deployment"]));
    assert_eq!(kubectl.run("api-resources --categories=all --api-group=batch -o name"), "cronjobs.batch\njobs.batch\n");
    assert!(kubectl.run("api-versions").lines().any(|line| line == "networking.k8s.io/v1"));
    assert!(kubectl.run("version").contains("Server Version: v1.36"));

    kubectl.with("create -f -", DEFINITION);
    kubectl.run("wait --for=condition=Established crd/gears.klient.invalid --timeout=60s");
    kubectl.with("apply -f -", GEAR);
    let found = kubectl.run("get gr");
    assert_eq!(cells(&found)[..2], [vec!["NAME", "TEETH"], vec!["small", "12"]]);
    assert_eq!(kubectl.with("apply -f -", &GEAR.replace("12", "14")), "gear.klient.invalid/small configured\n");
    assert_eq!(kubectl.run("scale gears small --replicas=3"), "gear.klient.invalid/small scaled\n");
    let object = kubectl.json("get gears small");
    assert_eq!((&object["spec"]["teeth"], &object["spec"]["copies"]), (&14.into(), &3.into()));
    kubectl.run("delete crd gears.klient.invalid");
    let gone = kubectl.fail("get gears");
    assert!(gone.contains("doesn't have a resource type") || gone.contains("NotFound"), "{gone}");
}

pub(crate) const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web, tier: front}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: 'nginx:1', ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
";

pub(crate) const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.klient.invalid}
spec:
  group: klient.invalid
  scope: Namespaced
  names: {kind: Gear, plural: gears, shortNames: [gr]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.copies, statusReplicasPath: .status.copies}}
    additionalPrinterColumns: [{name: Teeth, type: integer, jsonPath: .spec.teeth}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {teeth: {type: integer}, copies: {type: integer}}}
          status: {type: object, properties: {copies: {type: integer}}}
";

pub(crate) const GEAR: &str = "
apiVersion: klient.invalid/v1
kind: Gear
metadata: {name: small}
spec: {teeth: 12, copies: 1}
";
