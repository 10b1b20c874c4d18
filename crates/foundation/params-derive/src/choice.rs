//! `#[derive(Choice)]`: an enum as one of several names.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, LitStr, Result, Variant};

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let Data::Enum(data) = &input.data else {
        return Err(Error::new_spanned(input, "Choice can be derived for an enum only"));
    };
    let ident = &input.ident;
    let names = data.variants.iter().map(name).collect::<Result<Vec<_>>>()?;
    let variants: Vec<_> = data.variants.iter().map(|variant| &variant.ident).collect();
    Ok(quote! {
        impl ::cutline_params::Choice for #ident {
            const NAMES: &'static [&'static str] = &[#(#names),*];
            const ALL: &'static [Self] = &[#(Self::#variants),*];
        }

        impl ::cutline_params::ParameterType for #ident {
            type Range = ();

            fn kind((): ()) -> ::cutline_params::ParameterKind {
                ::cutline_params::ParameterKind::Choice(<Self as ::cutline_params::Choice>::NAMES)
            }

            fn to_value(&self) -> ::cutline_params::ParameterValue {
                ::cutline_params::ParameterValue::Choice(::cutline_params::Choice::name(*self).into())
            }

            fn from_value(value: &::cutline_params::ParameterValue) -> Self {
                let ::cutline_params::ParameterValue::Choice(name) = value else {
                    panic!("{value} has been checked to be a name")
                };
                <Self as ::cutline_params::Choice>::from_name(name)
                    .unwrap_or_else(|| panic!("{name} has been checked to be one of the names"))
            }
        }
    })
}

/// Returns the name in `#[choice("...")]`, or the identifier in kebab-case.
fn name(variant: &Variant) -> Result<String> {
    if !variant.fields.is_empty() {
        return Err(Error::new_spanned(variant, "a variant of a Choice has no data"));
    }
    match variant.attrs.iter().find(|attribute| attribute.path().is_ident("choice")) {
        Some(attribute) => attribute.parse_args::<LitStr>().map(|name| name.value()),
        None => Ok(kebab(&variant.ident.to_string())),
    }
}

fn kebab(ident: &str) -> String {
    let mut name = String::new();
    for letter in ident.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}
