//! The changes that a disk reports.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A change that is reported. It is a reason to look: it may come late, twice or for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The content or a property of a file.
    Content(PathBuf),
    /// A name: something was created, renamed or removed, or may have been.
    Name(PathBuf),
    /// Anything: reports were lost.
    Any,
}

/// The reporter of the changes of a disk.
#[derive(Clone)]
pub enum Reporter {
    /// There is no reporter: files are polled.
    Unavailable,
    /// The system: the paths are those of the file system of this machine. A caller that can subscribe to its
    /// events does so.
    System,
    /// The disk itself.
    Disk(Arc<dyn Changes>),
}

/// Is called with changes, from any thread. It must not wait.
pub type OnChange = Arc<dyn Fn(&[Change]) + Send + Sync>;

/// Reports the changes of a disk, such as a store that notifies its clients.
pub trait Changes: Send + Sync {
    /// Starts a subscription to nothing yet; `None` if there is no room for another one.
    fn subscribe(&self, on_change: OnChange) -> Option<Box<dyn Subscription>>;
}

/// A subscription to changes. It ends when it is dropped.
pub trait Subscription: Send + Sync {
    /// Reports changes in these folders from now on, and in no others. The caller looks at what is in them afterwards:
    /// what happened before was not reported.
    fn keep(&self, folders: &[WatchedFolder]) -> Coverage;
}

/// A folder in which changes are to be reported, as it is named by the subscriber; the changes are named in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WatchedFolder {
    /// The folder. Changes of itself are reported as well.
    pub path: PathBuf,
    /// Whether changes in folders below it are reported.
    pub is_recursive: bool,
}

impl WatchedFolder {
    /// Returns whether a change of `path` is to be reported.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        let below = path.strip_prefix(&self.path);
        below.is_ok_and(|below| self.is_recursive || below.components().count() <= 1)
    }
}

/// The coverage of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Whether changes are reported in everything that is wanted.
    pub is_whole: bool,
    /// Whether all changes are reported, as far as is known.
    pub is_trusted: bool,
}

/// The subscriptions to a disk that reports its changes itself. Clones have the same ones.
#[derive(Clone, Default)]
pub struct Subscribers(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    last: u64,
    all: BTreeMap<u64, Subscriber>,
}

struct Subscriber {
    on_change: OnChange,
    folders: Vec<WatchedFolder>,
}

impl fmt::Debug for Subscribers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} subscribers", self.lock().all.len())
    }
}

impl Subscribers {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // A panic of another thread leaves no inconsistent state here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there are no subscribers, so that a disk need not collect changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().all.is_empty()
    }

    /// Reports a change to the subscribers. No lock of the disk may be held: they may look at it at once.
    pub fn report(&self, change: Change) {
        let wanted = |subscriber: &&Subscriber| match &change {
            Change::Any => true,
            Change::Content(path) | Change::Name(path) => {
                subscriber.folders.iter().any(|folder| folder.covers(path))
            }
        };
        let concerned: Vec<OnChange> = {
            let table = self.lock();
            let subscribers = table.all.values().filter(wanted);
            subscribers
                .map(|subscriber| Arc::clone(&subscriber.on_change))
                .collect()
        };
        let changes = [change];
        for on_change in concerned {
            on_change(&changes);
        }
    }
}

impl Changes for Subscribers {
    fn subscribe(&self, on_change: OnChange) -> Option<Box<dyn Subscription>> {
        let mut table = self.lock();
        table.last += 1;
        let number = table.last;
        let folders = Vec::new();
        table.all.insert(number, Subscriber { on_change, folders });
        let of = self.clone();
        Some(Box::new(OneOf { of, number }))
    }
}

struct OneOf {
    of: Subscribers,
    number: u64,
}

impl Subscription for OneOf {
    fn keep(&self, folders: &[WatchedFolder]) -> Coverage {
        if let Some(subscriber) = self.of.lock().all.get_mut(&self.number) {
            subscriber.folders = folders.to_vec();
        }
        Coverage {
            is_whole: true,
            is_trusted: true,
        }
    }
}

impl Drop for OneOf {
    fn drop(&mut self) {
        self.of.lock().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_reported_to_those_whose_folders_they_are_in() {
        let all = Subscribers::default();
        let reported = Arc::new(Mutex::new(Vec::new()));
        let subscribe = |number: usize, path: &str, is_recursive: bool| {
            let reported = Arc::clone(&reported);
            let on_change: OnChange = Arc::new(move |changes: &[Change]| {
                let mut reported = reported.lock().unwrap();
                reported.extend(changes.iter().map(|change| (number, change.clone())));
            });
            let subscription = all.subscribe(on_change).unwrap();
            let path = path.into();
            subscription.keep(&[WatchedFolder { path, is_recursive }]);
            subscription
        };
        assert!(all.is_empty());
        let alone = subscribe(1, "/a", false);
        let recursive = subscribe(2, "/a", true);
        let elsewhere = subscribe(3, "/ab", true);
        let numbers = |change: &Change| {
            all.report(change.clone());
            let reported = std::mem::take(&mut *reported.lock().unwrap());
            assert!(reported.iter().all(|(_, other)| other == change));
            let numbers = reported.iter().map(|(number, _)| *number);
            numbers.collect::<Vec<_>>()
        };
        assert_eq!(numbers(&Change::Content("/a/f".into())), [1, 2]);
        assert_eq!(numbers(&Change::Name("/a/b/f".into())), [2]);
        assert_eq!(numbers(&Change::Name("/a".into())), [1, 2]);
        assert_eq!(numbers(&Change::Any), [1, 2, 3]);
        alone.keep(&[]);
        assert_eq!(numbers(&Change::Content("/a/f".into())), [2]);
        drop((alone, recursive, elsewhere));
        assert!(all.is_empty() && numbers(&Change::Any).is_empty());
    }
}
