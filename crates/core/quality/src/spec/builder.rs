//! A specification written as a chain of calls.

use super::{Coerced, SpecParameter, Specification};
use cutline_params::{ParameterError, Parameters as _};
use cutline_units::{Bytes, Duration};

/// Makes a [`Specification`].
///
/// ```
/// use cutline_quality::spec::{SpecParameter, Specification};
/// use cutline_units::{Bytes, Duration};
///
/// let call = Specification::builder()
///     .rates(50.0, 50.0, 50.0)
///     .size(Bytes::new(160))
///     .max_delay(Duration::from_millis(150))
///     .loss(1.0)
///     .coerce(SpecParameter::MaxDelay)
///     .build()?;
/// assert_eq!(call.max_throughput().unwrap().as_bps(), 64_000);
/// # Ok::<(), cutline_params::ParameterError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it builds"]
pub struct Builder(Specification);

impl Specification {
    /// A builder of a specification. Parameters that are not set stay open.
    pub const fn builder() -> Builder {
        Builder(Self::OPEN)
    }

    /// A builder that starts with this specification.
    pub const fn change(self) -> Builder {
        Builder(self)
    }
}

/// A method for each parameter, documented as its field is.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {$(
        $(#[$doc])*
        pub const fn $name(mut self, $name: $type) -> Self {
            self.0.$name = Some($name);
            self
        }
    )+};
}

impl Builder {
    setters! {
        /// The lowest acceptable rate, messages/s.
        min_rate: f64,
        /// The highest useful rate, messages/s.
        max_rate: f64,
        /// The highest rate of a burst, messages/s.
        peak_rate: f64,
        /// The longest message.
        size: Bytes,
        /// The one-way delay below which less is worth no more.
        min_delay: Duration,
        /// The longest acceptable one-way delay.
        max_delay: Duration,
        /// The longest time between the arrivals of two messages.
        max_gap: Duration,
        /// The largest change of the one-way delay from one message to the next.
        jitter: Duration,
        /// The largest share of messages that may be lost, per cent.
        loss: f64,
        /// The longest time until a broken connection carries messages again.
        recovery: Duration,
        /// True if messages may be delivered in another order than they were sent in.
        reordering: bool,
    }

    /// The lowest and the highest rate, and that of a burst, messages/s.
    pub const fn rates(self, min: f64, max: f64, peak: f64) -> Self {
        self.min_rate(min).max_rate(max).peak_rate(peak)
    }

    /// Also coerces this parameter.
    pub const fn coerce(mut self, parameter: SpecParameter) -> Self {
        self.0.coerced = self.0.coerced.with(parameter);
        self
    }

    /// Coerces all parameters.
    pub const fn coerce_all(mut self) -> Self {
        self.0.coerced = Coerced::ALL;
        self
    }

    /// The specification.
    ///
    /// # Errors
    /// When a value is out of range, or limits contradict each other.
    pub fn build(self) -> Result<Specification, ParameterError> {
        self.0.validate()?;
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_refused_when_it_is_built() {
        let error = Specification::builder().loss(101.0).build().unwrap_err().to_string();
        assert_eq!(error, "loss = 101: allowed is a number from 0 to 100 %, or off");
    }

    #[test]
    fn every_parameter_has_a_method() {
        let time = Duration::from_millis(1);
        let all = Specification::builder()
            .rates(1.0, 2.0, 3.0)
            .size(Bytes::new(1))
            .min_delay(time)
            .max_delay(time)
            .max_gap(time)
            .jitter(time)
            .loss(0.0)
            .recovery(time)
            .reordering(false)
            .build()
            .unwrap();
        assert!(SpecParameter::ALL.iter().all(|parameter| all.get(*parameter).is_some()));
        assert_eq!(all.clone().change().build(), Ok(all));
    }
}
