//! Documents for the page, one each second, made once for all readers that see the same.

use crate::document::HostDocument;
use crate::explain::{Explanation, HostEvidence, explain};
use crate::host::MonitoredHost;
use crate::listing::RowLimits;
use crate::metrics::metrics;
use crate::registry::Viewer;
use cutline_openmetrics::TextFormat;
use cutline_sys::{lock, now};
use cutline_units::{Duration, Instant};
use hyper::body::{Body, Bytes, Frame};
use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};

/// Interval of events.
const SECOND: Duration = Duration::from_secs(1);
/// Time for which a document is the present one.
const FRESH: Duration = Duration::from_millis(900);
/// Time for which a reader may read nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// An answer that is made from the state of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Answer {
    /// The document of the page.
    Page,
    /// The metrics.
    Metrics(TextFormat),
    /// The likely cause of bad delivery in the last seconds.
    Explanation,
}

/// The present answers for each kind of viewer. Readers that do not read share them.
pub struct Events {
    host: Arc<MonitoredHost>,
    made: Mutex<BTreeMap<(Viewer, Answer), (Instant, Bytes)>>,
    /// Documents of the last seconds for viewers with an explanation open, the oldest first, with as many rows as the page has:
    /// old rows take memory.
    earlier: Mutex<BTreeMap<Viewer, VecDeque<(Instant, HostDocument)>>>,
}

/// Length of the interval that is explained.
const EXPLAINED: Duration = Duration::from_secs(5);
/// Shortest time between two documents that are kept for explanations.
const APART: Duration = Duration::from_millis(900);
/// The most viewers whose documents are kept for explanations, beside root; others are explained an empty interval.
const MOST_EXPLAINED: usize = 16;

/// The body of an answer that never ends, or of one that is there.
pub enum Content {
    /// All of it; `None` when it was taken.
    Whole(Option<Bytes>),
    /// Parts that come.
    Parts(Receiver<Bytes>),
}

impl Events {
    /// Creates the documents of a host.
    pub fn new(host: Arc<MonitoredHost>) -> Self {
        Self { host, made: Mutex::default(), earlier: Mutex::default() }
    }

    /// Returns the host.
    pub fn host(&self) -> &MonitoredHost {
        &self.host
    }

    /// Returns an answer for a viewer, at most a second old.
    pub fn present(&self, viewer: Viewer, answer: Answer) -> Bytes {
        let key = (viewer, answer);
        let now = now();
        let mut made = lock(&self.made);
        made.retain(|_, (at, _)| now.saturating_since(*at) < FRESH);
        if let Some((_, content)) = made.get(&key) {
            return content.clone();
        }
        let document = self.host.document(viewer);
        let content = Bytes::from(match answer {
            Answer::Page => {
                serde_json::to_string(&page_document(document)).expect("the document has text keys only")
            }
            Answer::Metrics(format) => metrics(document, format),
            Answer::Explanation => {
                serde_json::to_string(&self.explained(viewer, now, page_document(document)))
                    .expect("the document has text keys only")
            }
        });
        made.insert(key, (now, content.clone()));
        content
    }

    /// Explains the time since the oldest document of this viewer that is kept, and keeps this one.
    fn explained(&self, viewer: Viewer, now: Instant, after: HostDocument) -> Explanation {
        let mut earlier = lock(&self.earlier);
        // Documents of a viewer without an open explanation are dropped.
        earlier.retain(|_, documents| {
            documents.back().is_some_and(|(at, _)| now.saturating_since(*at) < EXPLAINED + EXPLAINED)
        });
        let has_place = viewer == Viewer::All || earlier.len() < MOST_EXPLAINED;
        if !earlier.contains_key(&viewer) && !has_place {
            return explain(&HostEvidence { before: &after, after: &after, interfaces: &[] });
        }
        let documents = earlier.entry(viewer).or_default();
        // The youngest one that is old enough is the beginning.
        while documents.get(1).is_some_and(|(at, _)| now.saturating_since(*at) >= EXPLAINED) {
            documents.pop_front();
        }
        let before = documents.front().map_or(&after, |(_, document)| document);
        let explanation = explain(&HostEvidence { before, after: &after, interfaces: &[] });
        if documents.back().is_none_or(|(at, _)| now.saturating_since(*at) >= APART) {
            documents.push_back((now, after));
        }
        explanation
    }

    /// Returns a body with an event each second (server-sent events). It must be called within the server's runtime.
    pub fn stream(self: &Arc<Self>, viewer: Viewer) -> Content {
        let (to, from) = channel(1);
        tokio::spawn(Arc::clone(self).send(viewer, to));
        Content::Parts(from)
    }

    async fn send(self: Arc<Self>, viewer: Viewer, to: Sender<Bytes>) {
        let mut taken = now();
        loop {
            let document = self.present(viewer, Answer::Page);
            let event = [b"data: ", document.as_ref(), b"\n\n"].concat();
            match to.try_send(event.into()) {
                Ok(()) => taken = now(),
                // A slow reader misses documents: the next one is complete.
                Err(TrySendError::Full(_)) if now().saturating_since(taken) < PATIENCE => {}
                Err(_) => return,
            }
            tokio::time::sleep(std::time::Duration::from_nanos(SECOND.as_nanos())).await;
        }
    }
}

/// Leaves the rows that matter most.
fn page_document(mut document: HostDocument) -> HostDocument {
    document.shorten(RowLimits::PAGE);
    document
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Parts(from) => from.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Self::Whole(bytes) => {
                hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Parts(_) => hyper::body::SizeHint::default(),
        }
    }
}
