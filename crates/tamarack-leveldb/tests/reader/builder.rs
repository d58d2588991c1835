//! Writes the files of LevelDB databases in every shape: an own reading of LevelDB's format pages, apart from the reader's code.

/// An operation of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Gives a key a value.
    Put(Vec<u8>, Vec<u8>),
    /// Removes a key.
    Delete(Vec<u8>),
}

/// A put of texts.
pub fn put(key: &str, value: &str) -> Op {
    Op::Put(key.as_bytes().to_vec(), value.as_bytes().to_vec())
}

/// A deletion of a text.
pub fn delete(key: &str) -> Op {
    Op::Delete(key.as_bytes().to_vec())
}

/// A number of seven bits a byte.
pub fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// A length and bytes.
pub fn text(bytes: &mut Vec<u8>, text: &[u8]) {
    varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text);
}

/// The checksum of `bytes` as it is stored.
pub fn masked(bytes: &[u8]) -> [u8; 4] {
    let crc = crc_fast::crc32_iscsi(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// A user's key with sequence number and kind (1 for a value).
pub fn internal(key: &[u8], sequence: u64, kind: u8) -> Vec<u8> {
    [key, &(sequence << 8 | u64::from(kind)).to_le_bytes()].concat()
}

/// A record of a log: operations from a sequence number on.
pub fn batch(sequence: u64, ops: &[Op]) -> Vec<u8> {
    let mut bytes = sequence.to_le_bytes().to_vec();
    bytes.extend_from_slice(&(ops.len() as u32).to_le_bytes());
    for op in ops {
        match op {
            Op::Put(key, value) => {
                bytes.push(1);
                text(&mut bytes, key);
                text(&mut bytes, value);
            }
            Op::Delete(key) => {
                bytes.push(0);
                text(&mut bytes, key);
            }
        }
    }
    bytes
}

/// A log or manifest under construction.
#[derive(Debug, Default, Clone)]
pub struct Log {
    pub bytes: Vec<u8>,
}

impl Log {
    const BLOCK: usize = 32768;

    /// A log of these records.
    pub fn of(records: &[Vec<u8>]) -> Vec<u8> {
        let mut log = Self::default();
        records.iter().for_each(|record| log.record(record));
        log.bytes
    }

    /// Appends a record, in as many fragments as it takes.
    pub fn record(&mut self, mut rest: &[u8]) {
        let mut is_first = true;
        loop {
            let left = Self::BLOCK - self.bytes.len() % Self::BLOCK;
            if left < 7 {
                self.bytes.extend(vec![0; left]);
                continue;
            }
            let len = rest.len().min(left - 7);
            let (data, behind) = rest.split_at(len);
            let kind = match (is_first, behind.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            self.fragment(kind, data);
            if behind.is_empty() {
                return;
            }
            (rest, is_first) = (behind, false);
        }
    }

    /// Appends a fragment of any type.
    pub fn fragment(&mut self, kind: u8, data: &[u8]) {
        self.bytes.extend_from_slice(&masked(&[&[kind], data].concat()));
        self.bytes.extend_from_slice(&(data.len() as u16).to_le_bytes());
        self.bytes.push(kind);
        self.bytes.extend_from_slice(data);
    }
}

/// An edit of a manifest under construction.
#[derive(Debug, Default, Clone)]
pub struct Edit(pub Vec<u8>);

impl Edit {
    /// One with the fields that the first edit of every manifest has.
    pub fn first(log_number: u64, next_file: u64, last_sequence: u64) -> Self {
        Self::default()
            .comparator("leveldb.BytewiseComparator")
            .number(2, log_number)
            .number(9, 0)
            .number(3, next_file)
            .number(4, last_sequence)
    }

    /// The comparator's name.
    pub fn comparator(mut self, name: &str) -> Self {
        varint(&mut self.0, 1);
        text(&mut self.0, name.as_bytes());
        self
    }

    /// A field that is a number.
    pub fn number(mut self, tag: u64, number: u64) -> Self {
        varint(&mut self.0, tag);
        varint(&mut self.0, number);
        self
    }

    /// A table that a level has now.
    pub fn add(mut self, level: u64, number: u64, table: &Table) -> Self {
        varint(&mut self.0, 7);
        varint(&mut self.0, level);
        varint(&mut self.0, number);
        varint(&mut self.0, table.bytes.len() as u64);
        text(&mut self.0, &table.smallest);
        text(&mut self.0, &table.largest);
        self
    }

    /// A table that a level has no more.
    pub fn remove(mut self, level: u64, number: u64) -> Self {
        varint(&mut self.0, 6);
        varint(&mut self.0, level);
        varint(&mut self.0, number);
        self
    }
}

/// A finished table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub bytes: Vec<u8>,
    pub smallest: Vec<u8>,
    pub largest: Vec<u8>,
    /// Offset and length of every data block.
    pub blocks: Vec<(u64, u64)>,
    /// The same of the index.
    pub index: (u64, u64),
}

/// How a table is written.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// 0, 1 or 2: plain, Snappy, Zstandard.
    pub compression: u8,
    /// Bytes after which a block ends.
    pub block_bytes: usize,
    /// Entries after which a key is written in full.
    pub restart_interval: usize,
    /// Whether there is a block where LevelDB has its filter.
    pub filter: bool,
    /// Whether the index has, for the last block, a key that is shorter and greater than its last one.
    pub short_successor: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self { compression: 1, block_bytes: 200, restart_interval: 16, filter: false, short_successor: true }
    }
}

impl Shape {
    /// The table of `entries`, internal keys in their order.
    pub fn table(self, entries: &[(Vec<u8>, Vec<u8>)]) -> Table {
        let mut bytes = Vec::new();
        let mut blocks = Vec::new();
        let mut index = Vec::new();
        let mut pending: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            pending.push(entry.clone());
            let size: usize = pending.iter().map(|(key, value)| key.len() + value.len() + 3).sum();
            let is_last = at + 1 == entries.len();
            if size < self.block_bytes && !is_last {
                continue;
            }
            let place = append(&mut bytes, self.compression, &self.block(&pending));
            let mut handle = Vec::new();
            varint(&mut handle, place.0);
            varint(&mut handle, place.1);
            let key = if is_last && self.short_successor { successor(&entry.0) } else { entry.0.clone() };
            index.push((key, handle));
            blocks.push(place);
            pending.clear();
        }
        let mut meta = Vec::new();
        if self.filter {
            let place = append(&mut bytes, 0, b"some filter\x0b\0\0\0\x0b");
            let mut handle = Vec::new();
            varint(&mut handle, place.0);
            varint(&mut handle, place.1);
            meta.push((b"filter.leveldb.BuiltinBloomFilter2".to_vec(), handle));
        }
        let meta = append(&mut bytes, 0, &self.block(&meta));
        let index = append(&mut bytes, self.compression, &Self { restart_interval: 1, ..self }.block(&index));
        footer(&mut bytes, meta, index);
        let end = |entry: Option<&(Vec<u8>, Vec<u8>)>| entry.map(|(key, _)| key.clone()).unwrap_or_default();
        Table { bytes, smallest: end(entries.first()), largest: end(entries.last()), blocks, index }
    }

    /// A block of `entries`, not compressed.
    pub fn block(self, entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
        let (mut bytes, mut restarts, mut before) = (Vec::new(), vec![0_u32], Vec::new());
        for (at, (key, value)) in entries.iter().enumerate() {
            let is_restart = at % self.restart_interval == 0;
            if is_restart && at > 0 {
                restarts.push(bytes.len() as u32);
            }
            let same = |(one, other): &(&u8, &u8)| one == other;
            let shared = if is_restart { 0 } else { key.iter().zip(&before).take_while(same).count() };
            varint(&mut bytes, shared as u64);
            varint(&mut bytes, (key.len() - shared) as u64);
            varint(&mut bytes, value.len() as u64);
            bytes.extend_from_slice(&key[shared..]);
            bytes.extend_from_slice(value);
            before = key.clone();
        }
        restarts.iter().for_each(|restart| bytes.extend_from_slice(&restart.to_le_bytes()));
        bytes.extend_from_slice(&(restarts.len() as u32).to_le_bytes());
        bytes
    }
}

/// A key that is greater than `key`, as LevelDB's index has it for the last block.
fn successor(key: &[u8]) -> Vec<u8> {
    let user = &key[..key.len() - 8];
    match user.iter().position(|&byte| byte != 0xff) {
        Some(at) if at + 1 < user.len() => {
            internal(&[&user[..at], &[user[at] + 1]].concat(), (1 << 56) - 1, 1)
        }
        _ => key.to_vec(),
    }
}

/// Appends a block with its trailer; where it is.
pub fn append(bytes: &mut Vec<u8>, compression: u8, raw: &[u8]) -> (u64, u64) {
    let stored = match compression {
        1 => snap::raw::Encoder::new().compress_vec(raw).expect("compresses"),
        2 => zstd::bulk::compress(raw, 1).expect("compresses"),
        _ => raw.to_vec(),
    };
    let place = (bytes.len() as u64, stored.len() as u64);
    let covered = [stored.as_slice(), &[compression]].concat();
    bytes.extend_from_slice(&covered);
    bytes.extend_from_slice(&masked(&covered));
    place
}

/// Appends a footer.
pub fn footer(bytes: &mut Vec<u8>, meta: (u64, u64), index: (u64, u64)) {
    let mut footer = Vec::new();
    for number in [meta.0, meta.1, index.0, index.1] {
        varint(&mut footer, number);
    }
    footer.resize(40, 0);
    footer.extend_from_slice(&0xdb47_7524_8b80_fb57_u64.to_le_bytes());
    bytes.extend_from_slice(&footer);
}

/// Operations as the entries of a table: internal keys in their order, the first with this sequence number.
pub fn entries(sequence: u64, ops: &[Op]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut sorted: Vec<_> = (sequence..).zip(ops).collect();
    let key = |op: &Op| match op {
        Op::Put(key, _) | Op::Delete(key) => key.clone(),
    };
    sorted.sort_by_key(|(sequence, op)| (key(op), std::cmp::Reverse(*sequence)));
    let entry = |(sequence, op): (u64, &Op)| match op {
        Op::Put(key, value) => (internal(key, sequence, 1), value.clone()),
        Op::Delete(key) => (internal(key, sequence, 0), Vec::new()),
    };
    sorted.into_iter().map(entry).collect()
}
