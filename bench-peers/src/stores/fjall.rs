//! fjall, with values among the keys or in blob files.

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Error, Iter, Keyspace, KeyspaceCreateOptions, KvPair, KvSeparationOptions,
    PersistMode,
};
use tamarack_bench::{Change, Cursor, KeyRange, Store, Written};

use super::{SEPARATED_BYTES_MIN, Setting, rest};

/// An open database.
pub struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

/// Opens one, which need not be there.
pub fn open(path: &Path, setting: Setting, blobs: bool) -> Result<Fjall, String> {
    let open = || {
        let mut builder = Database::builder(path).journal_compression(CompressionType::None);
        if let Some(bytes) = setting.cache_bytes {
            builder = builder.cache_size(bytes as u64);
        }
        let database = builder.open()?;
        let options = || {
            let options = KeyspaceCreateOptions::default()
                .data_block_compression_policy(CompressionPolicy::all(CompressionType::None));
            let separation = KvSeparationOptions::default()
                .separation_threshold(SEPARATED_BYTES_MIN)
                .compression(CompressionType::None);
            options.with_kv_separation(blobs.then_some(separation))
        };
        let keyspace = database.keyspace("entries", options)?;
        fjall::Result::Ok(Fjall { database, keyspace })
    };
    open().map_err(|error| error.to_string())
}

impl Fjall {
    fn sync_if(&self, sync: bool) -> fjall::Result<()> {
        if sync { self.database.persist(PersistMode::SyncData) } else { Ok(()) }
    }
}

impl Store for Fjall {
    type Error = Error;
    type Cursor<'a> = Walk;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), Error> {
        self.keyspace.insert(key, value)?;
        self.sync_if(sync)
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), Error> {
        self.keyspace.remove(key)?;
        self.sync_if(sync)
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), Error> {
        let mut batch = self.database.batch();
        // By itself a batch is handed to the kernel when it is committed.
        if sync {
            batch = batch.durability(Some(PersistMode::SyncData));
        }
        for change in changes {
            match change {
                Change::Put(key, value) => batch.insert(&self.keyspace, *key, *value),
                Change::Delete(key) => batch.remove(&self.keyspace, *key),
            }
        }
        batch.commit()
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let found = self.keyspace.get(key)?;
        value.clear();
        Ok(found.is_some_and(|found| {
            value.extend_from_slice(&found);
            true
        }))
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        keys.iter().map(|key| Ok(self.keyspace.get(key)?.map(|value| value.to_vec()))).collect()
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Walk, Error> {
        let own = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
        let iter = self.keyspace.range::<Vec<u8>, _>((own(range.0), own(range.1)));
        Ok(Walk { iter, backward, entry: None })
    }

    fn settle(&self) -> Result<Duration, Error> {
        self.database.persist(PersistMode::SyncAll)?;
        let is_busy = || self.database.outstanding_flushes() > 0 || self.database.active_compactions() > 0;
        Ok(rest::wait(is_busy))
    }

    fn written(&self) -> Option<Written> {
        None
    }
}

/// A walk through the database.
pub struct Walk {
    iter: Iter,
    backward: bool,
    entry: Option<KvPair>,
}

impl Cursor for Walk {
    type Error = Error;

    fn advance(&mut self) -> Result<bool, Error> {
        let guard = if self.backward { self.iter.next_back() } else { self.iter.next() };
        self.entry = guard.map(fjall::Guard::into_inner).transpose()?;
        Ok(self.entry.is_some())
    }

    fn key(&self) -> &[u8] {
        self.entry.as_ref().map(|(key, _)| &**key).unwrap_or_default()
    }

    fn value(&mut self) -> Result<&[u8], Error> {
        Ok(self.entry.as_ref().map(|(_, value)| &**value).unwrap_or_default())
    }
}
