//! kubectl with the OpenAPI documents of the embedded server.

use crate::kubectl::{DEFINITION, GEAR, Kubectl, WEB};

#[test]
fn kubectl_explains_built_in_and_custom_kinds() {
    let Some(kubectl) = Kubectl::start() else { return };
    let replicas = kubectl.run("explain deployment.spec.replicas");
    assert!(
        replicas.starts_with("GROUP:      apps\nKIND:       Deployment\nVERSION:    v1\n\nFIELD: replicas <integer>"),
        "{replicas}"
    );
    assert!(replicas.contains("Number of desired pods."), "{replicas}");
    let pod = kubectl.run("explain pods --recursive");
    assert!(pod.contains("ephemeralContainers\t<[]EphemeralContainer>"), "{pod}");
    let unknown = kubectl.fail("explain pod.spec.odd");
    assert!(unknown.contains("field \"odd\" does not exist"), "{unknown}");

    kubectl.with("create -f -", DEFINITION);
    kubectl.run("wait --for=condition=Established crd/gears.klient.invalid --timeout=60s");
    let gear = kubectl.run("explain gears.spec");
    assert!(gear.contains("GROUP:      klient.invalid\nKIND:       Gear\nVERSION:    v1"), "{gear}");
    assert!(gear.contains("teeth\t<integer>"), "{gear}");
    // A changed definition changes the document.
    kubectl.with(
        "apply -f -",
        &DEFINITION.replace("teeth: {type: integer}", "teeth: {type: integer}, color: {type: string}"),
    );
    let changed = kubectl.run("explain gears.spec.color");
    assert!(changed.contains("FIELD: color <string>"), "{changed}");
}

#[test]
fn kubectl_refuses_unknown_fields_by_default() {
    let Some(kubectl) = Kubectl::start() else { return };
    let (deployment, _) = WEB.split_once("---").unwrap();
    let odd = deployment.replace("replicas: 2", "replicas: 2\n  odd: 1");
    for line in ["create -f -", "create --validate=strict -f -", "apply -f -"] {
        let refused = kubectl.fail_with(line, &odd);
        assert!(refused.contains("strict decoding error: unknown field \"spec.odd\""), "{line}: {refused}");
    }
    let warned = kubectl.output("create --validate=warn -f -", &odd);
    assert!(warned.status.success());
    let warned = String::from_utf8(warned.stderr).unwrap();
    assert!(warned.contains("unknown field \"spec.odd\""), "{warned}");

    kubectl.with("create -f -", DEFINITION);
    kubectl.run("wait --for=condition=Established crd/gears.klient.invalid --timeout=60s");
    let refused = kubectl.fail_with("create -f -", &GEAR.replace("teeth: 12", "teeth: 12, odd: 1"));
    assert!(refused.contains("strict decoding error: unknown field \"spec.odd\""), "{refused}");
    assert_eq!(kubectl.with("create --validate=strict -f -", GEAR), "gear.klient.invalid/small created\n");
}

#[test]
fn kubectl_shows_differences() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.with("apply -f -", WEB);
    assert_eq!(kubectl.with("diff -f -", WEB), "");
    let changed = kubectl.output("diff -f -", &WEB.replace("nginx:1", "nginx:2"));
    // kubectl's exit code says whether there are differences.
    assert_eq!(changed.status.code(), Some(1), "{}", String::from_utf8_lossy(&changed.stderr));
    let text = String::from_utf8(changed.stdout).unwrap();
    assert!(text.contains("-      - image: nginx:1\n+      - image: nginx:2\n"), "{text}");
}

#[test]
fn kubectl_edits_objects() {
    let Some(kubectl) = Kubectl::start() else { return };
    kubectl.with("apply -f -", WEB);
    kubectl.with("create -f -", DEFINITION);
    kubectl.run("wait --for=condition=Established crd/gears.klient.invalid --timeout=60s");
    kubectl.with("create -f -", GEAR);
    for (line, script, pointer, expected) in [
        ("deployment web", "s/replicas: 2/replicas: 7/", "/spec/replicas", 7),
        ("gear small", "s/teeth: 12/teeth: 16/", "/spec/teeth", 16),
    ] {
        let mut edit = kubectl.command(&format!("edit {line}"));
        let output = edit.env("KUBE_EDITOR", format!("sed -i '{script}'")).output().unwrap();
        assert!(output.status.success(), "edit {line}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(kubectl.json(&format!("get {line}")).pointer(pointer), Some(&expected.into()));
    }
}
