//! The value that belongs to a name, in the many ways of writing one, and whether it is a secret.

mod extent;
mod group;
mod named;
mod position;
mod secret;
mod stand_in;
mod table;

use std::ops::Range;

use crate::names::Meaning;
use crate::view::View;
pub(crate) use named::Value;
use named::{NamedValue, ValueSyntax};
pub(crate) use stand_in::stands_for_one;
use table::Table;

/// A budget of the names whose surroundings are examined, so that the time grows linearly with the length of any text.
#[derive(Debug)]
pub(crate) struct NameBudget {
    table: Table,
    /// The name that was looked at last.
    at: usize,
    /// The remaining budget, in bytes.
    credit: usize,
}

impl Default for NameBudget {
    fn default() -> Self {
        Self {
            table: Table::default(),
            at: 0,
            credit: MAX_BUDGET,
        }
    }
}

/// The cost of a name whose surroundings are examined, in bytes of text, and the maximum budget.
const BYTES_PER_NAME: usize = 128;
const MAX_BUDGET: usize = 256 * BYTES_PER_NAME;

impl NameBudget {
    /// Returns whether the budget is enough for a name at `at`, and pays for it.
    fn has_budget(&mut self, at: usize) -> bool {
        let credit = self.credit + at.saturating_sub(self.at);
        self.at = self.at.max(at);
        self.credit = credit.min(MAX_BUDGET);
        let may = self.credit >= BYTES_PER_NAME;
        self.credit = self.credit.saturating_sub(BYTES_PER_NAME);
        may
    }
}

/// Returns where values of a name may start that stand apart from it.
type FindCandidates = fn(&NamedValue<'_>) -> Vec<(usize, ValueSyntax)>;

/// Returns the secrets that belong to a name with this meaning, and the values that only look like one.
pub(crate) fn values_of(
    view: &View,
    name: &Range<usize>,
    meaning: Meaning,
    around: &mut NameBudget,
) -> Vec<Value> {
    let named = NamedValue::new(view, name, meaning);
    let mut values = Vec::new();
    let position = named.position();
    if let Some((at, way)) = position {
        let (at, way) = named.behind_type(at, way);
        if named.is_mask(at) {
            return values;
        }
        values.extend(named.classify(at, way));
        // Most values stand alone.
        let is_only_value = !values.is_empty() && !named.continues(&values[0]);
        if is_only_value || named.is_literal(at) || !around.has_budget(name.start) {
            return values;
        }
        values.clear();
        named.add_values(at, way, &mut values);
    } else if !around.has_budget(name.start) {
        return values;
    }
    let looks: [FindCandidates; 6] = [
        |named| named.siblings(),
        |named| named.input().into_iter().collect(),
        |named| named.of_user().into_iter().collect(),
        |named| named.compared().into_iter().collect(),
        |named| named.argument().into_iter().collect(),
        |named| named.sentence().into_iter().collect(),
    ];
    for look in looks {
        if !values.is_empty() {
            return values;
        }
        let places = look(&named).into_iter();
        values.extend(places.filter_map(|(at, way)| named.classify(at, way)));
    }
    if values.is_empty() {
        values = named.column(&mut around.table);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{meaning, name_around};

    /// Returns the value of the name at the start of a text, or behind `|`.
    fn found(text: &str) -> Option<String> {
        let mut view = View::of_text();
        let start = text.find('|').map_or(0, |at| at + 1);
        let text = text.replacen('|', "", 1);
        let start = start.saturating_sub(1);
        let skip = text[start..]
            .find(|character: char| character.is_ascii_alphanumeric() || character == '_')
            .unwrap();
        view.decode(text.as_bytes());
        let name = name_around(view.text(), &(start + skip..start + skip + 1));
        let meaning = meaning(&view.text()[name.clone()])?;
        let values = values_of(&view, &name, meaning, &mut NameBudget::default()).into_iter();
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
            ("|password: |\n  Zx81k3Lm9q\n", "Zx81k3Lm9q"),
            ("password: &pw Zx81k3Lm9q", "Zx81k3Lm9q"),
            ("|password[25] = \"Zx81k3\";", "Zx81k3"),
            ("[|password] => Zx81k3Lm", "Zx81k3Lm"),
            ("[\"|password\"]=>\n  string(8) \"Zx81k3Lm\"", "Zx81k3Lm"),
            ("password: Some(\"Zx81k3Lm\")", "Zx81k3Lm"),
            ("password = MD5('Zx81k3Lm')", "Zx81k3Lm"),
            ("WITH |PASSWORD = N'Zx81k3Lm'", "Zx81k3Lm"),
            ("Password { get; set; } = \"Zx81k3Lm\";", "Zx81k3Lm"),
            ("var |dbPassword string = \"Zx81k3Lm\"", "Zx81k3Lm"),
            ("if params.|secret != 'Zx81k3Lm'", "Zx81k3Lm"),
            ("if \"Zx81k3Lm\" == |password {", "Zx81k3Lm"),
            ("api_key <- \"Zx81k3Lm9qa\"", "Zx81k3Lm9qa"),
            ("<|password><value>Zx81k3Lm</value>", "Zx81k3Lm"),
            (
                "<key>|password</key>\n<string>Zx81k3Lm</string>",
                "Zx81k3Lm",
            ),
            ("? |password\n: Zx81k3Lm", "Zx81k3Lm"),
        ] {
            assert_eq!(found(text).as_deref(), Some(value), "{text}");
        }
    }

    #[test]
    fn values_are_found_that_are_several_or_stand_apart_from_their_name() {
        for (text, values) in [
            (
                "passwords: [\"Zx81k3Lm\", \"Yx72k4Ln\"]",
                "Zx81k3Lm Yx72k4Ln",
            ),
            (
                "passwords:\n  - Zx81k3Lm\n  - Yx72k4Ln\n",
                "Zx81k3Lm Yx72k4Ln",
            ),
            (
                "\"|db_password\": {\"sensitive\": true, \"value\": \"Zx81k3Lm\"}",
                "Zx81k3Lm",
            ),
            (
                "{\"value\": \"Zx81k3Lm\", \"name\": \"|x-api-key\"}",
                "Zx81k3Lm",
            ),
            (
                "{\"element\": \"|Password field\", \"ref\": \"e1\", \"text\": \"Zx81k3Lm\"}",
                "Zx81k3Lm",
            ),
            (
                "password = \"Zx81k3Lm\" -> \"Yx72k4Ln\"",
                "Zx81k3Lm Yx72k4Ln",
            ),
            (
                "password = (\n  \"Zx81k3Lm\"\n  \"Yx72k4Ln\"\n)",
                "Zx81k3Lm Yx72k4Ln",
            ),
            (
                "password = live ? 'Zx81k3Lm' : 'Yx72k4Ln'",
                "Zx81k3Lm Yx72k4Ln",
            ),
            ("ENV.fetch('|DB_PASSWORD') { 'Zx81k3Lm' }", "Zx81k3Lm"),
            ("page.fill('#|password', 'Sommer12')", "Sommer12"),
            ("getByLabel('|Password').fill('Sommer12')", "Sommer12"),
            ("the |password for bob is \"Sommer12\"", "Sommer12"),
            (
                "A temporary |password is generated for root@localhost: Zx81k3Lm",
                "Zx81k3Lm",
            ),
            (
                "use this |password:\n\n0a1b2c3d4e5f60718293a4b5c6d7e8f9\n",
                "0a1b2c3d4e5f60718293a4b5c6d7e8f9",
            ),
            (
                "id,name,|password\n1,bob,Zx81k3\n2,eve,Yx72k4\n",
                "Zx81k3 Yx72k4",
            ),
            (
                " id | |password \n----+---------\n  1 | Zx81k3  \n",
                "Zx81k3",
            ),
            (
                "insert into users (id, |password) values (1, 'Zx81k3'), (2, 'Yx72k4');",
                "Zx81k3 Yx72k4",
            ),
            (
                "COPY users (id, |password) FROM stdin;\n1\tZx81k3\n2\tYx72k4\n\\.",
                "Zx81k3 Yx72k4",
            ),
            ("db.|password = zauber wald 9 blume", "zauber wald 9 blume"),
            ("BASIC_|AUTH=admin:Sommer12", "admin:Sommer12"),
            ("|creds are admin / Sommer12", "Sommer12"),
            ("la |contrasena es Sommer12", "Sommer12"),
            ("db.|password:\n----\nSommer12\n", "Sommer12"),
            ("{ name: '|Password' }).fill('Sommer12');", "Sommer12"),
            ("- textbox \"|Password\" [ref=e12]: Sommer12", "Sommer12"),
            ("querySelector('#|password').value = 'Sommer12'", "Sommer12"),
            ("<input value=\"Sommer12\" type=\"|password\">", "Sommer12"),
            ("type(getByLabelText(/|password/i), 'Sommer12')", "Sommer12"),
            ("\"What is the |password?\"=\"Sommer12\"", "Sommer12"),
            (
                "ParameterKey=|DbPassword,ParameterValue=Sommer12",
                "Sommer12",
            ),
            ("TF_VAR_|db_password=Sommer12 terraform plan", "Sommer12"),
        ] {
            assert_eq!(found(text).as_deref(), Some(values), "{text}");
        }
    }

    #[test]
    fn harmless_texts_near_a_name_are_not_secrets() {
        for text in [
            "'|Password: ', stream=None):",
            "'New |password: ')\n  confirmed('",
            "passwords: [\"one\", \"two\"]",
            "('user', '|password', 'email1')",
            "{\"name\": \"|password\", \"default\": \"none\"}",
            "password = live ? first : second",
            "r'get|password|'\n   r'setpassword'",
            "self._|passphrase = passphrase",
            "token = r'[^\\W\\d]\\w*'",
            "e.|CancellationToken=e.Source=e.Emitter=e.Event",
            "the |password is wrong in version2",
            "    |Ed25519PrivateKey,\n    Ed25519PublicKey,\n",
            " app/|password_controller.rb | 116 --\n app/x1/users_controller2.rb | 22 -\n",
            "password: must have 8 characters",
            "|password = password.encode(\"utf-8\")",
            "\"forgot_|password\": \"Passwort vergessen?\"",
            "the |password is hashed with Argon2id",
            "child.expect(\"|password: \", timeout=5)",
            "two-|pass memchr2+SWAR code",
            "change_|passphrase = \"ssh-keygen -o -p\"",
            "nid_|key = self._lib.NID_pbe_WithSHA1And3_Key",
            "{\"a\": \"mail.|password: \", \"b\": [\"x\"]}",
            "{\"value\": \"Zx81k3Lm\", \"db_|password\": \"[redacted: password]\"}",
            "[redacted: |password] {\"value\": \"Zx81k3Lm\"}",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn stand_ins_for_secrets_are_not_secrets() {
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
            "|password: required|min:8",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
