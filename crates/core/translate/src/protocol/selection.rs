//! Choice of a protocol if the application leaves it open.

use super::Protocol;
use cutline_quality::spec::{ConnectionSpecification, Specification};

/// A rule of the choice. The first that applies decides.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Condition of the rule, in words.
    pub when: &'static str,
    /// The chosen protocol.
    pub protocol: Protocol,
    /// Reason for the choice.
    pub reason: &'static str,
    applies: fn(&ConnectionSpecification) -> bool,
}

/// The rules, in their order. If a reservation is requested, it is the reserved form of the protocol: R-TCP or R-UDP.
pub const RULES: [Rule; 4] = [
    Rule {
        when: "a direction demands that nothing is lost (`loss = 0`)",
        protocol: Protocol::Tcp,
        reason: "every message must arrive, and TCP repeats lost data",
        applies: |spec| either(spec, |spec| spec.loss == Some(0.0)),
    },
    Rule {
        when: "a direction bounds delay, gap or jitter",
        protocol: Protocol::Udp,
        reason: "losses are acceptable and lateness is not: a message that waits for the repetition of another one is late",
        applies: |spec| either(spec, |spec| spec.max_delay.or(spec.max_gap).or(spec.jitter).is_some()),
    },
    Rule {
        when: "a direction demands the order of messages (`reordering = false`)",
        protocol: Protocol::Tcp,
        reason: "messages must stay in order, and TCP keeps it",
        applies: |spec| either(spec, |spec| spec.reordering == Some(false)),
    },
    Rule {
        when: "otherwise",
        protocol: Protocol::Tcp,
        reason: "nothing speaks against TCP, which adapts to the path",
        applies: |_| true,
    },
];

fn either(spec: &ConnectionSpecification, holds: fn(&Specification) -> bool) -> bool {
    [&spec.send, &spec.receive].into_iter().any(holds)
}

/// The rule that decides.
pub(crate) fn decide(spec: &ConnectionSpecification) -> Rule {
    let rule = RULES.into_iter().find(|rule| (rule.applies)(spec));
    rule.expect("the last rule always applies")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_quality::spec::Preset;
    use cutline_units::Duration;

    fn chosen(send: Specification) -> Protocol {
        decide(&ConnectionSpecification { send, ..ConnectionSpecification::default() }).protocol
    }

    #[test]
    fn complete_traffic_uses_tcp_and_timely_traffic_udp() {
        let expected =
            [Protocol::Udp, Protocol::Udp, Protocol::Tcp, Protocol::Tcp, Protocol::Udp, Protocol::Tcp];
        assert_eq!(Preset::ALL.map(|preset| chosen(preset.specification())), expected);
        assert_eq!(chosen(Specification::OPEN), Protocol::Tcp);
        let ordered = Specification { reordering: Some(false), ..Specification::OPEN };
        assert_eq!(
            decide(&ConnectionSpecification { receive: ordered, ..Default::default() }).when,
            RULES[2].when
        );
        let steady = Specification { max_gap: Some(Duration::from_millis(50)), ..Specification::OPEN };
        assert_eq!(chosen(steady.clone()), Protocol::Udp);
        let complete = Specification { loss: Some(0.0), ..Specification::OPEN };
        let both = ConnectionSpecification { send: steady, receive: complete, profile: None };
        assert_eq!(decide(&both).protocol, Protocol::Tcp, "one direction is complete, so both are");
    }
}
