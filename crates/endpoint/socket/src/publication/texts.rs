//! Texts of a row that seldom change: they are made again only when their contents have changed.

use cutline_quality::spec::{Agreement, SpecParameter, Specification};
use cutline_signal::mib::Contract;
use std::net::SocketAddr;

/// Texts of the last row of a connection.
#[derive(Debug, Default)]
pub struct RowTexts {
    addresses: Option<([SocketAddr; 2], [String; 2])>,
    send: ContractTexts,
    receive: ContractTexts,
}

/// Specifications of a direction in words: offered, requested, effective.
#[derive(Debug, Default)]
struct ContractTexts(Option<(Contract, [String; 3])>);

impl RowTexts {
    /// Returns both addresses as texts.
    pub fn addresses(&mut self, of: [SocketAddr; 2]) -> [String; 2] {
        let (_, texts) = kept(&mut self.addresses, &of, || of.map(|address| address.to_string()));
        texts.clone()
    }

    /// Returns the specifications of the direction in which this end sends: offered, requested, effective.
    pub fn send(&mut self, contract: &Contract) -> [String; 3] {
        self.send.of(contract)
    }

    /// Returns the same of the direction in which this end receives.
    pub fn receive(&mut self, contract: &Contract) -> [String; 3] {
        self.receive.of(contract)
    }
}

impl ContractTexts {
    fn of(&mut self, contract: &Contract) -> [String; 3] {
        let make = || {
            let agreed = |of: fn(&Agreement) -> Specification| contract.agreement.as_ref().map(of);
            // Without an agreement, this end's own specification holds.
            let offered = agreed(Agreement::offered);
            let offered = offered.as_ref().unwrap_or(&contract.effective);
            let requested = agreed(Agreement::requested).as_ref().map(in_words).unwrap_or_default();
            [in_words(offered), requested, in_words(&contract.effective)]
        };
        kept(&mut self.0, contract, make).1.clone()
    }
}

/// Returns the value kept under this key; `make` makes it if another key is kept, or none.
fn kept<'k, K: Clone + PartialEq, V>(
    place: &'k mut Option<(K, V)>,
    key: &K,
    make: impl FnOnce() -> V,
) -> &'k mut (K, V) {
    let old = place.take().filter(|(of, _)| of == key);
    place.insert(old.unwrap_or_else(|| (key.clone(), make())))
}

/// Returns the parameters that a specification demands, as `min-rate = 60 messages/s, max-delay = 100 ms`.
fn in_words(specification: &Specification) -> String {
    let demanded = SpecParameter::ALL.into_iter().filter_map(|parameter| {
        let (about, value) = (parameter.about(), specification.get(parameter)?);
        let space = if about.unit.is_empty() { "" } else { " " };
        Some(format!("{} = {value}{space}{}", about.name, about.unit))
    });
    demanded.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutline_quality::spec::Preset;

    #[test]
    fn a_specification_is_written_with_its_units() {
        let words = in_words(&Preset::Video.specification());
        assert!(words.starts_with("min-rate = 40 messages/s, max-rate = 156.25 messages/s, "), "{words}");
        assert!(words.ends_with("max-delay = 400 ms, jitter = 50 ms, loss = 1 %, recovery = 5 s"), "{words}");
        assert_eq!(in_words(&Specification::OPEN), "");
    }

    #[test]
    fn texts_change_with_their_content() {
        let mut texts = RowTexts::default();
        let contract = |effective| Contract { effective, agreement: None };
        let [open, video] = [Specification::OPEN, Preset::Video.specification()].map(contract);
        for _ in 0..2 {
            assert_eq!(texts.send(&open), ["", "", ""]);
            let [offered, requested, effective] = texts.send(&video);
            assert_eq!((offered.as_str(), requested.as_str()), (effective.as_str(), ""));
            assert!(effective.starts_with("min-rate = 40 messages/s"), "{effective}");
            assert_eq!(texts.receive(&video)[2], effective);
        }
        let at = |port| SocketAddr::from(([192, 0, 2, 1], port));
        assert_eq!(texts.addresses([at(1), at(2)]), ["192.0.2.1:1", "192.0.2.1:2"]);
        assert_eq!(texts.addresses([at(3), at(2)]), ["192.0.2.1:3", "192.0.2.1:2"]);
    }
}
