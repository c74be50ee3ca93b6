//! The table of built-in kinds that differ from others: data, and names of small functions. The rules were read off the real
//! server's behaviour.
//!
//! [`hooks`] chooses the row of a kind by its name, once per kind, when the registry is built. Nothing else chooses
//! behaviour by the name of a kind.

use serde_json::{Value, json};

use super::{
    Collector, accounts, autoscalers, components, defaults, definitions, devices, disabled, events,
    hooks::{Hooks, NameRule, Posted, StoredAs},
    ingresses, namespaces, nodes, pods, profiles, reviews, rules, services, signing_requests,
    tables::{cells, pods as pod_cells, rare},
    versions, volumes, warnings, workloads,
};
use crate::{
    Result,
    access::rbac::{Kind, after_role_change},
    bootstrap::restored,
    call::Call,
    server::Core,
};

/// Returns the hooks of a built-in kind.
pub(crate) fn hooks(group: &str, version: &str, plural: &str) -> &'static Hooks {
    match (group, plural) {
        ("", _) => core(plural),
        ("apps", "deployments") => &DEPLOYMENTS,
        ("apps", "statefulsets") => &STATEFUL_SETS,
        ("apps", "daemonsets") => &DAEMON_SETS,
        ("apps", "replicasets") => &REPLICA_SETS,
        ("apps", "controllerrevisions") => &CONTROLLER_REVISIONS,
        ("batch", "jobs") => &JOBS,
        ("batch", "cronjobs") => &CRON_JOBS,
        ("autoscaling", "horizontalpodautoscalers") if version == "v1" => &AUTOSCALERS_V1,
        ("autoscaling", "horizontalpodautoscalers") => &AUTOSCALERS_V2,
        ("events.k8s.io", "events") => &NEW_EVENTS,
        ("networking.k8s.io", "networkpolicies") => &NETWORK_POLICIES,
        ("networking.k8s.io", "ingresses") => &INGRESSES,
        ("networking.k8s.io", "ingressclasses") => &INGRESS_CLASSES,
        ("networking.k8s.io", "servicecidrs") => &SERVICE_CIDRS,
        ("networking.k8s.io", "ipaddresses") => &IP_ADDRESSES,
        ("discovery.k8s.io", "endpointslices") => &ENDPOINT_SLICES,
        ("policy", "poddisruptionbudgets") => &DISRUPTION_BUDGETS,
        ("rbac.authorization.k8s.io", "roles") => &ROLES,
        ("rbac.authorization.k8s.io", "clusterroles") => &CLUSTER_ROLES,
        ("rbac.authorization.k8s.io", "rolebindings") => &ROLE_BINDINGS,
        ("rbac.authorization.k8s.io", "clusterrolebindings") => &CLUSTER_ROLE_BINDINGS,
        ("coordination.k8s.io", "leases") => &LEASES,
        ("certificates.k8s.io", _) => &signing_requests::HOOKS,
        ("apiextensions.k8s.io", _) => &DEFINITIONS,
        ("authentication.k8s.io", "selfsubjectreviews") => &SELF_REVIEWS,
        ("authentication.k8s.io", "tokenreviews") => &TOKEN_REVIEWS,
        ("authorization.k8s.io", "selfsubjectrulesreviews") => &RULES_REVIEWS,
        ("authorization.k8s.io", "selfsubjectaccessreviews") => &OWN_ACCESS_REVIEWS,
        ("authorization.k8s.io", "localsubjectaccessreviews") => &LOCAL_ACCESS_REVIEWS,
        ("authorization.k8s.io", _) => &ACCESS_REVIEWS,
        ("resource.k8s.io", "resourceclaims") => &devices::CLAIMS,
        ("resource.k8s.io", "resourceclaimtemplates") => &devices::CLAIM_TEMPLATES,
        ("resource.k8s.io", _) => &devices::DEVICES,
        ("flowcontrol.apiserver.k8s.io", _) => &FLOW_CONTROL,
        ("admissionregistration.k8s.io", "mutatingwebhookconfigurations" | "validatingwebhookconfigurations") => {
            &WEBHOOKS
        }
        ("admissionregistration.k8s.io", _) => &ADMISSION_POLICIES,
        ("apiregistration.k8s.io", _) => &API_SERVICES,
        ("scheduling.k8s.io", "priorityclasses") => &PRIORITY_CLASSES,
        ("node.k8s.io", "runtimeclasses") => &RUNTIME_CLASSES,
        ("storage.k8s.io", "storageclasses") => &STORAGE_CLASSES,
        ("storage.k8s.io", "volumeattributesclasses") => &VOLUME_ATTRIBUTES_CLASSES,
        ("storage.k8s.io", "volumeattachments") => &VOLUME_ATTACHMENTS,
        ("storage.k8s.io", "csidrivers") => &CSI_DRIVERS,
        ("storage.k8s.io", "csinodes") => &CSI_NODES,
        ("storage.k8s.io", "csistoragecapacities") => &CSI_STORAGE_CAPACITIES,
        _ => &Hooks::NONE,
    }
}

/// Returns the hooks of a kind of the core group.
fn core(plural: &str) -> &'static Hooks {
    match plural {
        "pods" => &PODS,
        "nodes" => &NODES,
        "namespaces" => &NAMESPACES,
        "services" => &SERVICES,
        "serviceaccounts" => &SERVICE_ACCOUNTS,
        "endpoints" => &ENDPOINTS,
        "events" => &CORE_EVENTS,
        "secrets" => &SECRETS,
        "configmaps" => &CONFIG_MAPS,
        "limitranges" => &LIMIT_RANGES,
        "resourcequotas" => &RESOURCE_QUOTAS,
        "persistentvolumes" => &PERSISTENT_VOLUMES,
        "persistentvolumeclaims" => &PERSISTENT_VOLUME_CLAIMS,
        "podtemplates" => &POD_TEMPLATES,
        "replicationcontrollers" => &REPLICATION_CONTROLLERS,
        "bindings" => &BINDINGS,
        "componentstatuses" => &COMPONENT_STATUSES,
        _ => &Hooks::NONE,
    }
}

/// The fields that writes to the status of most newer kinds do not change.
pub(super) const SPEC_AND_METADATA: &[&str] = &["spec", "metadata"];

static PODS: Hooks = Hooks {
    on_create: Some(profiles::copy),
    warnings: Some(warnings::pod),
    status_warnings: Some(warnings::pod_status),
    drop_disabled: disabled::pod,
    checks_prefix_again: true,
    defaults: Some(|object| {
        defaults::pod(object);
        pods::list_address(object);
    }),
    before_create: Some(|_, object| {
        pods::copy_account(object);
        Ok(())
    }),
    before_update: |_, object, _| {
        pods::keep_links(object);
        Ok(())
    },
    new_status: Some(pods::new_status),
    on_status: |object, old, _| pods::on_status(object, old),
    validate: rules::pod,
    validate_status: rules::pod_status,
    validate_part: rules::pod_part,
    grace_period: pods::grace_period,
    marks_before_delete: true,
    delete_returns_object: true,
    selectable: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ],
    cell: pod_cells::pod,
    row_condition: pod_cells::pod_condition,
    set_nulls: pods::null_times,
    status_reset_fields: &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
    ..Hooks::NONE
};

static COMPONENT_STATUSES: Hooks = Hooks {
    computed: Some(components::statuses),
    cell: components::cell,
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    ..Hooks::NONE
};

static NODES: Hooks = Hooks {
    warnings: Some(warnings::node),
    defaults: Some(nodes::list_range),
    drop_disabled: disabled::node,
    checks_prefix_again: true,
    new_status: None,
    validate: rules::node,
    validate_status: rules::node_status,
    on_status: |object, old, _| nodes::drop_config(object, old),
    selectable: &["spec.unschedulable"],
    cell: cells::node,
    has_generation: Some(false),
    ..Hooks::NONE
};

static NAMESPACES: Hooks = Hooks {
    defaults: Some(namespaces::defaults),
    before_create: Some(|_, object| {
        namespaces::before_create(object);
        Ok(())
    }),
    before_update: |_, object, old| {
        namespaces::before_update(object, old);
        Ok(())
    },
    new_status: Some(|_, _| json!({"phase": "Active"})),
    validate: rules::namespace,
    validate_status: rules::namespace_status,
    validate_part: |_, object, _, causes| rules::namespace(object, None, causes),
    before_delete: namespaces::before_delete,
    is_removable: namespaces::is_removable,
    on_deletion: namespaces::on_deletion,
    resume_deletion: Collector::empty_namespace,
    after_change: Some(|core, change| Box::pin(namespaces::after_change(core, change))),
    selectable: &["status.phase"],
    cell: cells::namespace,
    names: NameRule::Label,
    delete_returns_object: true,
    has_generation: Some(false),
    ..Hooks::NONE
};

static SERVICES: Hooks = Hooks {
    after_change: Some(|core, change| Box::pin(restored::after_change(core, change))),
    status_warnings: Some(warnings::load_balancer_status),
    defaults: Some(services::fill),
    before_create: Some(|writing, object| services::allocate(writing, object, None)),
    before_update: |writing, object, old| services::allocate(writing, object, Some(old)),
    new_status: Some(|_, _| json!({"loadBalancer": {}})),
    validate: rules::service,
    validate_status: rules::service_status,
    warnings: Some(warnings::service),
    selectable: &["spec.clusterIP", "spec.type"],
    cell: cells::service,
    names: NameRule::Label,
    create_on_update: true,
    delete_returns_object: true,
    has_generation: Some(false),
    storage_path: Some("services/specs"),
    ..Hooks::NONE
};

static SERVICE_ACCOUNTS: Hooks = Hooks {
    warnings: Some(warnings::service_account),
    before_create: Some(|_, object| {
        accounts::clean(object);
        Ok(())
    }),
    before_update: |_, object, _| {
        accounts::clean(object);
        Ok(())
    },
    checks_prefix_again: true,
    delete_returns_object: true,
    ..Hooks::NONE
};

static ENDPOINTS: Hooks = Hooks {
    after_change: Some(|core, change| Box::pin(restored::after_change(core, change))),
    checks_prefix_again: true,
    validate: rules::endpoints,
    warnings: Some(warnings::endpoints),
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    cell: rare::endpoints,
    create_on_update: true,
    ..Hooks::NONE
};

static CORE_EVENTS: Hooks = Hooks {
    null_fields: &["/eventTime", "/firstTimestamp", "/lastTimestamp"],
    set_nulls: events::set_reporter,
    validate: |object, old, causes| rules::event(false, object, old, causes),
    convert: Some(versions::event_to_core),
    selectable: events::CORE_FIELDS,
    cell: cells::event,
    create_on_update: true,
    ..Hooks::NONE
};

static NEW_EVENTS: Hooks = Hooks {
    null_fields: &["/eventTime", "/deprecatedFirstTimestamp", "/deprecatedLastTimestamp"],
    validate: |object, old, causes| rules::event(true, object, old, causes),
    validation_group: Some(""),
    convert: Some(versions::event_to_new),
    selectable: events::NEW_FIELDS,
    cell: cells::event,
    create_on_update: true,
    // Events are in two groups and share one table.
    table: Some("events"),
    ..Hooks::NONE
};

static SECRETS: Hooks = Hooks {
    warnings: Some(warnings::secret),
    defaults: Some(defaults::secret),
    validate: rules::secret,
    selectable: &["type"],
    cell: cells::secret,
    ..Hooks::NONE
};

static CONFIG_MAPS: Hooks = Hooks { validate: rules::config_map, cell: cells::config_map, ..Hooks::NONE };

static LIMIT_RANGES: Hooks = Hooks {
    null_fields: &["/spec/limits"],
    before_create: Some(defaults::name_by_uid),
    checks_prefix_again: true,
    validate: rules::limit_range,
    defaults: Some(defaults::limit_range),
    create_on_update: true,
    has_generation: Some(false),
    ..Hooks::NONE
};

static RESOURCE_QUOTAS: Hooks = Hooks {
    validate: rules::quota,
    validate_status: rules::quota_status,
    warnings: Some(warnings::quota),
    cell: rare::resource_quota,
    delete_returns_object: true,
    has_generation: Some(false),
    ..Hooks::NONE
};

static PERSISTENT_VOLUMES: Hooks = Hooks {
    warnings: Some(warnings::volume),
    checks_prefix_again: true,
    defaults: Some(defaults::pending),
    new_status: Some(|_, now| json!({"phase": "Pending", "lastPhaseTransitionTime": now})),
    validate: rules::volume,
    cell: rare::volume,
    delete_returns_object: true,
    has_generation: Some(false),
    ..Hooks::NONE
};

static PERSISTENT_VOLUME_CLAIMS: Hooks = Hooks {
    warnings: Some(warnings::claim),
    checks_prefix_again: true,
    defaults: Some(defaults::pending),
    before_create: Some(|_, object| {
        volumes::unite_sources(object, None);
        Ok(())
    }),
    before_update: |_, object, old| {
        volumes::unite_sources(object, Some(old));
        Ok(())
    },
    set_nulls: volumes::null_groups,
    new_status: Some(|_, _| json!({"phase": "Pending"})),
    validate: rules::claim,
    validate_status: rules::claim_status,
    cell: cells::volume_claim,
    delete_returns_object: true,
    has_generation: Some(false),
    ..Hooks::NONE
};

static POD_TEMPLATES: Hooks = Hooks {
    drop_disabled: disabled::pod_template,
    validate: rules::pod_template,
    warnings: Some(warnings::pod_template),
    cell: rare::pod_template,
    delete_returns_object: true,
    has_generation: Some(true),
    ..Hooks::NONE
};

static REPLICATION_CONTROLLERS: Hooks = Hooks {
    drop_disabled: disabled::template,
    validate: rules::replication_controller,
    validate_status: rules::replica_set_status,
    warnings: Some(warnings::replication_controller),
    orphans_dependents: true,
    storage_path: Some("controllers"),
    defaults: Some(defaults::replication_controller),
    selectable: &["status.replicas"],
    cell: rare::replication_controller,
    ..Hooks::NONE
};

static BINDINGS: Hooks = Hooks { posted: Posted::Binding, ..Hooks::NONE };

static DEPLOYMENTS: Hooks = Hooks {
    warnings: Some(warnings::replicated),
    drop_disabled: disabled::template,
    defaults: Some(defaults::deployment),
    validate: rules::deployment,
    validate_status: rules::deployment_status,
    cell: cells::deployment,
    generation_counts: &["annotations"],
    status_reset_fields: &["spec", "metadata.labels"],
    ..Hooks::NONE
};

static STATEFUL_SETS: Hooks = Hooks {
    warnings: Some(warnings::stateful_set),
    drop_disabled: disabled::stateful_set,
    defaults: Some(defaults::stateful_set),
    new_status: Some(|_, _| json!({"replicas": 0, "availableReplicas": 0})),
    validate: rules::stateful_set,
    names: NameRule::Label,
    validate_status: rules::stateful_set_status,
    cell: cells::stateful_set,
    ..Hooks::NONE
};

static DAEMON_SETS: Hooks = Hooks {
    warnings: Some(warnings::daemon_set),
    drop_disabled: disabled::template,
    defaults: Some(|object| {
        defaults::daemon_set(object);
        workloads::default_template_generation(object);
    }),
    before_update: |_, object, old| {
        workloads::update_template_generation(object, old);
        Ok(())
    },
    before_create: Some(|_, object| {
        workloads::set_template_generation(object);
        Ok(())
    }),
    validate: rules::daemon_set,
    validate_status: rules::daemon_set_status,
    cell: cells::daemon_set,
    on_status: |object, old, _| workloads::keep_template_generation(object, old),
    row_metadata: workloads::remove_template_generation,
    ..Hooks::NONE
};

static REPLICA_SETS: Hooks = Hooks {
    warnings: Some(warnings::replicated),
    drop_disabled: disabled::template,
    validate: rules::replica_set,
    validate_status: rules::replica_set_status,
    cell: cells::replica_set,
    ..Hooks::NONE
};

static CONTROLLER_REVISIONS: Hooks = Hooks {
    checks_prefix_again: true,
    validate: rules::controller_revision,
    cell: rare::controller_revision,
    ..Hooks::NONE
};

static JOBS: Hooks = Hooks {
    warnings: Some(warnings::job),
    orphans_dependents: true,
    delete_warning: Some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
    ),
    drop_disabled: disabled::template,
    checks_prefix_again: true,
    defaults: Some(defaults::job),
    with_uid: workloads::select_pods,
    validate: rules::job,
    validate_status: rules::job_status,
    selectable: &["status.successful"],
    cell: cells::job,
    ..Hooks::NONE
};

static CRON_JOBS: Hooks = Hooks {
    warnings: Some(warnings::cron_job),
    drop_disabled: disabled::cron_job,
    validate: rules::cron_job,
    cell: cells::cron_job,
    ..Hooks::NONE
};

static AUTOSCALERS_V1: Hooks = Hooks {
    convert: Some(autoscalers::to_v1),
    stored_as: Some(StoredAs { version: "v2", convert: autoscalers::to_v2 }),
    cell: rare::autoscaler,
    has_generation: Some(false),
    ..Hooks::NONE
};

static AUTOSCALERS_V2: Hooks = Hooks {
    defaults: Some(defaults::autoscaler_v2),
    null_fields: &["/status/currentMetrics"],
    on_status: |object, _, _| super::null_list(object, "/status/currentMetrics"),
    validate: rules::autoscaler,
    validate_status: rules::autoscaler_status,
    convert: Some(autoscalers::to_v2),
    settle: Some(autoscalers::drop_annotations),
    cell: rare::autoscaler,
    has_generation: Some(false),
    ..Hooks::NONE
};

static NETWORK_POLICIES: Hooks = Hooks {
    warnings: Some(warnings::network_policy),
    defaults: Some(defaults::network_policy),
    validate: rules::network_policy,
    cell: cells::network_policy,
    ..Hooks::NONE
};

static INGRESSES: Hooks = Hooks {
    warnings: Some(warnings::ingress),
    status_warnings: Some(warnings::load_balancer_status),
    checks_prefix_again: true,
    new_status: Some(|_, _| json!({"loadBalancer": {}})),
    set_nulls: ingresses::null_groups,
    validate: rules::ingress,
    validate_status: rules::ingress_status,
    cell: cells::ingress,
    ..Hooks::NONE
};

static INGRESS_CLASSES: Hooks = Hooks { validate: rules::ingress_class, cell: rare::ingress_class, ..Hooks::NONE };

static ENDPOINT_SLICES: Hooks = Hooks {
    after_change: Some(|core, change| Box::pin(restored::after_change(core, change))),
    drop_disabled: disabled::endpoint_slice,
    generation_counts: &["labels"],
    checks_prefix_again: true,
    validate: rules::endpoint_slice,
    null_fields: &["/ports", "/endpoints"],
    warnings: Some(warnings::endpoint_slice),
    defaults: Some(defaults::endpoint_slice),
    cell: rare::endpoint_slice,
    has_generation: Some(true),
    ..Hooks::NONE
};

static DISRUPTION_BUDGETS: Hooks = Hooks {
    new_status: Some(
        |_, _| json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
    ),
    validate: rules::budget,
    names: NameRule::PathSegment,
    checks_finalizers: false,
    metadata_last: true,
    validate_status: rules::budget_status,
    cell: cells::disruption_budget,
    unconditional_update: false,
    ..Hooks::NONE
};

/// The hooks that roles and cluster roles have in common.
const ROLE: Hooks = Hooks {
    null_fields: &["/rules"],
    validate: rules::role,
    names: NameRule::WholeSegment,
    checks_prefix_again: true,
    create_on_update: true,
    ..Hooks::NONE
};

/// The hooks that role bindings and cluster role bindings have in common.
const ROLE_BINDING: Hooks = Hooks {
    defaults: Some(defaults::role_binding),
    validate: rules::role_binding,
    cell: cells::role_binding,
    names: NameRule::WholeSegment,
    checks_prefix_again: true,
    create_on_update: true,
    ..Hooks::NONE
};

static ROLES: Hooks =
    Hooks { after_change: Some(|core, change| Box::pin(after_role_change(core, Kind::Role, &change.key))), ..ROLE };
static CLUSTER_ROLES: Hooks = Hooks {
    validate: rules::cluster_role,
    after_change: Some(|core, change| Box::pin(after_role_change(core, Kind::ClusterRole, &change.key))),
    ..ROLE
};
static ROLE_BINDINGS: Hooks = Hooks {
    after_change: Some(|core, change| Box::pin(after_role_change(core, Kind::RoleBinding, &change.key))),
    ..ROLE_BINDING
};
static CLUSTER_ROLE_BINDINGS: Hooks = Hooks {
    validate: rules::cluster_role_binding,
    after_change: Some(|core, change| Box::pin(after_role_change(core, Kind::ClusterRoleBinding, &change.key))),
    ..ROLE_BINDING
};

static LEASES: Hooks = Hooks {
    drop_disabled: disabled::lease,
    validate: rules::lease,
    checks_finalizers: false,
    cell: cells::lease,
    create_on_update: true,
    unconditional_update: false,
    has_generation: Some(false),
    ..Hooks::NONE
};

static DEFINITIONS: Hooks = Hooks {
    warnings: Some(warnings::definition),
    checks_finalizers: false,
    defaults: Some(definitions::fill),
    before_create: Some(|_, object| {
        definitions::before_create(object);
        Ok(())
    }),
    before_update: |_, object, old| {
        definitions::before_update(object, old);
        Ok(())
    },
    new_status: None,
    null_fields: &["/status/conditions"],
    validate: definitions::validate,
    is_removable: crate::metadata::is_deleting,
    on_deletion: definitions::terminating,
    resume_deletion: Collector::empty_definition,
    after_change: Some(|core, change| Box::pin(definitions::after_change(core, change))),
    unconditional_update: false,
    ..Hooks::NONE
};

static SELF_REVIEWS: Hooks = review(reviews::who_am_i);
static TOKEN_REVIEWS: Hooks = review(reviews::token);
static RULES_REVIEWS: Hooks = review(reviews::rules);
static ACCESS_REVIEWS: Hooks = review(reviews::access);
static OWN_ACCESS_REVIEWS: Hooks = review(reviews::own_access);
static LOCAL_ACCESS_REVIEWS: Hooks = review(reviews::local_access);

/// Returns the hooks of a kind that is posted to be reviewed.
const fn review(status: fn(&Core, &Call, &mut Value) -> Result<()>) -> Hooks {
    Hooks { posted: Posted::Review(status), has_generation: Some(false), ..Hooks::NONE }
}

static FLOW_CONTROL: Hooks = Hooks {
    after_change: Some(|core, change| Box::pin(restored::after_change(core, change))),
    cell: rare::flow_control,
    status_reset_fields: SPEC_AND_METADATA,
    ..Hooks::NONE
};

static WEBHOOKS: Hooks = Hooks {
    warnings: Some(warnings::admission),
    cell: rare::webhooks,
    validate: rules::webhooks,
    unconditional_update: false,
    has_generation: Some(true),
    after_change: Some(|core, _| Box::pin(async move { core.reload_webhooks() })),
    ..Hooks::NONE
};

static ADMISSION_POLICIES: Hooks = Hooks {
    warnings: Some(warnings::admission),
    status_warnings: Some(warnings::admission),
    validate: rules::admission_policy,
    unconditional_update: false,
    status_reset_fields: SPEC_AND_METADATA,
    after_change: Some(|core, _| Box::pin(async move { core.reload_policies() })),
    ..Hooks::NONE
};

static API_SERVICES: Hooks = Hooks {
    new_status: Some(restored::api_service_status),
    after_change: Some(|core, change| Box::pin(restored::after_api_service(core, change))),
    unconditional_update: false,
    has_generation: Some(false),
    status_reset_fields: SPEC_AND_METADATA,
    ..Hooks::NONE
};

static SERVICE_CIDRS: Hooks = Hooks {
    after_change: Some(|core, change| Box::pin(restored::after_change(core, change))),
    cell: rare::service_cidr,
    has_generation: Some(false),
    status_reset_fields: SPEC_AND_METADATA,
    ..Hooks::NONE
};

static IP_ADDRESSES: Hooks = Hooks { cell: rare::ip_address, has_generation: Some(false), ..Hooks::NONE };

static PRIORITY_CLASSES: Hooks = Hooks {
    keeps_generation: true,
    validate: rules::priority_class,
    before_delete: rules::deleted_priority_class,
    cell: rare::priority_class,
    has_generation: Some(true),
    ..Hooks::NONE
};

static RUNTIME_CLASSES: Hooks = Hooks {
    checks_finalizers: false,
    checks_prefix_again: true,
    validate: rules::runtime_class,
    warnings: Some(warnings::runtime_class),
    cell: rare::runtime_class,
    create_on_update: true,
    unconditional_update: false,
    ..Hooks::NONE
};

static STORAGE_CLASSES: Hooks = Hooks {
    checks_prefix_again: true,
    validate: rules::storage_class,
    warnings: Some(warnings::storage_class),
    cell: rare::storage_class,
    delete_returns_object: true,
    ..Hooks::NONE
};

/// The hooks that the kinds of storage drivers have in common.
const DRIVER_KIND: Hooks =
    Hooks { unconditional_update: false, delete_returns_object: true, has_generation: Some(false), ..Hooks::NONE };

static VOLUME_ATTRIBUTES_CLASSES: Hooks = Hooks { cell: rare::volume_attributes_class, ..DRIVER_KIND };
static VOLUME_ATTACHMENTS: Hooks =
    Hooks { cell: rare::volume_attachment, status_reset_fields: SPEC_AND_METADATA, ..DRIVER_KIND };
static CSI_DRIVERS: Hooks = Hooks { warnings: Some(warnings::csi_driver), cell: rare::csi_driver, ..DRIVER_KIND };
static CSI_NODES: Hooks = Hooks { cell: rare::csi_node, ..DRIVER_KIND };
static CSI_STORAGE_CAPACITIES: Hooks = Hooks { warnings: Some(warnings::storage_capacity), ..DRIVER_KIND };
