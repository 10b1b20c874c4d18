//! `#[derive(Parameters)]`: a struct's fields as parameters.

use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, Field, Fields, Ident, Lit, LitStr, Meta, Path, Result, Token,
    parse_quote,
};

pub fn derive(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    let entries = fields(input)?.iter().map(Entry::parse).collect::<Result<Vec<_>>>()?;
    let defaults = entries.iter().map(Entry::default);
    let pushes = entries.iter().map(|entry| entry.push(ident));
    let check = check(input)?.map(|function| {
        quote! {
            fn check_together(&self) -> ::core::result::Result<(), ::cutline_params::ParameterError> {
                #function(self)
            }
        }
    });
    Ok(quote! {
        impl ::core::default::Default for #ident {
            fn default() -> Self {
                Self { #(#defaults),* }
            }
        }

        impl ::cutline_params::Parameters for #ident {
            fn fields() -> &'static [::cutline_params::ParameterField<Self>] {
                static FIELDS: ::std::sync::LazyLock<::std::vec::Vec<::cutline_params::ParameterField<#ident>>> =
                    ::std::sync::LazyLock::new(|| {
                        let mut fields = ::std::vec::Vec::new();
                        let defaults = <#ident as ::core::default::Default>::default();
                        #(#pushes)*
                        fields
                    });
                &FIELDS
            }

            #check
        }
    })
}

fn fields(input: &DeriveInput) -> Result<&Punctuated<Field, Token![,]>> {
    match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Ok(&fields.named),
            Fields::Unnamed(_) | Fields::Unit => Err(Error::new_spanned(input, "the fields must have names")),
        },
        _ => Err(Error::new_spanned(input, "Parameters can be derived for a struct only")),
    }
}

/// The function of `#[parameters(check = FUNCTION)]`.
fn check(input: &DeriveInput) -> Result<Option<Path>> {
    let mut function = None;
    for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("parameters")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("check") {
                return Err(meta.error("expected `check = FUNCTION`"));
            }
            function = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(function)
}

/// A field and its attribute.
struct Entry<'a> {
    field: &'a Field,
    role: Role,
}

enum Role {
    Parameter(Box<Param>),
    Group(Box<Group>),
    /// Not a parameter; its default.
    Skipped(Expr),
}

/// `#[param(...)]`.
struct Param {
    default: Expr,
    range: Option<Expr>,
    unit: String,
    source: Expr,
    name: String,
    on: Option<Expr>,
    hertz: bool,
    /// True if the parameter must be set; then the default is an example.
    required: bool,
}

/// `#[group(...)]`.
#[derive(Default)]
struct Group {
    default: Option<Expr>,
    source: Option<Expr>,
    sources: Vec<(String, Expr)>,
    without: Vec<String>,
}

impl<'a> Entry<'a> {
    fn parse(field: &'a Field) -> Result<Self> {
        let attribute = |name| field.attrs.iter().find(|attribute| attribute.path().is_ident(name));
        let role = match (attribute("param"), attribute("group")) {
            (Some(attribute), None) => param(field, attribute)?,
            (None, Some(attribute)) => Role::Group(Box::new(group(attribute)?)),
            _ => return Err(Error::new_spanned(field, "expected #[param(...)] or #[group(...)]")),
        };
        Ok(Self { field, role })
    }

    fn ident(&self) -> &Ident {
        self.field.ident.as_ref().expect("the fields have names")
    }

    /// `name: DEFAULT` for the struct's default.
    fn default(&self) -> TokenStream {
        let ident = self.ident();
        let default = match &self.role {
            Role::Parameter(param) => Some(&param.default),
            Role::Group(group) => group.default.as_ref(),
            Role::Skipped(default) => Some(default),
        };
        default.map_or_else(
            || quote!(#ident: ::core::default::Default::default()),
            |default| quote!(#ident: #default),
        )
    }

    /// The statement that adds the field to `fields`.
    fn push(&self, owner: &Ident) -> TokenStream {
        match &self.role {
            Role::Parameter(param) => self.push_parameter(owner, param),
            Role::Group(group) => self.push_group(owner, group),
            Role::Skipped(_) => TokenStream::new(),
        }
    }

    fn push_parameter(&self, owner: &Ident, param: &Param) -> TokenStream {
        let (ty, doc) = (&self.field.ty, doc(&self.field.attrs));
        let Param { range, unit, source, name, on, hertz, required, default: _ } = param;
        let on = on.as_ref().map_or_else(|| quote!(None), |on| quote!(Some(Some(#on))));
        let range = range.as_ref().map_or_else(|| quote!(()), |range| quote!(#range));
        let kind = quote!(<#ty as ::cutline_params::ParameterType>::kind(#range));
        let kind = if *hertz { quote!(#kind.in_hertz()) } else { kind };
        let accessor = self.accessor(owner);
        quote! {
            fields.push(::cutline_params::ParameterField::new::<#ty>(
                #name,
                (#unit, #source, #doc),
                (#kind, #on, #required),
                &defaults,
                #accessor,
            ));
        }
    }

    fn accessor(&self, owner: &Ident) -> TokenStream {
        let ident = self.ident();
        quote! {
            ::cutline_params::Accessor {
                get: |params: &#owner| &params.#ident,
                get_mut: |params: &mut #owner| &mut params.#ident,
            }
        }
    }

    fn push_group(&self, owner: &Ident, group: &Group) -> TokenStream {
        let ty = &self.field.ty;
        let Group { default, source, sources, without } = group;
        let (names, values): (Vec<_>, Vec<_>) = sources.iter().map(|(name, source)| (name, source)).unzip();
        let source = source.as_ref().map_or_else(|| quote!(None), |source| quote!(Some(#source)));
        let (accessor, has_default) = (self.accessor(owner), default.is_some());
        quote! {
            for field in <#ty as ::cutline_params::Parameters>::fields() {
                let source = match field.about.name {
                    #(#without => continue,)*
                    #(#names => Some(#values),)*
                    _ => #source,
                };
                fields.push(::cutline_params::ParameterField::in_group::<#ty>(
                    field,
                    (source, #has_default),
                    &defaults,
                    #accessor,
                ));
            }
        }
    }
}

fn param(field: &Field, attribute: &Attribute) -> Result<Role> {
    let mut example = None;
    let (mut default, mut range, mut source, mut name, mut on) = (None, None, None, None, None);
    let (mut unit, mut hertz, mut skip) = (String::new(), false, false);
    attribute.parse_nested_meta(|meta| {
        match key(&meta)?.as_str() {
            "default" => default = Some(meta.value()?.parse::<Expr>()?),
            "example" => example = Some(meta.value()?.parse::<Expr>()?),
            "range" => range = Some(meta.value()?.parse::<Expr>()?),
            "source" => source = Some(meta.value()?.parse::<Expr>()?),
            "unit" => unit = meta.value()?.parse::<LitStr>()?.value(),
            "name" => name = Some(meta.value()?.parse::<LitStr>()?.value()),
            "on" => on = Some(meta.value()?.parse::<Expr>()?),
            "hertz" => hertz = true,
            "skip" => skip = true,
            _ => {
                return Err(
                    meta.error("expected default, example, range, source, unit, name, on, hertz or skip")
                );
            }
        }
        Ok(())
    })?;
    let lacks = |what: &str| Error::new_spanned(field, format!("#[param] lacks `{what} = ...`"));
    if let (Some(_), Some(example)) = (&default, &example) {
        return Err(Error::new_spanned(
            example,
            "a parameter has a default, or it is required and has an example",
        ));
    }
    let required = example.is_some();
    let default = default.or(example).ok_or_else(|| lacks("default"))?;
    if skip {
        return Ok(Role::Skipped(default));
    }
    let source = match source {
        None if required => parse_quote!(""),
        source => source.ok_or_else(|| lacks("source"))?,
    };
    let ident = field.ident.as_ref().expect("the fields have names").to_string();
    let name = name.unwrap_or_else(|| ident.replace('_', "-"));
    Ok(Role::Parameter(Box::new(Param { default, range, unit, source, name, on, hertz, required })))
}

fn group(attribute: &Attribute) -> Result<Group> {
    let mut group = Group::default();
    if matches!(attribute.meta, Meta::Path(_)) {
        return Ok(group);
    }
    attribute.parse_nested_meta(|meta| {
        match key(&meta)?.as_str() {
            "default" => group.default = Some(meta.value()?.parse()?),
            "source" => group.source = Some(meta.value()?.parse()?),
            "sources" => meta.parse_nested_meta(|one| {
                group.sources.push((key(&one)?.replace('_', "-"), one.value()?.parse()?));
                Ok(())
            })?,
            "without" => meta.parse_nested_meta(|one| {
                group.without.push(key(&one)?.replace('_', "-"));
                Ok(())
            })?,
            _ => return Err(meta.error("expected default, source, sources or without")),
        }
        Ok(())
    })?;
    Ok(group)
}

fn key(meta: &ParseNestedMeta<'_>) -> Result<String> {
    meta.path.get_ident().map(Ident::to_string).ok_or_else(|| meta.error("expected a name"))
}

/// The first paragraph of the documentation comment, in one line, without its last full stop.
fn doc(attributes: &[Attribute]) -> String {
    let lines =
        attributes.iter().filter(|attribute| attribute.path().is_ident("doc")).filter_map(|attribute| {
            let Meta::NameValue(pair) = &attribute.meta else { return None };
            let Expr::Lit(literal) = &pair.value else { return None };
            let Lit::Str(text) = &literal.lit else { return None };
            Some(text.value().trim().to_owned())
        });
    let paragraph: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    text.strip_suffix('.').map_or(text.clone(), str::to_owned)
}
