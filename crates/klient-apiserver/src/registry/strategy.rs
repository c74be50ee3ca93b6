//! Strategies: rules of kinds that no API document contains. They were read off the real server's behaviour.

use super::TypeDef;

/// The strategy of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent rule")]
pub(crate) struct Strategy {
    /// Whether `metadata.generation` counts changes of the desired state.
    pub(crate) generation: bool,
    /// Whether the status can only be written through its subresource.
    pub(crate) status: bool,
    /// Whether an update creates a missing object.
    pub(crate) create_on_update: bool,
    /// Whether an update without a resource version overwrites the stored object.
    pub(crate) unconditional_update: bool,
    /// Whether the response to a delete is the object and not a status.
    pub(crate) delete_returns_object: bool,
    pub(crate) names: NameRule,
}

/// The rule for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Lower case letters, digits, `-` and `.`: up to 253 characters.
    Subdomain,
    /// Lower case letters, digits and `-`: up to 63 characters.
    Label,
    /// Any segment of a path.
    PathSegment,
}

impl Strategy {
    /// Returns the strategy of a built-in kind.
    pub(super) fn of_built_in(group: &str, plural: &str, schema: &TypeDef) -> Self {
        let kind = (group, plural);
        let has_spec = schema.fields.contains_key("spec");
        let no_generation = matches!(
            kind,
            (
                "",
                "namespaces"
                    | "nodes"
                    | "services"
                    | "persistentvolumes"
                    | "persistentvolumeclaims"
                    | "resourcequotas"
                    | "limitranges"
            ) | ("coordination.k8s.io" | "autoscaling", _)
                | ("certificates.k8s.io", _)
                | ("authentication.k8s.io" | "authorization.k8s.io", _)
                | ("storage.k8s.io", _)
                | ("apiregistration.k8s.io", _)
                | ("resource.k8s.io", "deviceclasses" | "resourceclaims" | "resourceclaimtemplates" | "resourceslices")
        );
        let counted = matches!(
            kind,
            ("admissionregistration.k8s.io", _)
                | ("discovery.k8s.io", "endpointslices")
                | ("scheduling.k8s.io", "priorityclasses")
                | ("", "podtemplates")
                | ("resource.k8s.io", "deviceclasses" | "resourceslices")
                | ("storage.k8s.io", "csinodes")
        ) && kind != ("storage.k8s.io", "csinodes");
        Self {
            generation: (has_spec && !no_generation) || counted,
            status: schema.fields.contains_key("status"),
            create_on_update: matches!(
                kind,
                ("coordination.k8s.io", "leases")
                    | ("", "endpoints" | "events" | "limitranges" | "services")
                    | ("events.k8s.io", "events")
                    | ("node.k8s.io", "runtimeclasses")
                    | ("rbac.authorization.k8s.io", _)
            ),
            unconditional_update: !matches!(
                kind,
                (
                    "coordination.k8s.io"
                        | "admissionregistration.k8s.io"
                        | "apiregistration.k8s.io"
                        | "apiextensions.k8s.io",
                    _
                ) | ("policy", "poddisruptionbudgets")
                    | ("node.k8s.io", "runtimeclasses")
                    | (
                        "storage.k8s.io",
                        "csidrivers"
                            | "csinodes"
                            | "csistoragecapacities"
                            | "volumeattachments"
                            | "volumeattributesclasses"
                    )
            ),
            delete_returns_object: matches!(
                kind,
                (
                    "",
                    "namespaces"
                        | "pods"
                        | "services"
                        | "serviceaccounts"
                        | "persistentvolumes"
                        | "persistentvolumeclaims"
                        | "podtemplates"
                        | "resourcequotas"
                ) | ("storage.k8s.io" | "resource.k8s.io", _)
            ),
            names: match kind {
                ("", "namespaces" | "services") => NameRule::Label,
                ("rbac.authorization.k8s.io" | "certificates.k8s.io", _) => NameRule::PathSegment,
                _ => NameRule::Subdomain,
            },
        }
    }

    /// Returns the strategy of a custom kind.
    pub(crate) fn of_custom(status: bool) -> Self {
        Self {
            generation: true,
            status,
            create_on_update: false,
            unconditional_update: false,
            delete_returns_object: false,
            names: NameRule::Subdomain,
        }
    }
}
