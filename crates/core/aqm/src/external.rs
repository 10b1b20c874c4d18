//! AQMs of other crates and languages: registered while the program runs, then used by name like this crate's own.
//!
//! - A Rust type that is an [`Aqm`] or a [`Discipline`] needs no more than
//!   [`register_law`](crate::registry::register_law) or
//!   [`register_discipline`](crate::registry::register_discipline), called once before the first file is read.
//! - Anything else, such as a law written in another language, implements [`ExternalAqm`], which describes it as data
//!   and builds it, and is given to [`register`](crate::registry::register).
//!
//! Registered AQMs are listed by [`describe`](crate::registry::describe) and described by the same [`Parameter`]s.
//! [`conformance`](crate::conformance) has the checks that every AQM has to pass.
//!
//! A discipline holds packets, and a type behind a pointer cannot be generic over their handle. So an external one
//! holds [`PacketId`]s, and [`ExternalDiscipline`] keeps the caller's handles for it.
//!
//! [`Parameter`]: cutline_params::Parameter

use crate::description::AqmDescription;
use crate::discipline::tsq_on_a_discipline;
use crate::forward::{forward_law, forward_queue};
use crate::{
    Aqm, Arrival, Backlog, Departure, Discipline, DropProbability, Fifo, Limit, Queue, QueueStats, Readings,
    Shed, Tsq, TsqParams, Verdict,
};
use cutline_params::{ParameterError, ParameterValue, Parameters as _, complete};
use cutline_units::{Duration, Instant, Probability, RandomStream, Rate};
use slab::Slab;
use std::fmt::Debug;
use std::marker::PhantomData;

/// The handle of a packet in an external discipline.
pub type PacketId = u32;

/// All parameters of an external AQM with their values, in the order of its description.
pub type ExternalValues = Vec<(&'static str, ParameterValue)>;

/// Description and constructor of an AQM of another crate.
pub trait ExternalAqm: Debug + Send + Sync {
    /// The name, the source, and the parameters. Always the same.
    fn describe(&self) -> AqmDescription;

    /// The values of all parameters: the defaults, changed by `values`.
    ///
    /// # Errors
    /// When there is no such parameter, a value is not allowed, or values do not go together.
    fn complete(&self, values: &[(&str, ParameterValue)]) -> Result<ExternalValues, ParameterError> {
        complete(&self.describe().parameters, values)
    }

    /// A law, or an empty queue with that limit, in front of a link of rate `rate`. `values` come from
    /// [`complete`](Self::complete). With `ecn`, a discipline marks a packet that can be marked where it would drop it
    /// early; for a law the queue does that.
    ///
    /// # Errors
    /// When it cannot be built from these values.
    fn build(
        &self,
        values: &[(&'static str, ParameterValue)],
        limit: Limit,
        ecn: bool,
        rate: Rate,
    ) -> Result<Product, ParameterError>;

    /// As [`Aqm::standing_delay`], for `values` that come from [`complete`](Self::complete).
    fn standing_delay(
        &self,
        _values: &[(&'static str, ParameterValue)],
        _limit: Limit,
        _rate: Rate,
    ) -> Option<Duration> {
        None
    }

    /// As [`Aqm::moderate_params`]: the parameters that differ from their defaults.
    fn moderate_values(&self) -> ExternalValues {
        Vec::new()
    }
}

/// Product of an [`ExternalAqm`].
#[derive(Debug)]
pub enum Product {
    /// A law, for a FIFO or TSQ. Its description has `takes_tsq`.
    Law(Box<dyn DynLaw>),
    /// A discipline.
    Discipline(Box<dyn DynQueue>),
}

/// A law behind a pointer. Every law that can be cloned, printed and sent to another thread is one.
pub trait DynLaw: DropProbability + Debug + Send + Sync {
    /// A copy.
    fn boxed_clone(&self) -> Box<dyn DynLaw>;
}

/// A queue of [`PacketId`]s behind a pointer. Every such queue that can be cloned, printed and sent to another thread is
/// one.
pub trait DynQueue: Queue<PacketId> + Debug + Send + Sync {
    /// A copy.
    fn boxed_clone(&self) -> Box<dyn DynQueue>;
}

impl<L: DropProbability + Clone + Debug + Send + Sync + 'static> DynLaw for L {
    fn boxed_clone(&self) -> Box<dyn DynLaw> {
        Box::new(self.clone())
    }
}

impl<Q: Queue<PacketId> + Clone + Debug + Send + Sync + 'static> DynQueue for Q {
    fn boxed_clone(&self) -> Box<dyn DynQueue> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn DynLaw> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

impl Clone for Box<dyn DynQueue> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

/// The external AQM of a law's type.
#[derive(Debug)]
pub(crate) struct TypedLaw<A>(PhantomData<fn() -> A>);

impl<A> Default for TypedLaw<A> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<A> ExternalAqm for TypedLaw<A>
where
    A: Aqm + Clone + Debug + Send + Sync + 'static,
{
    fn describe(&self) -> AqmDescription {
        AqmDescription::from_law::<A>()
    }

    fn complete(&self, values: &[(&str, ParameterValue)]) -> Result<ExternalValues, ParameterError> {
        Ok(A::Params::from_values(values.iter().cloned())?.values())
    }

    fn build(
        &self,
        values: &[(&'static str, ParameterValue)],
        _limit: Limit,
        _ecn: bool,
        rate: Rate,
    ) -> Result<Product, ParameterError> {
        let law = A::build(&A::Params::from_values(values.iter().cloned())?, rate)?;
        Ok(Product::Law(Box::new(law)))
    }

    fn standing_delay(
        &self,
        values: &[(&'static str, ParameterValue)],
        limit: Limit,
        rate: Rate,
    ) -> Option<Duration> {
        let params = A::Params::from_values(values.iter().cloned()).ok()?;
        A::standing_delay(&params, limit, rate)
    }

    fn moderate_values(&self) -> ExternalValues {
        A::moderate_params().values()
    }
}

/// The external AQM of a discipline's type.
#[derive(Debug)]
pub(crate) struct TypedDiscipline<D>(PhantomData<fn() -> D>);

impl<D> Default for TypedDiscipline<D> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<D> ExternalAqm for TypedDiscipline<D>
where
    D: Discipline + Queue<PacketId> + Clone + Debug + Send + Sync + 'static,
{
    fn describe(&self) -> AqmDescription {
        AqmDescription::from_discipline::<D>()
    }

    fn complete(&self, values: &[(&str, ParameterValue)]) -> Result<ExternalValues, ParameterError> {
        Ok(D::Params::from_values(values.iter().cloned())?.values())
    }

    fn build(
        &self,
        values: &[(&'static str, ParameterValue)],
        limit: Limit,
        ecn: bool,
        rate: Rate,
    ) -> Result<Product, ParameterError> {
        let params = D::Params::from_values(values.iter().cloned())?;
        Ok(Product::Discipline(Box::new(D::build(&params, limit, ecn, rate)?)))
    }

    fn standing_delay(
        &self,
        values: &[(&'static str, ParameterValue)],
        limit: Limit,
        rate: Rate,
    ) -> Option<Duration> {
        let params = D::Params::from_values(values.iter().cloned()).ok()?;
        D::standing_delay(&params, limit, rate)
    }
}

/// A registered AQM and its parameters.
#[derive(Clone, Debug)]
pub struct ExternalSpec {
    aqm: &'static dyn ExternalAqm,
    name: &'static str,
    takes_tsq: bool,
    values: ExternalValues,
}

/// A name is that of one AQM for as long as the process runs.
impl PartialEq for ExternalSpec {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.values) == (other.name, &other.values)
    }
}

impl ExternalSpec {
    /// A registered AQM with its defaults, changed by `values`.
    pub(crate) fn new<'v>(
        aqm: &'static dyn ExternalAqm,
        values: impl IntoIterator<Item = (&'v str, ParameterValue)>,
    ) -> Result<Self, ParameterError> {
        let values: Vec<_> = values.into_iter().collect();
        let (values, AqmDescription { name, takes_tsq, .. }) = (aqm.complete(&values)?, aqm.describe());
        Ok(Self { aqm, name, takes_tsq, values })
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) const fn takes_tsq(&self) -> bool {
        self.takes_tsq
    }

    /// The law in front of a link of rate `rate`; `None` for a discipline.
    pub(crate) fn law(&self, rate: Rate) -> Result<Option<Box<dyn DynLaw>>, ParameterError> {
        Ok(match self.aqm.build(&self.values, Limit::Packets(1), false, rate)? {
            Product::Law(law) => Some(law),
            Product::Discipline(_) => None,
        })
    }

    pub(crate) fn standing_delay(&self, limit: Limit, rate: Rate) -> Option<Duration> {
        self.aqm.standing_delay(&self.values, limit, rate)
    }

    /// Every parameter with its value.
    pub fn values(&self) -> &[(&'static str, ParameterValue)] {
        &self.values
    }

    /// A queue in front of a link of rate `rate`: a FIFO of the law, TSQ on top of it, or the discipline.
    pub(crate) fn build<P: Copy>(
        &self,
        tsq: Option<&TsqParams>,
        limit: Limit,
        ecn: bool,
        rate: Rate,
    ) -> Result<ExternalQueue<P>, ParameterError> {
        let product = self.aqm.build(&self.values, limit, ecn, rate)?;
        let queue = match (product, tsq) {
            (Product::Law(law), None) => Kind::Fifo(Fifo::new(limit, ecn, BoxedLaw::Only(law))),
            (Product::Law(law), Some(params)) => {
                Kind::Tsq(Tsq::new(params, limit, ecn, rate, BoxedLaw::Only(law))?)
            }
            (Product::Discipline(_), Some(_)) => return Err(tsq_on_a_discipline(self.name)),
            (Product::Discipline(queue), None) => {
                let (name, packets) = (self.name, Slab::new());
                Kind::Discipline(ExternalDiscipline { name, queue, packets })
            }
        };
        Ok(ExternalQueue::new(queue))
    }
}

/// A queue with an external AQM.
///
/// It stores a copy of the backlog, which a caller reads without a virtual call. Such a call in
/// [`AnyDiscipline::backlog`](crate::AnyDiscipline) would cost every other queue a few instructions per packet.
#[derive(Clone, Debug)]
pub struct ExternalQueue<P> {
    queue: Kind<P>,
    backlog: Backlog,
}

/// Product of an external AQM, as a queue.
#[derive(Clone, Debug)]
enum Kind<P> {
    /// A law, first in, first out.
    Fifo(Fifo<P, BoxedLaw>),
    /// TSQ on top of a law.
    Tsq(Tsq<P, BoxedLaw>),
    /// A discipline.
    Discipline(ExternalDiscipline<P>),
}

forward_queue!(
    #[inline]
    Kind { Fifo, Tsq, Discipline }
);

impl<P: Copy> ExternalQueue<P> {
    fn new(queue: Kind<P>) -> Self {
        let backlog = queue.backlog();
        Self { queue, backlog }
    }

    /// Calls the queue, and reads its backlog again.
    fn update<T>(&mut self, call: impl FnOnce(&mut Kind<P>) -> T) -> T {
        let answer = call(&mut self.queue);
        self.backlog = self.queue.backlog();
        answer
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: Copy> Queue<P> for ExternalQueue<P> {
    #[inline(never)]
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        self.update(|queue| queue.enqueue(now, arrival, packet, random))
    }

    #[inline(never)]
    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        self.update(|queue| queue.dequeue(now))
    }

    #[inline(never)]
    fn shed(&mut self) -> Option<Shed<P>> {
        self.update(Queue::shed)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn probability(&self) -> Option<Probability> {
        self.queue.probability()
    }

    fn readings(&self) -> Readings {
        self.queue.readings()
    }

    fn advance(&mut self, now: Instant) {
        self.update(|queue| queue.advance(now));
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.update(|queue| queue.set_rate(now, rate));
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        self.update(|queue| queue.reset(now, discard));
    }

    fn stats(&self) -> &QueueStats {
        self.queue.stats()
    }
}

/// An external law. An enum with one variant, so that the one list of a law's methods forwards to it.
#[derive(Clone, Debug)]
enum BoxedLaw {
    /// The law.
    Only(Box<dyn DynLaw>),
}

forward_law!(BoxedLaw { Only });

/// An external discipline and the handles of the packets that it holds.
#[derive(Clone, Debug)]
struct ExternalDiscipline<P> {
    name: &'static str,
    queue: Box<dyn DynQueue>,
    packets: Slab<P>,
}

impl<P> ExternalDiscipline<P> {
    /// The handle of a packet that leaves.
    fn take(&mut self, id: PacketId) -> P {
        let packet = self.packets.try_remove(id as usize);
        packet.unwrap_or_else(|| panic!("{} hands out packet {id}, which it does not hold", self.name))
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: Copy> Queue<P> for ExternalDiscipline<P> {
    fn enqueue(&mut self, now: Instant, arrival: Arrival, packet: P, random: &mut RandomStream) -> Verdict {
        let id = self.packets.insert(packet);
        let verdict = self.queue.enqueue(now, arrival, id as PacketId, random);
        if matches!(verdict, Verdict::Drop(_)) {
            self.packets.remove(id);
        }
        verdict
    }

    fn dequeue(&mut self, now: Instant) -> Option<Departure<P>> {
        let Departure { packet, size, arrived, marked } = self.queue.dequeue(now)?;
        Some(Departure { packet: self.take(packet), size, arrived, marked })
    }

    fn shed(&mut self) -> Option<Shed<P>> {
        let Shed { packet, size, reason } = self.queue.shed()?;
        Some(Shed { packet: self.take(packet), size, reason })
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn probability(&self) -> Option<Probability> {
        self.queue.probability()
    }

    fn readings(&self) -> Readings {
        self.queue.readings()
    }

    fn advance(&mut self, now: Instant) {
        self.queue.advance(now);
    }

    fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.queue.set_rate(now, rate);
    }

    fn reset(&mut self, now: Instant, discard: &mut dyn FnMut(P)) {
        let Self { name, queue, packets } = self;
        queue.reset(now, &mut |id| {
            let packet = packets.try_remove(id as usize);
            discard(packet.unwrap_or_else(|| panic!("{name} discards packet {id}, which it does not hold")));
        });
    }

    fn stats(&self) -> &QueueStats {
        self.queue.stats()
    }
}
