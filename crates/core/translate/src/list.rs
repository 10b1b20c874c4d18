//! Lists of translators that are chosen by name.

/// Makes an enum of translators without data: a line for each, with its documentation and its translator. From that come
/// the names, the search by name and the translator of a variant.
macro_rules! translators {
    (
        $(#[$about:meta])* $name:ident, $noun:literal, $kind:path;
        $($(#[$doc:meta])* $variant:ident = $translator:expr;)+
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub(crate) fn translator(self) -> &'static dyn $kind {
                match self { $(Self::$variant => $translator),+ }
            }

            /// The name, as the command line writes it.
            pub fn name(self) -> &'static str {
                self.translator().name()
            }

            /// Returns the title, in a few words.
            pub fn title(self) -> &'static str {
                self.translator().title()
            }

            /// The names of all.
            pub fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|one| one.name()).collect()
            }

            /// The one of that name.
            ///
            /// # Errors
            /// When there is none; the error has the names and the nearest.
            pub fn parse(name: &str) -> Result<Self, cutline_params::ParameterError> {
                let found = Self::ALL.iter().copied().find(|one| one.name() == name);
                found.ok_or_else(|| {
                    cutline_params::ParameterError::unknown_choice($noun, name, &Self::names())
                })
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use translators;
