//! Long lists, page by page.
//!
//! All pages but those after an expired token are of one version: that of the first. The version asked for goes with the
//! first page only, as a token has its own. A token expires after a few minutes; what happens then is the caller's
//! choice, and never a shorter list. In client-go: `tools/pager`.

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
///     println!("{} pods more", page.items.len());
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
    /// Whether the page that is being read was requested again with another token.
    resumed: bool,
    /// The page that is being read, and its options.
    in_flight: Option<(ListOptions, ResponseFuture<'static, List<K>>)>,
}

/// What to ask for next.
#[derive(Clone, Debug)]
enum Next {
    First,
    After(String),
    Nothing,
}

impl<K: Resource> Pager<K> {
    /// Reads what these options select, 500 objects at a time unless they set another limit.
    pub fn new(api: Api<K>, mut options: ListOptions) -> Self {
        if options.limit == 0 {
            options.limit = PAGE;
        }
        let next = options.continue_token.take().map_or(Next::First, Next::After);
        Self { api, options, allow_inconsistent: false, next, inconsistent: false, resumed: false, in_flight: None }
    }

    /// Sets whether a list that expired half-way goes on at the newest version instead of failing.
    ///
    /// Such a list is of no single version: its parts show the objects as they were at different times. Off unless set.
    #[must_use]
    pub fn allow_inconsistent(mut self, allow: bool) -> Self {
        self.allow_inconsistent = allow;
        self
    }

    /// Whether the list expired and went on at another version.
    pub fn is_inconsistent(&self) -> bool {
        self.inconsistent
    }

    /// The next page; `None` after the last one.
    ///
    /// # Errors
    ///
    /// [`Gone`](ErrorKind::Gone) if the list has expired and may not go on inconsistently: pages that were given out
    /// cannot be taken back. After any other error the same page can be asked for again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: the next call requests the same page again.
    pub async fn next_page(&mut self) -> Result<Option<List<K>>, Error> {
        // A caller who gave up on a response gets another one the next time.
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
                // Once per page: a server that expires every token would be asked without pause.
                Err(error) if !self.resumed && self.goes_on_after(&error) => {
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

    /// The next page in wire form; `sink` gets each object as soon as its last byte has arrived. `None` after the last.
    ///
    /// # Errors
    ///
    /// As [`next_page`](Self::next_page), except that `sink` may have got some objects of a page that then failed.
    pub async fn next_page_raw(
        &mut self,
        split: SplitOptions,
        mut sink: impl FnMut(Result<RawObject, Error>),
    ) -> Result<Option<ListEnd>, Error> {
        let Some(options) = self.next_options() else { return Ok(None) };
        let end = match self.api.list().options(options.clone()).for_each_raw(split, &mut sink).await {
            Err(error) if self.goes_on_after(&error) => {
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

    /// All objects that are left, as one list with the version of its first page, from which a watch can go on.
    ///
    /// A list that expires half-way and may not go on inconsistently is read anew in one piece.
    ///
    /// # Errors
    ///
    /// For any reason a server or connection gives.
    pub async fn all(mut self) -> Result<List<K>, Error> {
        // Only a list that was read from its beginning can be read anew.
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

    /// The options of the next page.
    fn next_options(&self) -> Option<ListOptions> {
        let options = self.options.clone();
        match &self.next {
            Next::First => Some(options),
            Next::After(token) => Some(options.version(VersionMatch::MostRecent).continue_token(token)),
            Next::Nothing => None,
        }
    }

    /// Takes the token that an expired list offers to go on with, if it may be used.
    fn goes_on_after(&mut self, error: &Error) -> bool {
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
            // Going on would never end.
            self.next = Next::Nothing;
            return Err(Error::new(ErrorKind::Decode, "the server answers a page with the token of that same page"));
        }
        self.next = token.map_or(Next::Nothing, |token| Next::After(token.to_owned()));
        Ok(())
    }
}

/// A stream of pages. It ends after the last page; after an error it tries the same page again.
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

/// What servers cut their own chunks to.
const PAGE: u32 = 500;
