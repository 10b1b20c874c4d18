//! Reason for a setting's value.

use std::fmt;

/// Layer of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// A parameter of the generic specification.
    ApplicationProfile,
    /// The choice of protocol and service.
    Selection,
    /// A setting of the host, such as a socket option.
    EndSystem,
    /// A mark in packets, or a request to the network.
    Network,
}

impl Layer {
    /// Every layer, in the order of translation.
    pub const ALL: [Self; 4] = [Self::ApplicationProfile, Self::Selection, Self::EndSystem, Self::Network];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ApplicationProfile => "application",
            Self::Selection => "selection",
            Self::EndSystem => "end system",
            Self::Network => "network",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One setting, its value, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Layer of the setting.
    pub layer: Layer,
    /// The setting's name, in kebab-case.
    pub setting: &'static str,
    /// The value as text; `None` where the setting is left as it is.
    pub value: Option<String>,
    /// Reason for the value, in one sentence.
    pub reason: String,
    /// Source of the rule: an RFC, a paper, a manual page; empty if it is ours.
    pub source: &'static str,
}

/// A value that has been chosen, with the reason for it.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<T> {
    value: Option<T>,
    reason: String,
    source: &'static str,
}

impl<T> Chosen<T> {
    /// Sets a value.
    pub(crate) fn set(value: T, source: &'static str, reason: impl Into<String>) -> Self {
        Self { value: Some(value), reason: reason.into(), source }
    }

    /// Leaves the setting as it is.
    pub(crate) fn leave(source: &'static str, reason: impl Into<String>) -> Self {
        Self { value: None, reason: reason.into(), source }
    }
}

/// The decisions so far. A value goes into the settings through it, so both agree.
#[derive(Debug, Default)]
pub(crate) struct Decisions(pub(crate) Vec<Decision>);

impl Decisions {
    /// Notes a decision; returns its value.
    pub(crate) fn take<T: fmt::Display>(
        &mut self,
        layer: Layer,
        setting: &'static str,
        chosen: Chosen<T>,
    ) -> Option<T> {
        let Chosen { value, reason, source } = chosen;
        let text = value.as_ref().map(ToString::to_string);
        self.0.push(Decision { layer, setting, value: text, reason, source });
        value
    }

    /// Notes a decision on the end system.
    pub(crate) fn end_system<T: fmt::Display>(
        &mut self,
        setting: &'static str,
        chosen: Chosen<T>,
    ) -> Option<T> {
        self.take(Layer::EndSystem, setting, chosen)
    }

    /// Notes a decision on the network.
    pub(crate) fn network<T: fmt::Display>(&mut self, setting: &'static str, chosen: Chosen<T>) -> Option<T> {
        self.take(Layer::Network, setting, chosen)
    }
}
