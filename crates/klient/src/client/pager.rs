//! Long lists, page by page.
//!
//! All pages are of the first page's version, except those after an expired token. The requested version is sent with
//! the first page only, because a token has its own. A token expires after a few minutes; the caller selects what
//! happens then, and the list is never silently shorter. In client-go: `tools/pager`.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use klient_core::{List, ListOptions, Resource, VersionMatch};
use klient_proto::{ListEnd, RawObject, SplitOptions};

use crate::client::{Api, verbs::ResponseFuture};
use crate::{Error, ErrorKind};

/// A list that is read in pages.
///
/// ```no_run
/// use k8s_openapi::api::core::v1::Pod;
/// use klient::{Api, Client, client::Pager, options::ListOptions};
///
/// # async fn count() -> Result<(), klient::Error> {
/// let pods: Api<Pod> = Api::all(Client::infer()?);
/// let mut pager = Pager::new(pods, ListOptions::default());
/// while let Some(page) = pager.next_page().await? {
///     println!("{} more pods", page.items.len());
/// }
/// # Ok(())
/// # }
/// ```
#[doc(alias = "ListPager")]
pub struct Pager<K> {
    api: Api<K>,
    options: ListOptions,
    allow_inconsistent: bool,
    next: Next,
    inconsistent: bool,
    /// Whether the current page was requested again with another token.
    resumed: bool,
    /// The page that is being read, and its options.
    in_flight: Option<(ListOptions, ResponseFuture<'static, List<K>>)>,
}

/// The next page to request.
#[derive(Clone, Debug)]
enum Next {
    First,
    After(String),
    Nothing,
}

impl<K: Resource> Pager<K> {
    /// Creates a pager for the objects that these options select, with 500 objects per page unless they set a limit.
    pub fn new(api: Api<K>, mut options: ListOptions) -> Self {
        if options.limit == 0 {
            options.limit = PAGE;
        }
        let next = options.continue_token.take().map_or(Next::First, Next::After);
        Self { api, options, allow_inconsistent: false, next, inconsistent: false, resumed: false, in_flight: None }
    }

    /// Sets whether a list that expired half-way continues at the newest version instead of failing.
    ///
    /// Such a list has no single version: its parts show the objects at different times. Off by default.
    #[must_use]
    pub fn allow_inconsistent(mut self, allow: bool) -> Self {
        self.allow_inconsistent = allow;
        self
    }

    /// Returns whether the list expired and continued at another version.
    pub fn is_inconsistent(&self) -> bool {
        self.inconsistent
    }

    /// Returns the next page, or `None` after the last one.
    ///
    /// # Errors
    ///
    /// Returns [`Gone`](ErrorKind::Gone) if the list has expired and may not continue inconsistently. After any other
    /// error, the same page can be requested again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call requests the same page again.
    pub async fn next_page(&mut self) -> Result<Option<List<K>>, Error> {
        // A response whose future was dropped is requested again.
        self.in_flight = None;
        poll_fn(|context| self.poll_page(context)).await.transpose()
    }

    fn poll_page(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<List<K>, Error>>> {
        loop {
            let (options, page) = match &mut self.in_flight {
                Some(in_flight) => in_flight,
                None => {
                    let Some(options) = self.next_options() else { return Poll::Ready(None) };
                    let page = self.api.list().options(options.clone()).into_future();
                    self.in_flight.insert((options, page))
                }
            };
            let page = ready!(page.as_mut().poll(context));
            let options = std::mem::take(options);
            self.in_flight = None;
            return Poll::Ready(Some(match page {
                // Only once per page, because a server that expires every token would be queried without pause.
                Err(error) if !self.resumed && self.continues_after(&error) => {
                    self.resumed = true;
                    continue;
                }
                page => {
                    self.resumed = false;
                    page.and_then(|page| {
                        self.advance(&options, page.continue_token())?;
                        Ok(page)
                    })
                }
            }));
        }
    }

    /// Reads the next page in wire format and returns its metadata, or `None` after the last one. `sink` receives each
    /// object as soon as its last byte has arrived.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`next_page`](Self::next_page). `sink` may have received some objects of a page that
    /// failed.
    pub async fn next_page_raw(
        &mut self,
        split: SplitOptions,
        mut sink: impl FnMut(Result<RawObject, Error>),
    ) -> Result<Option<ListEnd>, Error> {
        let Some(options) = self.next_options() else { return Ok(None) };
        let end = match self.api.list().options(options.clone()).for_each_raw(split, &mut sink).await {
            Err(error) if self.continues_after(&error) => {
                let Some(options) = self.next_options() else { return Ok(None) };
                self.api.list().options(options).for_each_raw(split, sink).await?
            }
            outcome => outcome?,
        };
        self.advance(&options, end.metadata.continue_.as_deref().filter(|token| !token.is_empty()))?;
        Ok(Some(end))
    }

    /// Calls `each` with every remaining object, one after the other.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`next_page`](Self::next_page), and the first error of `each`.
    #[doc(alias = "EachListItem")]
    pub async fn for_each<E, F>(mut self, mut each: impl FnMut(K) -> F) -> Result<(), E>
    where
        E: From<Error>,
        F: Future<Output = Result<(), E>>,
    {
        while let Some(page) = self.next_page().await? {
            for object in page.items {
                each(object).await?;
            }
        }
        Ok(())
    }

    /// Returns all remaining objects as one list with the version of its first page, from which a watch can start.
    ///
    /// A list that expires half-way and may not continue inconsistently is read again in one piece.
    ///
    /// # Errors
    ///
    /// Returns an error if a request fails.
    pub async fn all(mut self) -> Result<List<K>, Error> {
        // Only a list that was read from its beginning can be read again.
        let whole = matches!(self.next, Next::First);
        let mut all: Option<List<K>> = None;
        loop {
            let page = match self.next_page().await {
                Ok(Some(page)) => page,
                Ok(None) => break,
                Err(error) if error.is_gone() && whole && all.is_some() => {
                    let mut options = self.options.clone();
                    options.limit = 0;
                    return self.api.list().options(options.clone()).await;
                }
                Err(error) => return Err(error),
            };
            match &mut all {
                Some(all) => all.items.extend(page.items),
                None => all = Some(page),
            }
        }
        let mut all = all.unwrap_or_default();
        all.metadata.continue_ = None;
        all.metadata.remaining_item_count = None;
        Ok(all)
    }

    /// Returns the options of the next page.
    fn next_options(&self) -> Option<ListOptions> {
        let options = self.options.clone();
        match &self.next {
            Next::First => Some(options),
            Next::After(token) => Some(options.version(VersionMatch::MostRecent).continue_token(token)),
            Next::Nothing => None,
        }
    }

    /// Takes the token with which an expired list can continue, if that is allowed.
    fn continues_after(&mut self, error: &Error) -> bool {
        let offered = error.status().filter(|_| error.is_gone()).and_then(|status| status.continue_token());
        match (&self.next, offered) {
            (Next::After(expired), Some(token)) if self.allow_inconsistent && expired != token => {
                self.next = Next::After(token.to_owned());
                self.inconsistent = true;
                true
            }
            _ => false,
        }
    }

    fn advance(&mut self, asked: &ListOptions, token: Option<&str>) -> Result<(), Error> {
        if token.is_some() && token == asked.continue_token.as_deref() {
            // Continuing would never end.
            self.next = Next::Nothing;
            return Err(Error::new(
                ErrorKind::Decode,
                "the server returned the token of the current page as the next one",
            ));
        }
        self.next = token.map_or(Next::Nothing, |token| Next::After(token.to_owned()));
        Ok(())
    }
}

/// A stream of pages. It ends after the last page; after an error, it requests the same page again.
impl<K: Resource> Stream for Pager<K> {
    type Item = Result<List<K>, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_page(context)
    }
}

impl<K> fmt::Debug for Pager<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pager")
            .field("api", &self.api)
            .field("options", &self.options)
            .field("next", &self.next)
            .field("inconsistent", &self.inconsistent)
            .finish_non_exhaustive()
    }
}

/// The chunk size of kubectl and client-go.
const PAGE: u32 = 500;
