//! The derives of `cutline-params`; its documentation describes their use.

mod choice;
mod parameters;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives `cutline_params::Parameters` and `Default` for a struct.
#[proc_macro_derive(Parameters, attributes(param, group, parameters))]
pub fn parameters(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    parameters::derive(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `cutline_params::Choice` for an enum without data.
#[proc_macro_derive(Choice, attributes(choice))]
pub fn choice(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    choice::derive(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
