//! What is kept of a failure: the image, as a sparse file, and beside it what must be found on it; and the command that tries
//! it once more. The order in which a file system writes is another every time, so a seed alone does not bring it back.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::content::Content;
use crate::disk::DISK_BYTES;
use crate::facts::Bounds;

/// Where failures are kept.
pub struct Evidence(pub PathBuf);

/// An image that was kept, and what must be found on it.
pub struct Kept {
    /// The kind of the file system on it.
    pub kind: String,
    /// The seed of its batches.
    pub seed: u64,
    /// What must be found.
    pub bounds: Bounds,
    /// The disk.
    pub content: Content,
}

impl Evidence {
    /// Tells of something wrong without an image.
    pub fn tell(&self, kind: &str, seed: u64, why: &str) {
        eprintln!("{kind}, seed {seed}: {why}");
        eprintln!("the same batches: cargo xtask blocks --file-system {kind} --seeds 1 --seed {seed}");
    }

    /// Tells of a loss and keeps its image.
    pub fn keep(&self, kind: &str, seed: u64, content: &Content, bounds: &Bounds, why: &str) {
        self.tell(kind, seed, why);
        let path = self.0.join(format!("{kind}-{seed}-{:016x}.image", content.digest()));
        match self.write(&path, content, &format!("{kind} {seed} {bounds}")) {
            Ok(()) => eprintln!("this image: cargo xtask blocks --image {}", path.display()),
            Err(error) => eprintln!("the image cannot be kept in {}: {error}", path.display()),
        }
    }

    fn write(&self, path: &Path, content: &Content, note: &str) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        let file = File::create(path)?;
        file.set_len(DISK_BYTES)?;
        for (offset, bytes) in content.blocks() {
            file.write_all_at(bytes, offset)?;
        }
        std::fs::write(note_path(path), note)
    }
}

impl Kept {
    /// Reads what was kept.
    ///
    /// # Errors
    /// Those of the files; `InvalidData` if the note is none.
    pub fn read(path: &Path) -> io::Result<Self> {
        let note = std::fs::read_to_string(note_path(path))?;
        let invalid =
            || io::Error::new(io::ErrorKind::InvalidData, format!("{note:?} is no note of an image"));
        let [kind, seed, bounds] = note.split(' ').collect::<Vec<_>>()[..] else { return Err(invalid()) };
        let (seed, bounds) = (seed.parse().map_err(|_| invalid())?, bounds.parse().map_err(|_| invalid())?);
        let (file, mut content) = (File::open(path)?, Content::default());
        let mut bytes = vec![0; 1 << 20];
        for offset in (0..DISK_BYTES).step_by(bytes.len()) {
            file.read_exact_at(&mut bytes, offset)?;
            if bytes.iter().any(|byte| *byte != 0) {
                content.write(offset, &bytes);
            }
        }
        Ok(Self { kind: kind.to_owned(), seed, bounds, content })
    }
}

fn note_path(image: &Path) -> PathBuf {
    image.with_extension("note")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_read_as_it_was_kept() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut content = Content::default();
        content.write(5000, &[7; 9000]);
        content.write(DISK_BYTES - 512, &[1; 512]);
        let bounds = Bounds { least: 3, most: 9, copies: vec![2] };
        let evidence = Evidence(directory.path().join("kept"));
        evidence.keep("ext4", 12, &content, &bounds, "a trial");
        let files =
            std::fs::read_dir(&evidence.0).expect("is there").map(|entry| entry.expect("is read").path());
        let image = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "image"));
        let kept = Kept::read(&image.expect("an image was kept")).expect("is read");
        assert_eq!((kept.kind.as_str(), kept.seed, kept.bounds), ("ext4", 12, bounds));
        assert_eq!(kept.content.digest(), content.digest());
    }
}
