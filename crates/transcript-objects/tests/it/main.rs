//! Tests of the disk, over a store in memory and over a server that speaks S3.

mod archives;
mod disks;
mod requests;
mod server;
mod stores;
mod versions;
