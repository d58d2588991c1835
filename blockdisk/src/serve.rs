//! The disk as a file: a file system with two files, the image of the disk that is in, and the position in its log.
//!
//! The image has the disk's number as its name, and is never cached, so that what a loop device does to it arrives here at
//! once. The position is eight bytes, little-endian; who reads it learns how far the log is at that moment. The thread that
//! answers waits for nobody but the disk's own lock.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use crate::disk::{DISK_BYTES, Disk, Entry};

/// The name of the file that tells the position.
pub const POSITION: &str = "position";

const POSITION_INODE: u64 = 2;
/// The inode of the image of disk 0; others follow.
const FIRST_IMAGE: u64 = 3;
/// Nothing about a file may be remembered: another disk may be put in at any moment.
const LIFETIME: Duration = Duration::ZERO;

/// `FALLOC_FL_KEEP_SIZE`, `FALLOC_FL_PUNCH_HOLE` and `FALLOC_FL_ZERO_RANGE`.
const KEEP_SIZE: i32 = 1;
const PUNCH_HOLE: i32 = 2;
const ZERO_RANGE: i32 = 16;

struct Server(Disk);

/// Serves `disk` in the directory `mount` until what is returned is dropped.
///
/// # Errors
/// Those of the mount.
pub fn serve(disk: &Disk, mount: &Path) -> io::Result<BackgroundSession> {
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("tamarack-blockdisk".to_owned())];
    fuser::spawn_mount(Server(disk.clone()), mount, &config)
}

impl Server {
    fn attributes(&self, inode: u64) -> Option<FileAttr> {
        let (kind, perm, size) = match inode {
            1 => (FileType::Directory, 0o700, 0),
            POSITION_INODE => (FileType::RegularFile, 0o400, 8),
            _ if inode == FIRST_IMAGE + self.0.number() => (FileType::RegularFile, 0o600, DISK_BYTES),
            _ => return None,
        };
        Some(FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Does something to the image with that inode; false if that disk is out.
    fn act(&self, inode: INodeNo, entry: Entry) -> bool {
        u64::from(inode).checked_sub(FIRST_IMAGE).is_some_and(|number| self.0.act(number, entry))
    }

    fn answer(done: bool, reply: ReplyEmpty) {
        if done { reply.ok() } else { reply.error(Errno::EIO) }
    }
}

impl Filesystem for Server {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let inode = match name.to_str() {
            Some(POSITION) => Some(POSITION_INODE),
            Some(name) => name.parse::<u64>().ok().and_then(|number| number.checked_add(FIRST_IMAGE)),
            None => None,
        };
        match inode.and_then(|inode| self.attributes(inode)) {
            Some(attributes) => reply.entry(&LIFETIME, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode.into()) {
            Some(attributes) => reply.attr(&LIFETIME, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Programs that make file systems set the size and the times of what they write to; a disk has neither.
    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u32>,
        _: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<std::time::SystemTime>,
        handle: Option<FileHandle>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<std::time::SystemTime>,
        _: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        self.getattr(request, inode, handle, reply);
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let inode = u64::from(inode);
        if inode == POSITION_INODE {
            return reply.data(&self.0.position().to_le_bytes());
        }
        let len = DISK_BYTES.saturating_sub(offset).min(u64::from(size));
        let mut bytes = vec![0; len as usize];
        match inode.checked_sub(FIRST_IMAGE) {
            Some(number) if self.0.read(number, offset, &mut bytes) => reply.data(&bytes),
            _ => reply.error(Errno::EIO),
        }
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if offset + data.len() as u64 > DISK_BYTES {
            return reply.error(Errno::ENOSPC);
        }
        if self.act(inode, Entry::Write(offset, data.into())) {
            reply.written(data.len() as u32);
        } else {
            reply.error(Errno::EIO);
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, inode: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        Self::answer(self.act(inode, Entry::Flush), reply);
    }

    fn fallocate(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match mode & !KEEP_SIZE {
            PUNCH_HOLE | ZERO_RANGE => {
                let len = length.min(DISK_BYTES.saturating_sub(offset));
                Self::answer(self.act(inode, Entry::Clear(offset, len)), reply);
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
