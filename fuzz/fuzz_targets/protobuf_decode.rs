//! Bytes as several kinds: a decoded object is the same after another round trip.

#![no_main]

use k8s_openapi::{
    Resource,
    api::{
        admissionregistration::v1::ValidatingAdmissionPolicy,
        apps::v1::Deployment,
        batch::v1::CronJob,
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        core::v1::{Event, Node, Pod, Secret, Service},
        networking::v1::Ingress,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::Status,
};
use klient_proto::{ManagedFields, decode, encode};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&first, message)) = data.split_first() else { return };
    match first % 13 {
        0 => check::<Pod>(message),
        1 => check::<Deployment>(message),
        2 => check::<CronJob>(message),
        3 => check::<CertificateSigningRequest>(message),
        4 => check::<Lease>(message),
        5 => check::<Event>(message),
        6 => check::<Node>(message),
        7 => check::<Secret>(message),
        8 => check::<Service>(message),
        9 => check::<Ingress>(message),
        10 => check::<CustomResourceDefinition>(message),
        11 => check::<Status>(message),
        _ => check::<ValidatingAdmissionPolicy>(message),
    }
});

fn check<K: Resource + std::fmt::Debug + 'static>(message: &[u8]) {
    let _ = decode::<K>(message, ManagedFields::Drop);
    let Ok(object) = decode::<K>(message, ManagedFields::Keep) else { return };
    let encoded = encode(&object).expect("the kind has a codec");
    let again: K = decode(&encoded, ManagedFields::Keep).expect("what was encoded decodes");
    // Compared as bytes, because NaN differs from itself.
    assert_eq!(encode(&again).expect("the kind has a codec"), encoded, "{object:?}");
}
