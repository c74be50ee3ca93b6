//! The variable `authorizer`: questions about permissions in an expression.

use std::{fmt, sync::Arc};

use kube_cel::cel::{Value as Cel, objects::Opaque};

use crate::EvaluationError;

/// A permission that an expression asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessQuery {
    /// The namespace and the name of a service account, if it is not the user of the request.
    pub service_account: Option<(String, String)>,
    /// The path, if the query is not about a resource.
    pub path: Option<String>,
    /// The API group.
    pub group: String,
    /// The resource.
    pub resource: String,
    /// The subresource.
    pub subresource: String,
    /// The namespace. Empty for all of them.
    pub namespace: String,
    /// The name of the object. Empty for all of them.
    pub name: String,
    /// The verb.
    pub verb: String,
}

/// The response to a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether it is allowed.
    pub allowed: bool,
    /// The reason.
    pub reason: String,
    /// The error, if the authorizer failed. Empty if it did not.
    pub error: String,
}

type Decide = Arc<dyn Fn(&AccessQuery) -> Decision + Send + Sync>;

/// The value of the variable `authorizer`.
#[derive(Clone)]
pub struct Authorizer {
    decide: Decide,
    query: AccessQuery,
    /// The query of `authorizer.requestResource`.
    request: AccessQuery,
    /// The name of the type, which decides what can be called.
    kind: &'static str,
}

impl Authorizer {
    /// Returns the variable. `request` is the resource of the request.
    pub fn new(request: AccessQuery, decide: impl Fn(&AccessQuery) -> Decision + Send + Sync + 'static) -> Self {
        Self { decide: Arc::new(decide), query: AccessQuery::default(), request, kind: AUTHORIZER }
    }

    fn with(&self, kind: &'static str, change: impl FnOnce(&mut AccessQuery)) -> Cel {
        let mut changed = self.clone();
        changed.kind = kind;
        change(&mut changed.query);
        Cel::Opaque(Arc::new(changed))
    }
}

impl From<Authorizer> for Cel {
    fn from(authorizer: Authorizer) -> Self {
        Self::Opaque(Arc::new(authorizer))
    }
}

/// Returns `authorizer.requestResource`.
pub(crate) fn select(operand: &Cel, field: &str) -> Option<Cel> {
    let Cel::Opaque(opaque) = operand else { return None };
    let authorizer = opaque.downcast_ref::<Authorizer>()?;
    let request = authorizer.request.clone();
    (field == "requestResource" && authorizer.kind == AUTHORIZER)
        .then(|| authorizer.with(RESOURCE, |query| *query = request))
}

/// Calls a function of an authorizer, or of a decision. Returns `None` for others.
pub(crate) fn call(name: &str, values: &[Cel]) -> Option<Result<Cel, EvaluationError>> {
    let (Cel::Opaque(opaque), rest) = values.split_first()? else { return None };
    if let Some(decision) = opaque.downcast_ref::<Decision>() {
        return Some(Ok(match name {
            "allowed" => Cel::Bool(decision.allowed),
            "reason" => Cel::String(Arc::new(decision.reason.clone())),
            "errored" => Cel::Bool(!decision.error.is_empty()),
            "error" => Cel::String(Arc::new(decision.error.clone())),
            _ => return None,
        }));
    }
    let authorizer = opaque.downcast_ref::<Authorizer>()?;
    let words: Vec<String> = rest
        .iter()
        .map(|value| match value {
            Cel::String(word) => Some(word.to_string()),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let value = match (authorizer.kind, name, &words[..]) {
        (AUTHORIZER, "path", [path]) if !path.is_empty() => {
            authorizer.with(PATH, |query| query.path = Some(path.clone()))
        }
        (AUTHORIZER, "path", [_]) => return Some(Err(EvaluationError::new("path must not be empty"))),
        (AUTHORIZER, "group", [group]) => authorizer.with(GROUP, |query| query.group.clone_from(group)),
        (AUTHORIZER, "serviceAccount", [namespace, name]) => {
            authorizer.with(AUTHORIZER, |query| query.service_account = Some((namespace.clone(), name.clone())))
        }
        (GROUP, "resource", [resource]) => authorizer.with(RESOURCE, |query| query.resource.clone_from(resource)),
        (RESOURCE, "subresource", [part]) => authorizer.with(RESOURCE, |query| query.subresource.clone_from(part)),
        (RESOURCE, "namespace", [name]) => authorizer.with(RESOURCE, |query| query.namespace.clone_from(name)),
        (RESOURCE, "name", [name]) => authorizer.with(RESOURCE, |query| query.name.clone_from(name)),
        (RESOURCE, "fieldSelector" | "labelSelector", [_]) => authorizer.with(RESOURCE, |_| {}),
        (RESOURCE | PATH, "check", [verb]) => {
            let query = AccessQuery { verb: verb.clone(), ..authorizer.query.clone() };
            Cel::Opaque(Arc::new((authorizer.decide)(&query)))
        }
        _ => return None,
    };
    Some(Ok(value))
}

impl Opaque for Authorizer {
    fn runtime_type_name(&self) -> &str {
        self.kind
    }
}

impl Opaque for Decision {
    fn runtime_type_name(&self) -> &str {
        "kubernetes.authorization.Decision"
    }
}

impl PartialEq for Authorizer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.decide, &other.decide) && self.query == other.query
    }
}

impl Eq for Authorizer {}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").field("query", &self.query).finish_non_exhaustive()
    }
}

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const GROUP: &str = "kubernetes.authorization.GroupCheck";
const PATH: &str = "kubernetes.authorization.PathCheck";
const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";
