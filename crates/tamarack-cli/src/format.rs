//! Text forms of keys and values: how bytes become text on the way out and bytes again on the way in.
//!
//! Nothing is ever lost silently. Bytes that are not UTF-8 are shown in hexadecimal and say so: on a line as
//! `hex:00ff`, in JSON under a name that ends in `_hex`. Text that could be taken for a marked form is quoted
//! like a JSON string, so each printed form stands for exactly one sequence of bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use crate::failure::{Failure, Result};

/// How a key or value is written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Encoding {
    /// The text itself. On output, bytes that are not UTF-8 are marked and shown as hex
    #[default]
    Utf8,
    /// Two hexadecimal digits per byte
    Hex,
    /// Standard base64 with padding
    Base64,
}

/// The encodings of keys and values, as given on the command line.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Encodings {
    /// How keys are written, on the command line and in the output
    #[arg(id = "key_format", long = "key-format", value_enum, default_value_t, value_name = "FORMAT")]
    pub key: Encoding,
    /// How values are written, on the command line and in the output
    #[arg(id = "value_format", long = "value-format", value_enum, default_value_t, value_name = "FORMAT")]
    pub value: Encoding,
}

impl Encoding {
    /// The bytes that `text` stands for; `what` names it in the error.
    pub fn decode(self, text: &str, what: &str) -> Result<Vec<u8>> {
        let wrong = |form: &str, why: String| Failure::Usage(format!("the {what} is not {form}: {why}"));
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Hex => hex::decode(text).map_err(|error| wrong("hex", error.to_string())),
            Self::Base64 => STANDARD.decode(text).map_err(|error| wrong("base64", error.to_string())),
        }
    }

    /// The text for `bytes` without any mark, or `None` if this encoding cannot express them.
    pub fn encode_exact(self, bytes: &[u8]) -> Option<String> {
        match self {
            Self::Utf8 => std::str::from_utf8(bytes).ok().map(str::to_owned),
            Self::Hex => Some(hex::encode(bytes)),
            Self::Base64 => Some(STANDARD.encode(bytes)),
        }
    }

    /// A form that fits one line and holds no control characters: the text; or a JSON string if the text has
    /// control characters or looks like a marked form; or `hex:` and digits if the bytes are not UTF-8.
    pub fn line(self, bytes: &[u8]) -> String {
        self.marked(bytes, |text| text.chars().any(char::is_control))
    }

    /// Like [`Encoding::line`], but text with control characters (line ends above all) stays as it is.
    pub fn block(self, bytes: &[u8]) -> String {
        self.marked(bytes, |_| false)
    }

    fn marked(self, bytes: &[u8], must_quote: impl Fn(&str) -> bool) -> String {
        match self.encode_exact(bytes) {
            None => format!("hex:{}", hex::encode(bytes)),
            Some(text) if self != Self::Utf8 => text,
            Some(text) if text.starts_with(['"']) || text.starts_with("hex:") || must_quote(&text) => {
                quoted(text)
            }
            Some(text) => text,
        }
    }

    /// The name of a field or column that holds `name` in this encoding: `key`, `key_hex`, `key_base64`.
    pub fn field_name(self, name: &str) -> String {
        match self {
            Self::Utf8 => name.to_owned(),
            Self::Hex => format!("{name}_hex"),
            Self::Base64 => format!("{name}_base64"),
        }
    }

    /// The reverse of [`Encoding::field_name`]: which encoding `field` announces for `name`.
    pub fn of_field(field: &str, name: &str) -> Option<Self> {
        match field.strip_prefix(name)? {
            "" => Some(Self::Utf8),
            "_hex" => Some(Self::Hex),
            "_base64" => Some(Self::Base64),
            _ => None,
        }
    }

    /// Puts `bytes` into a JSON object as `name`, or as `name_hex` when they are not UTF-8.
    pub fn insert_json(self, object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
        let (encoding, text) = match self.encode_exact(bytes) {
            Some(text) => (self, text),
            None => (Self::Hex, hex::encode(bytes)),
        };
        object.insert(encoding.field_name(name), Value::String(text));
    }
}

/// `text` as a JSON string without control characters: JSON itself lets some of them stand.
fn quoted(text: String) -> String {
    let mut form = String::new();
    for character in Value::String(text).to_string().chars() {
        if character.is_control() {
            form += &format!("\\u{:04x}", u32::from(character));
        } else {
            form.push(character);
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a marked form back; only tests need to.
    fn parse_marked(form: &str) -> Vec<u8> {
        if let Some(digits) = form.strip_prefix("hex:") {
            hex::decode(digits).expect("a marked form has hex digits")
        } else if form.starts_with('"') {
            serde_json::from_str::<String>(form).expect("a quoted form is a JSON string").into_bytes()
        } else {
            form.as_bytes().to_vec()
        }
    }

    fn bytes_or_text() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            any::<Vec<u8>>(),
            any::<String>().prop_map(String::into_bytes),
            "(hex:|\")[a-f0-9\"\\\\\n]{0,6}".prop_map(String::into_bytes),
        ]
    }

    proptest! {
        #[test]
        fn every_encoding_gives_the_bytes_back(bytes in any::<Vec<u8>>(), text in any::<String>()) {
            for encoding in [Encoding::Hex, Encoding::Base64] {
                let form = encoding.encode_exact(&bytes).expect("expresses all bytes");
                prop_assert_eq!(encoding.decode(&form, "key").expect("its own output"), bytes.clone());
            }
            let form = Encoding::Utf8.encode_exact(text.as_bytes()).expect("is UTF-8");
            prop_assert_eq!(Encoding::Utf8.decode(&form, "key").expect("is UTF-8"), text.into_bytes());
        }

        #[test]
        fn marked_forms_stand_for_one_sequence_of_bytes(bytes in bytes_or_text()) {
            let line = Encoding::Utf8.line(&bytes);
            prop_assert!(!line.chars().any(char::is_control));
            prop_assert_eq!(parse_marked(&line), bytes.clone());
            prop_assert_eq!(parse_marked(&Encoding::Utf8.block(&bytes)), bytes);
        }

        #[test]
        fn json_fields_name_their_encoding(bytes in bytes_or_text()) {
            for asked in [Encoding::Utf8, Encoding::Hex, Encoding::Base64] {
                let mut object = Map::new();
                asked.insert_json(&mut object, "value", &bytes);
                let (name, text) = object.iter().next().expect("one field");
                let used = Encoding::of_field(name, "value").expect("a known suffix");
                let text = text.as_str().expect("a string");
                prop_assert_eq!(used.decode(text, "value").expect("its own output"), bytes.clone());
            }
        }
    }

    #[test]
    fn plain_text_stays_plain() {
        assert_eq!(Encoding::Utf8.line("grüße".as_bytes()), "grüße");
        assert_eq!(Encoding::Utf8.line(b"a\nb"), "\"a\\nb\"");
        assert_eq!(Encoding::Utf8.line("\u{7f}\u{9b}2J".as_bytes()), "\"\\u007f\\u009b2J\"");
        assert_eq!(Encoding::Utf8.block(b"a\nb"), "a\nb");
        assert_eq!(Encoding::Utf8.line(b"\xff\0"), "hex:ff00");
        assert_eq!(Encoding::Utf8.line(b"hex:00"), "\"hex:00\"");
        assert!(matches!(Encoding::Hex.decode("0g", "key"), Err(Failure::Usage(_))));
    }
}
