//! Applications: a class with parameters as texts, as written on a command line or in a program.

use cutline_config::parameter;
use cutline_params::{ParameterError, ParameterValue};
use cutline_translate::{ApplicationProfile, TranslationRequest};

/// Returns the request of an application of a class, with these parameters and the defaults of the others.
///
/// # Errors
/// When there is no such class or parameter, or a value is not allowed.
pub fn request(class: &str, settings: &[(&str, &str)]) -> Result<TranslationRequest, ParameterError> {
    let parameters = ApplicationProfile::describe(class)?;
    let mut values = Vec::new();
    for (key, text) in settings {
        let Some(about) = parameters.iter().find(|about| about.name == *key) else {
            let names: Vec<_> = parameters.iter().map(|about| about.name).collect();
            return Err(ParameterError::unknown(key, text, &names));
        };
        // A text that is not a value is checked as a word, so that the error has the nearest allowed word.
        let word = |_| ParameterValue::Choice((*text).to_owned().into());
        let value = parameter::parse(about, text).unwrap_or_else(word);
        about.check(&value)?;
        values.push((about.name, value));
    }
    TranslationRequest::from_application(&ApplicationProfile::from_values(class, values)?)
}

#[cfg(test)]
mod tests {
    use super::request;

    #[test]
    fn settings_are_texts_and_errors_name_them() {
        assert!(request("video", &[("bit-rate", "4 Mbit/s"), ("interactive", "false")]).is_ok());
        let why = |settings: &[(&str, &str)]| request("video", settings).unwrap_err().to_string();
        assert!(why(&[("bitrate", "1")]).contains("did you mean bit-rate?"), "{}", why(&[("bitrate", "1")]));
        assert!(why(&[("bit-rate", "fast")]).starts_with("bit-rate = fast: allowed is"));
        assert!(request("vidoe", &[]).is_err());
    }
}
