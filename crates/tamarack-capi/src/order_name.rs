//! The name under which Tamarack stores a client's order of keys.
//!
//! LevelDB takes any bytes for one, none and many too; Tamarack takes 1 to 255 bytes of text. A name that is such a text is
//! stored as it is. Others are spelled out in ASCII behind [`SPELLED`], or, where that is too long, as their beginning and
//! checksum behind [`CUT`]. No two names are stored as the same, but for checksums of 128 bits that agree.

use xxhash_rust::xxh3::xxh3_128;

/// What LevelDB calls the order of bytes. Tamarack has it by itself, and stores its own name for it: an order of this name is no client's.
pub const OF_BYTES: &[u8] = b"leveldb.BytewiseComparator";

/// Begins a name that is spelled. One that begins so, or as the next, by itself is spelled, too.
const SPELLED: &str = "bytes:";
/// Begins a name that is spelled and cut.
const CUT: &str = "cut-bytes:";
/// Longest name in bytes that Tamarack takes.
const NAME_BYTES_MAX: usize = 255;
/// Bytes of a cut name before its checksum.
const BEGINNING_BYTES: usize = 200;

/// The name stored for an order that a client calls `name`.
pub fn stored(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if (1..=NAME_BYTES_MAX).contains(&text.len()) && !is_spelled(text) => text.to_owned(),
        _ => spelled(name),
    }
}

fn is_spelled(text: &str) -> bool {
    text.starts_with(SPELLED) || text.starts_with(CUT)
}

fn spelled(name: &[u8]) -> String {
    let whole = name.escape_ascii().to_string();
    if SPELLED.len() + whole.len() <= NAME_BYTES_MAX {
        return format!("{SPELLED}{whole}");
    }
    // ASCII can be cut anywhere.
    format!("{CUT}{}...{:032x}", &whole[..BEGINNING_BYTES], xxh3_128(name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ordinary_names_are_stored_as_they_are() {
        for name in ["a", "leveldb.InternalKeyComparator", "\u{e4}", &"x".repeat(255)] {
            assert_eq!(stored(name.as_bytes()), name);
        }
    }

    #[test]
    fn other_names_are_stored_as_different_texts_that_tamarack_takes() {
        let long = |last: &[u8]| [&[b'x'; 300][..], last].concat();
        let names = [
            Vec::new(),
            b"bytes:".to_vec(),
            b"bytes:bytes:".to_vec(),
            b"cut-bytes:".to_vec(),
            stored(&long(b"a")).into_bytes(),
            b"\xff".to_vec(),
            b"bytes:\\xff".to_vec(),
            vec![0xff; 100],
            vec![b'x'; 255],
            long(b""),
            long(b"a"),
            long(b"b"),
        ];
        let all: BTreeSet<String> = names.iter().map(|name| stored(name)).collect();
        assert_eq!(all.len(), names.len(), "{all:?}");
        for name in &all {
            assert!((1..=NAME_BYTES_MAX).contains(&name.len()), "{name}");
        }
        assert_eq!(stored(b"\xff"), "bytes:\\xff");
        // What databases were created with stays.
        let beginning = "x".repeat(BEGINNING_BYTES);
        assert_eq!(stored(&long(b"a")), format!("cut-bytes:{beginning}...9ccb70ee97820410b278fc2942b194b3"));
    }
}
