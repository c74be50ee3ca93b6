//! One webhook: its handler, and what its registration says.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use klient_core::{ApiResource, Resource};
use serde_json::{Value, json};

use super::{
    Defaulter, Mutator, Operation, Validator,
    handler::{self, Handler},
};

/// A webhook that is called for some requests. See [`validate`], [`mutate`] and [`default`].
#[doc(alias = "ValidatingWebhook")]
#[doc(alias = "MutatingWebhook")]
#[must_use]
pub struct Hook {
    pub(super) sort: Sort,
    pub(super) handler: Handler,
    group: String,
    version: String,
    plural: String,
    kind: String,
    subresources: Vec<String>,
    operations: Vec<Operation>,
    path: Option<String>,
    name: Option<String>,
    settings: Settings,
}

/// Whether a hook validates or mutates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Validating,
    Mutating,
}

/// The fate of a request whose webhook fails: by an error, a panic or a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The request is allowed.
    Ignore,
}

/// The side effects of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    /// The webhook has no side effects.
    None,
    /// The webhook has side effects, except for dry runs.
    NoneOnDryRun,
}

/// Whether a mutating webhook is called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reinvocation {
    /// The webhook is called once.
    Never,
    /// The webhook is called again if the object changed after its call.
    IfNeeded,
}

#[derive(Clone)]
struct Settings {
    failure: FailurePolicy,
    side_effects: SideEffects,
    reinvocation: Reinvocation,
    timeout: Duration,
    is_exact: bool,
    namespaces: Option<LabelSelector>,
    objects: Option<LabelSelector>,
    conditions: Vec<(String, String)>,
    scope: &'static str,
}

/// Returns a webhook that decides about requests for a kind.
///
/// The handler returns a [`Verdict`](super::Verdict), or a result with one. It is called for creates and updates unless
/// [`on`](Hook::on) names other operations.
///
/// ```
/// use k8s_openapi::api::core::v1::Namespace;
/// use klient::webhook::{Operation, Request, Verdict, validate};
///
/// let hook = validate::<Namespace>(async |request: Request<Namespace>| match request.user.username.as_deref() {
///     Some("admin") => Verdict::allow(),
///     _ => Verdict::deny("only the administrator deletes namespaces"),
/// })
/// .on([Operation::Delete]);
/// ```
#[doc(alias = "CustomValidator")]
pub fn validate<K: Resource>(handler: impl Validator<K>) -> Hook {
    Hook::new::<K>(Sort::Validating, handler::validating(handler))
}

/// Returns a webhook that changes objects of a kind.
///
/// The handler returns a result with the changed object, or with a [`Mutated`](super::Mutated). The JSON patch is computed from the
/// difference; fields that the type does not know stay.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::webhook::{Mutated, Request, mutate};
///
/// let hook = mutate::<Pod>(async |request: Request<Pod>| {
///     let Some(mut pod) = request.object else { return Ok(Mutated::unchanged()) };
///     pod.metadata.labels.get_or_insert_default().insert("seen".to_owned(), "yes".to_owned());
///     Ok::<_, klient::Error>(Mutated::new(pod))
/// });
/// ```
pub fn mutate<K: Resource>(handler: impl Mutator<K>) -> Hook {
    Hook::new::<K>(Sort::Mutating, handler::mutating(handler))
}

/// Returns a webhook that completes objects of a kind before they are validated and stored.
///
/// ```
/// use k8s_openapi::api::core::v1::Service;
/// use klient::webhook::default;
///
/// let hook = default::<Service>(|service: &mut Service| {
///     let spec = service.spec.get_or_insert_default();
///     spec.ip_family_policy.get_or_insert_with(|| "PreferDualStack".to_owned());
/// });
/// ```
#[doc(alias = "CustomDefaulter")]
pub fn default<K: Resource>(handler: impl Defaulter<K>) -> Hook {
    Hook::new::<K>(Sort::Mutating, handler::defaulting(handler))
}

impl Hook {
    fn new<K: Resource>(sort: Sort, handler: Handler) -> Self {
        Self {
            sort,
            handler,
            group: K::GROUP.to_owned(),
            version: K::VERSION.to_owned(),
            plural: K::URL_PATH_SEGMENT.to_owned(),
            kind: K::KIND.to_owned(),
            subresources: vec![String::new()],
            operations: vec![Operation::Create, Operation::Update],
            path: None,
            name: None,
            settings: Settings {
                failure: FailurePolicy::Fail,
                side_effects: SideEffects::None,
                reinvocation: Reinvocation::Never,
                timeout: Duration::from_secs(10),
                is_exact: false,
                namespaces: None,
                objects: None,
                conditions: Vec::new(),
                scope: "*",
            },
        }
    }

    /// Sets the resource, for objects whose kind is known only at run time.
    pub fn resource(mut self, resource: &ApiResource) -> Self {
        self.group = resource.group.to_string();
        self.version = resource.version.to_string();
        self.plural = resource.plural.to_string();
        self.kind = resource.kind.to_string();
        self
    }

    /// Sets the operations; creates and updates by default.
    pub fn on(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.operations = operations.into_iter().collect();
        self
    }

    /// Calls the webhook for a subresource, too, such as `status` or `scale`. `*` stands for all of them.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresources.push(name.into());
        self
    }

    /// Sets the name, which the server shows in errors. It needs at least two dots.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the path; by default controller-runtime's, such as `/validate-apps-v1-deployment`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Sets what happens if the webhook fails; by default the request fails.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.settings.failure = policy;
        self
    }

    /// Sets the side effects; none by default.
    pub fn side_effects(mut self, side_effects: SideEffects) -> Self {
        self.settings.side_effects = side_effects;
        self
    }

    /// Sets whether a mutating webhook is called again if the object changed after its call; by default it is not.
    pub fn reinvocation(mut self, reinvocation: Reinvocation) -> Self {
        self.settings.reinvocation = reinvocation;
        self
    }

    /// Sets the time limit, in whole seconds from 1 to 30; 10 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Matches only requests in the version of the kind. By default, the server converts objects of other versions.
    pub fn exact(mut self) -> Self {
        self.settings.is_exact = true;
        self
    }

    /// Restricts the webhook to namespaces with labels.
    pub fn namespaces(mut self, selector: LabelSelector) -> Self {
        self.settings.namespaces = Some(selector);
        self
    }

    /// Restricts the webhook to objects with labels.
    pub fn objects(mut self, selector: LabelSelector) -> Self {
        self.settings.objects = Some(selector);
        self
    }

    /// Adds a match condition: a CEL expression that must be true for the webhook to be called.
    #[doc(alias = "matchConditions")]
    pub fn when(mut self, name: impl Into<String>, expression: impl Into<String>) -> Self {
        self.settings.conditions.push((name.into(), expression.into()));
        self
    }

    /// Returns the path.
    pub(super) fn path_text(&self) -> String {
        let verb = match self.sort {
            Sort::Validating => "validate",
            Sort::Mutating => "mutate",
        };
        self.path.clone().unwrap_or_else(|| {
            format!("/{verb}-{}-{}-{}", self.group.replace('.', "-"), self.version, self.kind.to_lowercase())
        })
    }

    /// Returns the time limit.
    pub(super) fn limit(&self) -> Duration {
        self.settings.timeout
    }

    /// Returns the name.
    pub(super) fn name_text(&self) -> String {
        let verb = match self.sort {
            Sort::Validating => "validate",
            Sort::Mutating => "mutate",
        };
        let group = if self.group.is_empty() { "core" } else { &self.group };
        self.name.clone().unwrap_or_else(|| format!("{verb}.{}.{group}", self.plural))
    }

    /// Returns the entry of a configuration.
    pub(super) fn entry(&self, name: &str, client_config: Value) -> Value {
        let resource = |part: &String| match part.as_str() {
            "" => self.plural.clone(),
            part => format!("{}/{part}", self.plural),
        };
        let resources: Vec<String> = self.subresources.iter().map(resource).collect();
        let operations: Vec<&str> = self.operations.iter().map(|operation| operation.as_str()).collect();
        let Settings { failure, side_effects, reinvocation, timeout, is_exact, namespaces, objects, conditions, scope } =
            &self.settings;
        let mut entry = json!({
            "name": name,
            "admissionReviewVersions": ["v1"],
            "rules": [{"operations": operations, "apiGroups": [self.group], "apiVersions": [self.version],
                "resources": resources, "scope": scope}],
            "failurePolicy": match failure {
                FailurePolicy::Fail => "Fail",
                FailurePolicy::Ignore => "Ignore",
            },
            "matchPolicy": if *is_exact { "Exact" } else { "Equivalent" },
            "sideEffects": match side_effects {
                SideEffects::None => "None",
                SideEffects::NoneOnDryRun => "NoneOnDryRun",
            },
            "timeoutSeconds": timeout.as_secs().clamp(1, 30),
            "namespaceSelector": namespaces.clone().unwrap_or_default(),
            "objectSelector": objects.clone().unwrap_or_default(),
        });
        entry["clientConfig"] = client_config;
        if self.sort == Sort::Mutating {
            entry["reinvocationPolicy"] = json!(match reinvocation {
                Reinvocation::Never => "Never",
                Reinvocation::IfNeeded => "IfNeeded",
            });
        }
        if !conditions.is_empty() {
            let conditions: Vec<Value> =
                conditions.iter().map(|(name, expression)| json!({"name": name, "expression": expression})).collect();
            entry["matchConditions"] = json!(conditions);
        }
        entry
    }
}

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hook").field("name", &self.name_text()).field("path", &self.path_text()).finish_non_exhaustive()
    }
}
