//! Conversions that the owners of fields need.
//!
//! The algebra of field sets is synchronous, and a webhook is not. A conversion that is not there yet fails and is noted here; the
//! writer converts what was noted, and computes the owners again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::{Result, registry::Resource, server::Core};

/// The conversions of one write.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    known: Vec<(Value, String, Value)>,
    missing: Vec<(Value, Arc<Resource>)>,
}

impl Pending {
    /// Returns an object in the version of a resource, if it was converted. Otherwise its conversion is noted.
    pub(crate) fn find(&self, object: &Value, resource: &Arc<Resource>) -> Option<Value> {
        let mut inner = self.lock();
        let version = resource.api_version();
        let known = inner.known.iter().find(|(from, to, _)| *to == version && from == object);
        let found = known.map(|(_, _, converted)| converted.clone());
        if found.is_none() {
            inner.missing.push((object.clone(), Arc::clone(resource)));
        }
        found
    }

    fn take_missing(&self) -> Vec<(Value, Arc<Resource>)> {
        std::mem::take(&mut self.lock().missing)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Converts what was noted. Returns whether there was anything.
    pub(crate) async fn convert_pending(&self, pending: &Pending) -> Result<bool> {
        let missing = pending.take_missing();
        let is_any = !missing.is_empty();
        for (object, resource) in missing {
            let converted = self.convert_alone(&resource, object.clone()).await?;
            pending.lock().known.push((object, resource.api_version(), converted));
        }
        Ok(is_any)
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("known", &self.known.len()).field("missing", &self.missing.len()).finish()
    }
}
