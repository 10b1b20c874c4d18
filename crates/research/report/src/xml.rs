//! Escaping of text in XML and HTML.

/// Escapes a text for use between tags or within double quotes. Characters that XML does not allow are left out.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && c != '\n' && c != '\t' => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("a < b & \"c\" > d\u{1b}[0m"), "a &lt; b &amp; &quot;c&quot; &gt; d[0m");
    }
}
