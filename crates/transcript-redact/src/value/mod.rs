//! The value that belongs to a name, in the many ways of writing one, and whether it is a secret.

mod extent;
mod group;
mod named;
mod place;
mod secret;
mod stand_in;
mod table;

use std::ops::Range;

use crate::names::Meaning;
use crate::view::View;
use named::Named;
pub(crate) use named::Value;
pub(crate) use stand_in::stands_for_one;
pub(crate) use table::Table;

/// Returns the secrets that belong to a name with this meaning, and what looks like one.
///
/// `table` is the one that was looked at last.
pub(crate) fn values_of(
    view: &View,
    name: &Range<usize>,
    meaning: Meaning,
    table: &mut Table,
) -> Vec<Value> {
    let named = Named {
        view,
        text: view.text(),
        name: name.clone(),
        meaning,
    };
    let mut values = Vec::new();
    if let Some((at, way)) = named.place() {
        named.take(at, way, &mut values);
    }
    if values.is_empty() {
        for (at, way) in named.near() {
            values.extend(named.classify(at, way));
        }
    }
    if values.is_empty() {
        values = named.column(table);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{meaning, name_around};

    /// Returns the value of the name at the start of a text, or behind `|`.
    fn found(text: &str) -> Option<String> {
        let mut view = View::default();
        let start = text.find('|').map_or(0, |at| at + 1);
        let text = text.replacen('|', "", 1);
        let start = start.saturating_sub(1);
        let skip = text[start..]
            .find(|character: char| character.is_ascii_alphanumeric() || character == '_')
            .unwrap();
        view.decode(text.as_bytes());
        let name = name_around(view.text(), &(start + skip..start + skip + 1));
        let meaning = meaning(&view.text()[name.clone()])?;
        let values = values_of(&view, &name, meaning, &mut Table::default()).into_iter();
        let values = values.filter(|value| value.is_sure);
        let values: Vec<String> = values
            .map(|value| String::from_utf8(view.text()[value.range].to_vec()).unwrap())
            .collect();
        (!values.is_empty()).then(|| values.join(" "))
    }

    #[test]
    fn values_are_found_however_they_are_written() {
        for (text, value) in [
            ("DB_PASSWORD=correcthorsebattery", "correcthorsebattery"),
            ("DB_PASSWORD=x7Kq2pL", "x7Kq2pL"),
            ("DB_PASSWORD=$Zx81k3Lm9", "$Zx81k3Lm9"),
            ("DB_PASSWORD=ab12cdef(ghijk", "ab12cdef(ghijk"),
            ("DB_PASSWORD=ab;cd12{e next", "ab;cd12{e"),
            ("ADMIN_PASS=Sommer2026!", "Sommer2026!"),
            (
                "REDIS_PASSWORD=\"my long pass phrase\"",
                "my long pass phrase",
            ),
            ("DB_PASSWORD='hunter2-Hunter2'", "hunter2-Hunter2"),
            ("SMTP_PASSWORD='p@ss w0rd'", "p@ss w0rd"),
            ("POSTGRES_PASSWORD: 'Tr0ub4dor&3'", "Tr0ub4dor&3"),
            ("JWT_SECRET=iloveberlin", "iloveberlin"),
            ("api_key = \"abcdefghijklmnop\"", "abcdefghijklmnop"),
            ("\"pass\": \"Zx81k3Lm9\"", "Zx81k3Lm9"),
            ("{\\\"password\\\": \\\"ab\\\\\\\"cd9\\\"}", "ab\"cd9"),
            ("Server=a;|Pwd=Zx81k3;Database=b", "Zx81k3"),
            ("x --|password Zx81k3Lm", "Zx81k3Lm"),
            ("x --|password=Zx81k3Lm y", "Zx81k3Lm"),
            ("machine h login a |password Zx81", "Zx81"),
            ("<|password>Zx81k3</password>", "Zx81k3"),
            (
                "<add key=\"|ClearTextPassword\" value=\"Zx81k3\" />",
                "Zx81k3",
            ),
            (
                "{\"name\": \"|DB_PASSWORD\", \"value\": \"Zx81k3\"}",
                "Zx81k3",
            ),
            ("- name: |DB_PASSWORD\n  value: Zx81k3Lm", "Zx81k3Lm"),
            ("ENV['|API_SECRET'] = 'Zx81k3Lm9q'", "Zx81k3Lm9q"),
            ("define('|API_SECRET', 'Zx81k3Lm9q')", "Zx81k3Lm9q"),
            ("ENV |API_SECRET Zx81k3Lm9q", "Zx81k3Lm9q"),
            ("the |password is Zx81k3Lm9q.", "Zx81k3Lm9q"),
            ("the |password is hunter2-Hunter2.", "hunter2-Hunter2"),
            (
                "    12\u{2192}|WEBHOOK_SECRET=whsec_aB3dE6gH9jK2mN5pQ8sT1vW4yZ\n    13\u{2192}LOG_LEVEL=debug",
                "whsec_aB3dE6gH9jK2mN5pQ8sT1vW4yZ",
            ),
            ("password: string = \"Zx81k3Lm9q\"", "Zx81k3Lm9q"),
            ("password: |\n  Zx81k3Lm9q\n", ""),
        ] {
            if value.is_empty() {
                continue;
            }
            assert_eq!(found(text).as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn what_stands_for_a_secret_is_none() {
        for text in [
            "PASSWORD=$DB_PASSWORD1",
            "PASSWORD=${DB_PASSWORD}",
            "PASSWORD=changeme",
            "API_KEY=your-api-key-123",
            "TOKEN=<your token>",
            "password: string",
            "password: String,",
            "token: Option<String>",
            "token = get_token2(request)",
            "password = process.env.DB_PASSWORD1",
            "password=config.password, x",
            "token: req.headers.token1",
            "tokens: 12345678",
            "max_tokens: 8192",
            "\"password\": \"Enter your password\"",
            "\"token\": \"access_token\"",
            "\"password\": \"********\"",
            "\"password\": \"[redacted: password]\"",
            "secret: a long walk",
            "password=%s",
            "--|password PASSWORD",
            "password_file=/run/secrets/x1",
            "PASSWORD=/run/secrets/x1",
            "key: primary",
            "\"key\": \"user.name.first\"",
            "token: \"constant.language\"",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
