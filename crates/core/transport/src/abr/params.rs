//! The parameters of an ABR connection.

use cutline_params::{ParameterError, Parameters};
use cutline_units::{Duration, Rate};

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Rates of cells, bit/s.
const RATES: (u64, u64) = (10_000, 100_000_000_000);

/// The parameters of an ABR connection, with the names of the specification. Rates are those of cells of 53 B, as the rate of a link of ATM.
/// Connections with the same parameters share them behind an `Arc`.
#[derive(Clone, Copy, Debug, PartialEq, Parameters)]
#[parameters(check = check)]
pub struct Params {
    /// The largest payload of a packet; a longer message is split. With its RM cells, a packet of the default is shorter than a CSPDU.
    #[param(default = 8192, range = (1, 65_535), unit = "B", source = "QUANTA: the middle block of tables 1 and 2")]
    pub packet_size: u32,
    /// The size of a packet's headers on the wire.
    #[param(name = "header", default = 0, range = (0, 1000), unit = "B", source = "QUANTA: direct connections have none")]
    pub header_bytes: u32,
    /// Peak cell rate (`PCR`).
    #[param(default = Rate::from_kbps(149_760), range = RATES, unit = "bit/s", source = "the cells of a link of 155.52 Mbit/s")]
    pub pcr: Rate,
    /// Minimum cell rate (`MCR`); at most pcr. The rate does not fall below 10 cells per second.
    #[param(default = Rate::ZERO, range = (0, 100_000_000_000), unit = "bit/s", source = "af-tm-0056")]
    pub mcr: Rate,
    /// Initial cell rate (`ICR`), also after an idle time; from mcr to pcr. Off is a first step of the increase, RIF PCR.
    #[param(default = None, range = RATES, unit = "bit/s", source = "ours; af-tm-0056: PCR")]
    pub icr: Option<Rate>,
    /// Rate increase factor (`RIF`): share of pcr by which an RM cell without CI raises the rate.
    #[param(default = 0.0625, range = (0.00003, 1.0), source = "af-tm-0056: 1/16")]
    pub rif: f64,
    /// Rate decrease factor (`RDF`): share of the rate by which an RM cell with CI lowers it.
    #[param(default = 0.0625, range = (0.00003, 1.0), source = "af-tm-0056: 1/16")]
    pub rdf: f64,
    /// Number of cells of which one is an RM cell (`Nrm`).
    #[param(default = 32, range = (2, 256), unit = "cells", source = "af-tm-0056")]
    pub nrm: u32,
    /// Time after which an RM cell is sent also after fewer cells than nrm, but two (`Trm`).
    #[param(default = MS(100), range = (MS(1), MS(100)), source = "af-tm-0056")]
    pub trm: Duration,
    /// Number of RM cells without one that has come back, from which on each further one lowers the rate (`CRM`).
    #[param(default = 1024, range = (1, 8_388_608), unit = "cells", source = "ours: 1.5 MB of cells; af-tm-0056: 524288")]
    pub crm: u32,
    /// Cutoff decrease factor (`CDF`): share of the rate by which each of these RM cells lowers it.
    #[param(default = 0.0625, range = (0.0, 1.0), source = "af-tm-0056: 1/16")]
    pub cdf: f64,
    /// Time without an RM cell after which the rate is at most icr (`ADTF`).
    #[param(default = MS(500), range = (MS(10), Duration::from_secs(10)), source = "af-tm-0056")]
    pub adtf: Duration,
    /// Number of packets that may wait to be sent; off is any number. The sender drops those that do not fit.
    #[param(default = Some(200), range = (1, 100_000), unit = "packets", source = "ours: as nada")]
    pub send_buffer: Option<u32>,
}

fn check(params: &Params) -> Result<(), ParameterError> {
    let Params { pcr, mcr, icr, .. } = *params;
    if mcr > pcr {
        return Err(ParameterError::new("mcr", mcr, format!("at most pcr, {pcr}")));
    }
    match icr.filter(|icr| !(mcr..=pcr).contains(icr)) {
        Some(icr) => Err(ParameterError::new("icr", icr, format!("from mcr, {mcr}, to pcr, {pcr}"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_contradict_each_other_are_named() {
        let error = |params: Params| params.validate().unwrap_err().parameter;
        let base = || Params { pcr: Rate::from_mbps(10), ..Params::default() };
        assert_eq!(error(Params { mcr: Rate::from_mbps(11), ..base() }), "mcr");
        assert_eq!(error(Params { icr: Some(Rate::from_mbps(11)), ..base() }), "icr");
        let mcr = Rate::from_mbps(2);
        assert_eq!(error(Params { mcr, icr: Some(Rate::from_mbps(1)), ..base() }), "icr");
        assert_eq!(Params { mcr, icr: Some(mcr), ..base() }.validate(), Ok(()));
    }
}
