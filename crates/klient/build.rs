//! Tells the generated clientset which Kubernetes minor the final binary chose in k8s-openapi, as klient-proto's build
//! script does: `cfg(k8s_from = "35")` reads "1.35 or newer". klient-proto has checked that the minor is a known one.

use std::ops::RangeInclusive;

const MINORS: RangeInclusive<u32> = 33..=37;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let values: Vec<String> = MINORS.map(|minor| format!("\"{minor}\"")).collect();
    for name in ["k8s_from", "k8s_until"] {
        println!("cargo::rustc-check-cfg=cfg({name}, values({}))", values.join(", "));
    }
    let version = std::env::vars()
        .find(|(name, _)| name.starts_with("DEP_K8S_OPENAPI_") && name.ends_with("_VERSION"))
        .and_then(|(_, value)| value.parse::<u32>().ok());
    // 0x00_01_MM_00
    let chosen = version.expect("k8s-openapi publishes the version that is enabled") >> 8 & 0xff;
    for minor in MINORS.filter(|minor| *minor <= chosen) {
        println!("cargo::rustc-cfg=k8s_from=\"{minor}\"");
    }
    for minor in MINORS.filter(|minor| *minor >= chosen) {
        println!("cargo::rustc-cfg=k8s_until=\"{minor}\"");
    }
}
