//! The result of a program, short enough to compare: a count, and a sum that does not depend on the order.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

/// The objects that a program received.
#[derive(Default)]
pub struct Answer {
    count: usize,
    sum: u64,
}

impl Answer {
    /// Returns the number of objects.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Counts an object by its key alone.
    pub fn add_key(&mut self, namespace: &str, name: &str) {
        self.add(&format!("{namespace}/{name}"));
    }

    /// Counts an object by a number that is cheap to read, where hashing would cost more than the measured work.
    pub fn add_number(&mut self, number: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(number);
    }

    /// Adds the objects of another worker.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// Counts a pod by fields from its beginning, middle and end, which only a complete decode provides.
    pub fn add_pod(&mut self, pod: &Pod) {
        let text = |field: &Option<String>| field.clone().unwrap_or_default();
        let containers = pod.spec.as_ref().map_or(&[][..], |spec| &spec.containers);
        let images: Vec<_> = containers.iter().map(|container| text(&container.image)).collect();
        let status = pod.status.as_ref();
        let address = status.and_then(|status| status.pod_ip.clone()).unwrap_or_default();
        self.add(&format!(
            "{}/{} {} {address}",
            text(&pod.metadata.namespace),
            text(&pod.metadata.name),
            images.join(",")
        ));
    }

    /// Counts a custom resource by its key and by a deeply nested field.
    pub fn add_custom(&mut self, namespace: &str, name: &str, data: &Value) {
        let image = &data["spec"]["template"]["spec"]["containers"][0]["image"];
        self.add(&format!("{namespace}/{name} {}", image.as_str().unwrap_or_default()));
    }

    fn add(&mut self, text: &str) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(fnv1a(text.as_bytes()));
    }
}

impl<'a> FromIterator<&'a Pod> for Answer {
    fn from_iter<T: IntoIterator<Item = &'a Pod>>(pods: T) -> Self {
        let mut answer = Self::default();
        for pod in pods {
            answer.add_pod(pod);
        }
        answer
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:016x}", self.count, self.sum)
    }
}

/// FNV-1a, which Go's standard library has as well.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
