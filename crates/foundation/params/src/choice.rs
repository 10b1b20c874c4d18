//! A parameter that is one of several names.

/// An enum without data whose variants have names. Derive it: a variant's name is its identifier in kebab-case, or
/// the name in `#[choice("...")]`.
///
/// ```
/// use cutline_params::Choice;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Choice)]
/// enum Spacing {
///     Uniform,
///     #[choice("wait")]
///     WaitFirst,
/// }
///
/// assert_eq!(Spacing::NAMES, ["uniform", "wait"]);
/// assert_eq!(Spacing::WaitFirst.name(), "wait");
/// ```
pub trait Choice: Copy + PartialEq + Sized + 'static {
    /// The variants' names, in their order.
    const NAMES: &'static [&'static str];
    /// The variants, in their order.
    const ALL: &'static [Self];

    /// The variant's name.
    fn name(self) -> &'static str {
        let position = Self::ALL.iter().position(|other| *other == self);
        Self::NAMES[position.expect("`ALL` has every variant")]
    }

    /// The variant of a name.
    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|other| *other == name).map(|position| Self::ALL[position])
    }
}
