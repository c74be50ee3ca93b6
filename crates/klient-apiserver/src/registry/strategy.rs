//! The rules of each kind that no document tells: they were read off the real server's behaviour.

use super::TypeDef;

/// The rules of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent rule")]
pub(crate) struct Strategy {
    /// `metadata.generation` counts changes of what is wanted.
    pub(crate) generation: bool,
    /// The status is written through its own subresource only.
    pub(crate) status: bool,
    /// An update makes what is not there.
    pub(crate) create_on_update: bool,
    /// An update without a resource version overwrites whatever is there.
    pub(crate) unconditional_update: bool,
    /// A delete answers with the object and not with a status.
    pub(crate) delete_returns_object: bool,
    pub(crate) names: NameRule,
}

/// What a name may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// Lower case letters, digits, `-` and `.`: up to 253.
    Subdomain,
    /// Lower case letters, digits and `-`: up to 63.
    Label,
    /// Anything that can be a part of a path.
    PathSegment,
}

impl Strategy {
    /// The rules of a built-in kind.
    pub(super) fn of_built_in(group: &str, plural: &str, schema: &TypeDef) -> Self {
        let place = (group, plural);
        let has_spec = schema.fields.contains_key("spec");
        let no_generation = matches!(
            place,
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
            place,
            ("admissionregistration.k8s.io", _)
                | ("discovery.k8s.io", "endpointslices")
                | ("scheduling.k8s.io", "priorityclasses")
                | ("", "podtemplates")
                | ("resource.k8s.io", "deviceclasses" | "resourceslices")
                | ("storage.k8s.io", "csinodes")
        ) && place != ("storage.k8s.io", "csinodes");
        Self {
            generation: (has_spec && !no_generation) || counted,
            status: schema.fields.contains_key("status"),
            create_on_update: matches!(
                place,
                ("coordination.k8s.io", "leases")
                    | ("", "endpoints" | "events" | "limitranges" | "services")
                    | ("events.k8s.io", "events")
                    | ("node.k8s.io", "runtimeclasses")
                    | ("rbac.authorization.k8s.io", _)
            ),
            unconditional_update: !matches!(
                place,
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
                place,
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
            names: match place {
                ("", "namespaces" | "services") => NameRule::Label,
                ("rbac.authorization.k8s.io" | "certificates.k8s.io", _) => NameRule::PathSegment,
                _ => NameRule::Subdomain,
            },
        }
    }

    /// The rules of custom kinds.
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
