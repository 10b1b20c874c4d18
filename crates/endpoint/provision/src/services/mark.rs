//! `mark`: the packets carry a hint for routers that know hints. Nothing is reserved, so nothing can be refused.

use super::{Access, Provisioner, ReservationService};
use crate::demand::Demand;
use crate::grant::Grant;
use crate::refusal::Refusal;

#[derive(Debug)]
pub(super) struct Mark;

impl ReservationService for Mark {
    fn name(&self) -> &'static str {
        "mark"
    }

    fn title(&self) -> &'static str {
        "hints in the packets; nothing is reserved"
    }

    fn is_reserved(&self) -> bool {
        false
    }

    fn open(&self, _: &Access) -> Box<dyn Provisioner> {
        Box::new(Self)
    }
}

impl Provisioner for Mark {
    fn name(&self) -> &'static str {
        ReservationService::name(self)
    }

    fn request(&self, _: &Demand) -> Result<Grant, Refusal> {
        Ok(Grant::without_agent(ReservationService::name(self)))
    }
}
