//! Creates an object, or updates it if it exists and differs.

use klient_core::Resource;

use crate::{Error, ErrorKind, client::Api};

/// The write that [`create_or_update`] made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "OperationResult")]
pub enum Operation {
    /// The object did not exist, and was created.
    Created,
    /// The object existed, and was updated.
    Updated,
    /// The object existed in the desired state, and nothing was written.
    Unchanged,
}

/// Creates an object, or updates it if it exists and `mutate` changes it. Returns the object, and what was done.
///
/// `object` has the name, and is the start of an object that does not exist yet. `mutate` sets the desired state, on `object`
/// or on the existing one. It may be called several times: if another client writes the object at the same time, the
/// object is read again.
///
/// `mutate` must set the same values each time, and must leave fields that the server fills in alone. Otherwise every call
/// is an update.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use klient::{Api, controller::create_or_update};
///
/// # async fn reconcile(maps: &Api<ConfigMap>, color: &str) -> Result<(), klient::Error> {
/// let mut theme = ConfigMap::default();
/// theme.metadata.name = Some("theme".to_owned());
/// let (theme, operation) = create_or_update(maps, theme, |theme| {
///     theme.data.get_or_insert_default().insert("color".to_owned(), color.to_owned());
///     Ok(())
/// })
/// .await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns an [`Invalid`](ErrorKind::Invalid) error if `object` has no name, the first error of `mutate`, and the error of a
/// request.
#[doc(alias = "CreateOrUpdate")]
#[doc(alias = "CreateOrPatch")]
pub async fn create_or_update<K: Resource>(
    api: &Api<K>,
    object: K,
    mut mutate: impl FnMut(&mut K) -> Result<(), Error>,
) -> Result<(K, Operation), Error> {
    let Some(name) = object.metadata().name.clone().filter(|name| !name.is_empty()) else {
        let message = format!("cannot create or update an object of {} without a name", api.resource().plural);
        return Err(Error::new(ErrorKind::Invalid, message));
    };
    let mut attempts = 0;
    loop {
        attempts += 1;
        let written = match api.get_opt(&name).await? {
            None => {
                let mut desired = object.clone();
                mutate(&mut desired)?;
                api.create(&desired).await.map(|created| (created, Operation::Created))
            }
            Some(current) => {
                let mut desired = current.clone();
                mutate(&mut desired)?;
                if is_same(&current, &desired)? {
                    return Ok((current, Operation::Unchanged));
                }
                api.update(&desired).await.map(|updated| (updated, Operation::Updated))
            }
        };
        match written {
            Err(error) if attempts < ATTEMPTS && (error.is_conflict() || error.is_already_exists()) => {
                tracing::debug!(name, %error, "object changed during create_or_update, retrying");
            }
            written => return written,
        }
    }
}

/// Returns whether two objects are equal. Not all kinds can be compared, but all can be serialized.
fn is_same<K: Resource>(one: &K, other: &K) -> Result<bool, Error> {
    let value = |object: &K| {
        serde_json::to_value(object)
            .map_err(|error| Error::new(ErrorKind::Invalid, "object cannot be serialized").with_source(error))
    };
    Ok(value(one)? == value(other)?)
}

/// The number of attempts while other clients write the same object.
const ATTEMPTS: u32 = 5;
