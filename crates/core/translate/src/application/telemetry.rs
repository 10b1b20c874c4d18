//! Telemetry: measured values and commands, complete, in order and in time.

use super::ApplicationTranslator;
use crate::demand::Demand;
use cutline_params::{ParameterError, Parameters};
use cutline_quality::spec::SpecParameter;
use cutline_units::{Bytes, Duration};

/// Telemetry in its own words.
#[derive(Clone, Debug, PartialEq, Parameters)]
#[parameters(check = TelemetryParams::check)]
pub struct TelemetryParams {
    /// Reports per second.
    #[param(default = 10.0, range = (0.001, 1_000_000.0), unit = "reports/s", source = "ours")]
    pub rate: f64,
    /// The lowest acceptable rate; at most rate.
    #[param(default = 1.0, range = (0.001, 1_000_000.0), unit = "reports/s", source = "ours")]
    pub least_rate: f64,
    /// The largest report.
    #[param(default = Bytes::new(1000), range = (1, 1_000_000), unit = "B", source = "ITU-T G.1010 table I.2")]
    pub size: Bytes,
    /// Largest delay of a report.
    #[param(
        default = Duration::from_millis(250),
        range = (Duration::from_millis(1), Duration::from_secs(3600)),
        source = "ITU-T G.1010 table I.2: command and control"
    )]
    pub deadline: Duration,
}

impl TelemetryParams {
    fn check(&self) -> Result<(), ParameterError> {
        if self.least_rate > self.rate {
            let allowed = format!("at most rate, which is {}", self.rate);
            return Err(ParameterError::new("least-rate", self.least_rate, allowed));
        }
        Ok(())
    }
}

impl ApplicationTranslator for TelemetryParams {
    const NAME: &'static str = "telemetry";
    const TITLE: &'static str = "measured values and commands";

    fn demands(&self) -> Vec<Demand> {
        let Self { rate, least_rate, size, deadline } = *self;
        let mut demands = vec![
            Demand::new(SpecParameter::MinRate, least_rate, "", "stated by the application"),
            Demand::new(SpecParameter::MaxRate, rate, "", "stated by the application"),
            Demand::new(SpecParameter::PeakRate, rate, "", "reports come at equal intervals"),
            Demand::new(SpecParameter::Size, size, "", "a report is a message"),
            Demand::new(SpecParameter::MaxDelay, deadline, "", "a later report is of no use"),
        ];
        demands.extend(Demand::complete());
        let why = "a value that is older is shown as missing";
        demands.push(Demand::new(SpecParameter::Recovery, Duration::from_secs(10), "", why));
        demands
    }
}
