//! LMDB. Each write is a transaction of its own, which reaches the kernel when it is committed, and the device then, too, where all are to be synced; or else
//! when a sync is asked for.

use std::path::Path;
use std::time::Duration;

use heed::types::Bytes;
use heed::{
    CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, Error, RoRange, RoRevRange, RoTxn, WithTls,
};
use self_cell::self_cell;
use tamarack_bench::{Change, Cursor, KeyRange, Store, Written};

/// An open environment with one database.
pub struct Lmdb {
    env: Env,
    /// Each commit is synced, as LMDB does by itself.
    syncs_all: bool,
    entries: Database<'static, Bytes, Bytes>,
}

/// Opens one, which need not be there. The map must be as large as the file will ever be, and costs addresses alone: it is as large as the
/// file system. With `syncs_all` all commits are synced, and those of others none but on request. The kernel reads ahead, as it does by itself, only where what is
/// read next lies behind it, if there are `walks`.
pub fn open(path: &Path, syncs_all: bool, walks: bool) -> Result<Lmdb, String> {
    let space = rustix::fs::statvfs(path).map_err(|error| error.to_string())?;
    let map_bytes = usize::try_from(space.f_blocks * space.f_frsize).map_err(|error| error.to_string())?;
    let mut flags = EnvFlags::empty();
    flags.set(EnvFlags::NO_SYNC, !syncs_all);
    flags.set(EnvFlags::NO_READ_AHEAD, !walks);
    let open = || {
        let mut options = EnvOpenOptions::new();
        options.map_size(map_bytes / PAGE_BYTES * PAGE_BYTES);
        // SAFETY: what is not synced may be lost with the power, and is not read back after that.
        unsafe { options.flags(flags) };
        // SAFETY: nobody else changes the file while it is mapped.
        let env = unsafe { options.open(path) }?;
        let created = env.create_databases_and_commit(env.write_txn()?, |opener, transaction| {
            opener.create_database(transaction, None).map(CommitOrAbort::<_, ()>::Commit)
        });
        let entries = created?.unwrap_commit();
        heed::Result::Ok(Lmdb { env, syncs_all, entries })
    };
    open().map_err(|error| error.to_string())
}

/// The map's size must be a multiple of the system's pages; this is one of all that exist.
const PAGE_BYTES: usize = 64 << 10;

impl Lmdb {
    fn change(&self, changes: &[Change<'_>], sync: bool) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        for change in changes {
            match change {
                Change::Put(key, value) => self.entries.put(&mut transaction, key, value)?,
                Change::Delete(key) => {
                    self.entries.delete(&mut transaction, key)?;
                }
            }
        }
        transaction.commit()?;
        if sync && !self.syncs_all { self.env.force_sync() } else { Ok(()) }
    }
}

impl Store for Lmdb {
    type Error = Error;
    type Cursor<'a> = Walk;

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), Error> {
        self.change(&[Change::Put(key, value)], sync)
    }

    fn delete(&self, key: &[u8], sync: bool) -> Result<(), Error> {
        self.change(&[Change::Delete(key)], sync)
    }

    fn write(&self, changes: &[Change<'_>], sync: bool) -> Result<(), Error> {
        self.change(changes, sync)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Error> {
        let transaction = self.env.read_txn()?;
        value.clear();
        Ok(self.entries.get(&transaction, key)?.is_some_and(|found| {
            value.extend_from_slice(found);
            true
        }))
    }

    fn multi_get(&self, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let transaction = self.env.read_txn()?;
        keys.iter().map(|key| Ok(self.entries.get(&transaction, key)?.map(<[u8]>::to_vec))).collect()
    }

    fn walk(&self, range: KeyRange<'_>, backward: bool) -> Result<Walk, Error> {
        let transaction = self.env.clone().static_read_txn()?;
        Walk::try_new(transaction, |transaction| {
            let iter = if backward {
                Direction::Backward(self.entries.rev_range(transaction, &range)?)
            } else {
                Direction::Forward(self.entries.range(transaction, &range)?)
            };
            Ok(Place { iter, entry: None })
        })
    }

    fn settle(&self) -> Result<Duration, Error> {
        self.env.force_sync().map(|()| Duration::ZERO)
    }

    fn written(&self) -> Option<Written> {
        None
    }
}

type Transaction = RoTxn<'static, WithTls>;

self_cell!(
    /// A walk through the database, within a transaction of its own.
    pub struct Walk {
        owner: Transaction,
        #[not_covariant]
        dependent: Place,
    }
);

/// Where a walk is.
struct Place<'a> {
    iter: Direction<'a>,
    entry: Option<(&'a [u8], &'a [u8])>,
}

enum Direction<'a> {
    Forward(RoRange<'a, Bytes, Bytes>),
    Backward(RoRevRange<'a, Bytes, Bytes>),
}

impl Cursor for Walk {
    type Error = Error;

    fn advance(&mut self) -> Result<bool, Error> {
        self.with_dependent_mut(|_, place| {
            let next = match &mut place.iter {
                Direction::Forward(iter) => iter.next(),
                Direction::Backward(iter) => iter.next(),
            };
            place.entry = next.transpose()?;
            Ok(place.entry.is_some())
        })
    }

    fn key(&self) -> &[u8] {
        self.with_dependent(|_, place| place.entry.map(|(key, _)| key).unwrap_or_default())
    }

    fn value(&mut self) -> Result<&[u8], Error> {
        Ok(self.with_dependent(|_, place| place.entry.map(|(_, value)| value).unwrap_or_default()))
    }
}
