//! Flows from options.

use super::options::FlowArgs;
use crate::exit::Failure;
use cutline_lab::groups;
use cutline_traffic::{FlowGroups, FlowPlan, PlanDirection};
use cutline_units::Duration;
use std::net::SocketAddr;

/// Returns one group from the options, or one for each direction.
pub fn from_options(
    args: &FlowArgs,
    from: Option<SocketAddr>,
    to: SocketAddr,
) -> Result<FlowGroups, Failure> {
    let (transport, app, dscp) = (args.transport()?, args.application()?, args.code_point()?);
    let like = FlowPlan {
        id: 0,
        name: String::new(),
        direction: PlanDirection::Forward,
        transport,
        app,
        from,
        to,
        dscp,
        ecn: args.ecn,
        start: Duration::ZERO,
        stop: None,
    };
    let mut flows = FlowGroups::default();
    groups::add(&mut flows, &args.name(), args.flows.into(), args.direction(), &like, |_| Duration::ZERO);
    Ok(flows)
}
