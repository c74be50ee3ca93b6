//! The pod that connections are forwarded to: named, or chosen among those of a service or a workload.

use k8s_openapi::{
    api::{
        apps::v1::{
            DaemonSet, DaemonSetSpec, Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec, StatefulSet,
            StatefulSetSpec,
        },
        core::v1::{Pod, Service},
    },
    apimachinery::pkg::{apis::meta::v1::LabelSelector, util::intstr::IntOrString},
};
use klient_core::{LabelSelector as Labels, ResourceExt as _};

use super::session::Settings;
use crate::{Api, Error, ErrorKind};

/// The kind of object that names the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetKind {
    Pod,
    Service,
    Deployment,
    ReplicaSet,
    StatefulSet,
    DaemonSet,
}

/// A pod to connect to.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) name: String,
    /// The pod and the service, for the ports of a service.
    service: Option<Box<(Pod, Service)>>,
}

impl Candidate {
    /// Returns the port of the pod for a port of the target.
    pub(super) fn port(&self, wanted: u16) -> Result<u16, Error> {
        match &self.service {
            None => Ok(wanted),
            Some(both) => container_port(&both.1, &both.0, wanted),
        }
    }
}

/// Finds the pods to connect to, the best first.
pub(super) async fn candidates(settings: &Settings, avoided: Option<&str>) -> Result<Vec<Candidate>, Error> {
    let Settings { client, namespace, name, kind, .. } = settings;
    macro_rules! selector_of {
        ($kind:ty, $spec:ty) => {{
            let object = Api::<$kind>::namespaced(client.clone(), namespace).get(name).await?;
            // The field is optional in some Kubernetes versions of k8s-openapi.
            Option::<$spec>::from(object.spec).map(|spec| spec.selector).unwrap_or_default()
        }};
    }
    let (selector, service) = match kind {
        TargetKind::Pod => return Ok(vec![Candidate { name: name.clone(), service: None }]),
        TargetKind::Service => {
            let service = Api::<Service>::namespaced(client.clone(), namespace).get(name).await?;
            let labels = service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
            if labels.is_empty() {
                let what = format!("service {namespace}/{name} has no selector, so that it has no pods to forward to");
                return Err(Error::new(ErrorKind::Invalid, what));
            }
            (LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }, Some(service))
        }
        TargetKind::Deployment => (selector_of!(Deployment, DeploymentSpec), None),
        TargetKind::ReplicaSet => (selector_of!(ReplicaSet, ReplicaSetSpec), None),
        TargetKind::StatefulSet => (selector_of!(StatefulSet, StatefulSetSpec), None),
        TargetKind::DaemonSet => (selector_of!(DaemonSet, DaemonSetSpec), None),
    };
    if selector == LabelSelector::default() {
        let what = format!("{kind:?} {namespace}/{name} selects no pods");
        return Err(Error::new(ErrorKind::Invalid, what));
    }
    let labels = Labels::try_from(&selector)?;
    let mut pods = Api::<Pod>::namespaced(client.clone(), namespace).list().labels(labels).await?.items;
    pods.retain(|pod| pod.metadata.deletion_timestamp.is_none() && phase(pod) == "Running");
    // Ready pods first, and the one that failed last.
    pods.sort_by_key(|pod| (Some(pod.name()) == avoided, !is_ready(pod), pod.name().to_owned()));
    if pods.is_empty() {
        let what = format!("{kind:?} {namespace}/{name} has no running pod to forward to");
        return Err(Error::new(ErrorKind::Unavailable, what));
    }
    let candidate = |pod: Pod| Candidate {
        name: pod.name().to_owned(),
        service: service.clone().map(|service| Box::new((pod, service))),
    };
    Ok(pods.into_iter().map(candidate).collect())
}

fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Returns the container's port that a port of a service leads to, as kubectl does.
fn container_port(service: &Service, pod: &Pod, wanted: u16) -> Result<u16, Error> {
    let (service_name, pod_name) = (service.name(), pod.name());
    let invalid = |what: String| Error::new(ErrorKind::Invalid, what);
    let spec = service.spec.clone().unwrap_or_default();
    let Some(port) = spec.ports.iter().flatten().find(|port| port.port == i32::from(wanted)) else {
        return Err(invalid(format!("service {service_name} has no port {wanted}")));
    };
    // A service without an address has no translation of ports.
    if spec.cluster_ip.as_deref() == Some("None") {
        return Ok(wanted);
    }
    let number = match &port.target_port {
        None | Some(IntOrString::Int(0)) => i32::from(wanted),
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
            let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
            let Some(found) = ports.find(|port| port.name.as_ref() == Some(name)) else {
                return Err(invalid(format!("pod {pod_name} has no port {name}, which service {service_name} names")));
            };
            found.container_port
        }
    };
    u16::try_from(number)
        .map_err(|_| invalid(format!("service {service_name} leads to port {number}, which is no port")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn service_port_leads_to_a_container_port() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "web-0"}, "spec": {"containers": [
            {"name": "a"}, {"name": "b", "ports": [{"name": "http", "containerPort": 8080}]},
        ]}}))
        .unwrap();
        let service = |address: &str| -> Service {
            serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": {"clusterIP": address, "ports": [
                {"port": 80, "targetPort": "http"}, {"port": 81, "targetPort": 9090}, {"port": 82},
                {"port": 83, "targetPort": "nope"}, {"port": 84, "targetPort": 70000},
            ]}}))
            .unwrap()
        };
        let port = |wanted| container_port(&service("10.0.0.1"), &pod, wanted);
        assert_eq!([port(80).unwrap(), port(81).unwrap(), port(82).unwrap()], [8080, 9090, 82]);
        assert!(port(83).unwrap_err().to_string().contains("web-0 has no port nope"));
        assert!(port(84).unwrap_err().to_string().contains("70000"));
        assert!(port(85).unwrap_err().to_string().contains("has no port 85"));
        assert_eq!(container_port(&service("None"), &pod, 80).unwrap(), 80);
    }
}
