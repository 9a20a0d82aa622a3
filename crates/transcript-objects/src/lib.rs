//! A disk over object storage: S3, Google Cloud Storage, Azure, and servers that speak S3.
//!
//! [`ObjectDisk`] is a [`Disk`](transcript_storage::Disk) whose files are objects. What an object store cannot do is refused as
//! [`Unsupported`](std::io::ErrorKind::Unsupported): appending, renaming, locks. What it can do that a file system cannot:
//!
//! - A file appears as a whole, or not at all, with all of its bytes on disks of the store.
//! - [`replace_version`](transcript_storage::Disk::replace_version) replaces an object only if no other program did meanwhile.
//! - A list has the lengths, times and identities of the files.
//!
//! An [`Address`] names a bucket and a prefix in it: `s3://BUCKET/PREFIX`. Credentials come from the environment, as for other
//! programs; no error and no `Debug` of this crate has one.
//!
//! ```no_run
//! use transcript_objects::{Address, ObjectDisk};
//! use transcript_storage::ReadDisk;
//!
//! let address: Address = "s3://my-bucket/archive?region=eu-central-1".parse()?;
//! let disk = ObjectDisk::connect(&address)?;
//! for entry in disk.list(&address.folder())? {
//!     println!("{}", entry?.name.display());
//! }
//! println!("{}", disk.requests());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod address;
mod connect;
mod disk;
mod error;
mod new_object;
mod object_file;
mod profile;
mod requests;
mod runtime;
mod store;

pub use address::{Address, AddressError, Scheme, local_folder};
pub use disk::ObjectDisk;
pub use requests::Requests;

/// The README, as a doctest, so that its examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
