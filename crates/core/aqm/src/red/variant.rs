//! Variants of RED: that of the papers, and that of ns-2, which differs in four points.

use cutline_params::Choice;

/// Variant of RED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum RedVariant {
    /// As the papers have it.
    Papers,
    /// As ns-2.35 does it:
    ///
    /// - The first packet after the average was below `min_th` is spared: the count begins with it. An average beyond the
    ///   end of the slope hits it all the same.
    /// - A packet that finds fewer than two waiting is spared.
    /// - The gentle slope is computed once, from the first `max_p`. So Adaptive RED has a second point of rest beyond `max_th`, which it
    ///   does not leave while the load lasts, however much `max_p` grows. ns-3 has taken this over.
    /// - Adaptive RED takes figure 1 literally: `max_p` may step over its floor and ceiling, and the next step comes with
    ///   the first arrival that is an interval after the last change. Its step up is at most a quarter of `max_p`, also
    ///   where `alpha` is given.
    #[choice("ns-2")]
    Ns2,
}
