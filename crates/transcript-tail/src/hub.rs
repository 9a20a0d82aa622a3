//! One subscription to file-system events for all followers of a process.
//!
//! A person has few of them (128 instances of inotify by default on Linux), and each costs a thread. So the followers of
//! a process share one, which is there while any of them watches something. A folder is watched once, however many want it:
//! the system reports each only once to a subscription, and forgets it for all when one of them leaves.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use transcript_storage::{
    Change, Changes, Coverage, Identity, OnChange, PerProcess, ReadDisk, RealDisk, Subscription,
    WatchedFolder, reports_changes,
};

/// The one of this process: the limit that it is for counts for the process, too.
static HUB: PerProcess<Hub> = PerProcess::new();

/// Reports the changes of the file system of this machine, as events of the system.
pub(crate) struct SystemChanges;

#[derive(Default)]
struct Hub {
    /// Locked before `subscribers` where both are needed. The thread of the subscription never locks it.
    watch: Mutex<SystemWatch>,
    subscribers: Mutex<Subscribers>,
}

#[derive(Default)]
struct Subscribers {
    last: u64,
    all: HashMap<u64, Arc<Subscriber>>,
    /// The numbers of the subscribers of each folder, by its real path.
    of_folder: HashMap<PathBuf, HashSet<u64>>,
}

struct Subscriber {
    on_change: OnChange,
    folders: Vec<FolderRequest>,
}

/// A request of a subscriber to watch a folder.
#[derive(Clone, PartialEq)]
struct FolderRequest {
    /// As it was named.
    path: PathBuf,
    real: PathBuf,
    is_recursive: bool,
    /// Another folder may take the name.
    identity: Option<Identity>,
}

#[derive(Default)]
struct SystemWatch {
    watcher: Option<RecommendedWatcher>,
    /// The number of requests for each folder, by its real path.
    wanted: HashMap<PathBuf, RequestCount>,
    watched: HashMap<PathBuf, ActiveWatch>,
}

#[derive(Default)]
struct RequestCount {
    alone: usize,
    recursive: usize,
    identity: Option<Identity>,
}

#[derive(Clone, Copy, PartialEq)]
struct ActiveWatch {
    is_recursive: bool,
    identity: Option<Identity>,
    is_ok: bool,
}

/// A part of the subscription.
struct SubscriptionPart {
    hub: &'static Hub,
    id: u64,
    on_change: OnChange,
}

impl Changes for SystemChanges {
    /// Returns `None` if the system has no events, or no room for another subscriber.
    fn subscribe(&self, on_change: OnChange) -> Option<Box<dyn Subscription>> {
        let hub = HUB.get();
        let mut watch = lock(&hub.watch);
        if watch.watcher.is_none() {
            watch.watcher = notify::recommended_watcher(|event| hub.report(event)).ok();
        }
        watch.watcher.as_ref()?;
        let mut subscribers = lock(&hub.subscribers);
        subscribers.last += 1;
        let id = subscribers.last;
        subscribers.put(id, &on_change, Vec::new());
        Some(Box::new(SubscriptionPart { hub, id, on_change }))
    }
}

impl Subscription for SubscriptionPart {
    fn keep(&self, folders: &[WatchedFolder]) -> Coverage {
        let wanted = folders.iter().map(|WatchedFolder { path, is_recursive }| {
            let real = RealDisk.real_path(path).unwrap_or_else(|_| path.clone());
            FolderRequest {
                path: path.clone(),
                identity: RealDisk.metadata(&real).ok().map(|found| found.identity),
                real,
                is_recursive: *is_recursive,
            }
        });
        let wanted: Vec<FolderRequest> = wanted.collect();
        let mut watch = lock(&self.hub.watch);
        let old = {
            let mut subscribers = lock(&self.hub.subscribers);
            let folders = wanted.clone();
            subscribers.put(self.id, &self.on_change, folders)
        };
        let interrupted = watch.change(&old, &wanted);
        self.hub.report_gap(&interrupted);
        let is_watched = |folder: &FolderRequest| watch.covers(&folder.real);
        // The file system may be one that does not report all changes of this machine.
        Coverage {
            is_whole: wanted.iter().all(is_watched),
            is_trusted: wanted.iter().all(|folder| reports_changes(&folder.real)),
        }
    }
}

impl Drop for SubscriptionPart {
    fn drop(&mut self) {
        let mut watch = lock(&self.hub.watch);
        let (old, is_last) = {
            let mut subscribers = lock(&self.hub.subscribers);
            let old = subscribers.remove(self.id);
            (old, subscribers.all.is_empty())
        };
        let interrupted = watch.change(&old, &[]);
        self.hub.report_gap(&interrupted);
        if is_last {
            *watch = SystemWatch::default();
        }
    }
}

impl Hub {
    /// Passes an event on to those whom it concerns. Called by the thread of the subscription.
    fn report(&self, event: notify::Result<Event>) {
        let event = match event {
            // Our own reading causes events, too.
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => return,
            Ok(event) if !event.need_rescan() && !event.paths.is_empty() => event,
            _ => {
                let all: Vec<_> = lock(&self.subscribers).all.values().cloned().collect();
                for subscriber in all {
                    (subscriber.on_change)(&[Change::Any]);
                }
                return;
            }
        };
        let change = match event.kind {
            EventKind::Modify(ModifyKind::Data(_) | ModifyKind::Metadata(_)) => Change::Content,
            _ => Change::Name,
        };
        for path in &event.paths {
            for subscriber in lock(&self.subscribers).of_path(path) {
                subscriber.report(change, path);
            }
        }
    }

    /// Says that changes below these folders may not have been reported.
    fn report_gap(&self, folders: &[PathBuf]) {
        for folder in folders {
            for subscriber in lock(&self.subscribers).of_path(folder) {
                (subscriber.on_change)(&[Change::Any]);
            }
        }
    }
}

impl Subscribers {
    /// Replaces the requests of a subscriber, and returns its old ones.
    fn put(
        &mut self,
        id: u64,
        on_change: &OnChange,
        folders: Vec<FolderRequest>,
    ) -> Vec<FolderRequest> {
        let old = self.remove(id);
        for folder in &folders {
            let of_folder = self.of_folder.entry(folder.real.clone());
            of_folder.or_default().insert(id);
        }
        let subscriber = Subscriber {
            on_change: Arc::clone(on_change),
            folders,
        };
        self.all.insert(id, Arc::new(subscriber));
        old
    }

    fn remove(&mut self, id: u64) -> Vec<FolderRequest> {
        let Some(old) = self.all.remove(&id) else {
            return Vec::new();
        };
        for folder in &old.folders {
            if let Some(of_folder) = self.of_folder.get_mut(&folder.real) {
                of_folder.remove(&id);
                if of_folder.is_empty() {
                    self.of_folder.remove(&folder.real);
                }
            }
        }
        old.folders.clone()
    }

    /// Returns the subscribers that watch a path, or a folder above it.
    fn of_path(&self, path: &Path) -> Vec<Arc<Subscriber>> {
        let above = path
            .ancestors()
            .filter_map(|above| self.of_folder.get(above));
        let ids: HashSet<u64> = above.flatten().copied().collect();
        let found = ids.iter().filter_map(|id| self.all.get(id));
        found.cloned().collect()
    }
}

impl Subscriber {
    fn report(&self, change: fn(PathBuf) -> Change, path: &Path) {
        let mut changes = Vec::new();
        for folder in &self.folders {
            let Ok(below) = path.strip_prefix(&folder.real) else {
                continue;
            };
            if folder.is_recursive || below.components().count() <= 1 {
                // `join` with nothing would add a slash.
                let named = if below.as_os_str().is_empty() {
                    folder.path.clone()
                } else {
                    folder.path.join(below)
                };
                changes.push(change(named));
            }
        }
        if !changes.is_empty() {
            (self.on_change)(&changes);
        }
    }
}

impl SystemWatch {
    /// Takes other wishes of one subscriber. Returns the folders of which changes may not have been reported meanwhile.
    fn change(&mut self, old: &[FolderRequest], new: &[FolderRequest]) -> Vec<PathBuf> {
        if old == new {
            return Vec::new();
        }
        // In this order a folder that stays watched is never without a request.
        for folder in new {
            let count = self.wanted.entry(folder.real.clone()).or_default();
            count.identity = folder.identity;
            if folder.is_recursive {
                count.recursive += 1;
            } else {
                count.alone += 1;
            }
        }
        for folder in old {
            let Some(count) = self.wanted.get_mut(&folder.real) else {
                continue;
            };
            if folder.is_recursive {
                count.recursive = count.recursive.saturating_sub(1);
            } else {
                count.alone = count.alone.saturating_sub(1);
            }
            if count.alone + count.recursive == 0 {
                self.wanted.remove(&folder.real);
            }
        }
        let folders = || old.iter().chain(new);
        let concerned: HashSet<PathBuf> = if folders().any(|folder| folder.is_recursive) {
            // It may cover others, or have covered them.
            self.wanted
                .keys()
                .chain(self.watched.keys())
                .cloned()
                .collect()
        } else {
            folders().map(|folder| folder.real.clone()).collect()
        };
        self.apply(concerned)
    }

    /// Watches these folders as they are wanted.
    fn apply(&mut self, concerned: HashSet<PathBuf>) -> Vec<PathBuf> {
        let mut add = Vec::new();
        let mut interrupted = Vec::new();
        for path in concerned {
            let wish = self.wish(&path);
            let has = self.watched.get(&path).copied();
            let is_same = |has: ActiveWatch, wish: ActiveWatch| {
                has.is_ok && (has.is_recursive, has.identity) == (wish.is_recursive, wish.identity)
            };
            if wish.is_some() && wish.zip(has).is_some_and(|(wish, has)| is_same(has, wish)) {
                continue;
            }
            if let (Some(_), Some(watcher)) = (self.watched.remove(&path), &mut self.watcher) {
                // A deleted folder is not watched any more, so this may fail.
                let _ = watcher.unwatch(&path);
                interrupted.push(path.clone());
            }
            if let Some(wish) = wish {
                add.push((path, wish));
            }
        }
        for (path, mut wish) in add {
            let mode = if wish.is_recursive {
                RecursiveMode::Recursive
            } else {
                RecursiveMode::NonRecursive
            };
            let watcher = self.watcher.as_mut();
            wish.is_ok = watcher.is_some_and(|watcher| watcher.watch(&path, mode).is_ok());
            self.watched.insert(path, wish);
        }
        interrupted
    }

    /// Returns how a folder has to be watched; `None` if it has no subscriber, or a watched folder
    /// above covers it.
    fn wish(&self, path: &Path) -> Option<ActiveWatch> {
        let count = self.wanted.get(path)?;
        let mut above = path.ancestors().skip(1);
        let is_covered = above.any(|above| {
            let wanted = self.wanted.get(above);
            wanted.is_some_and(|wanted| wanted.recursive > 0)
        });
        (!is_covered).then_some(ActiveWatch {
            is_recursive: count.recursive > 0,
            identity: count.identity,
            is_ok: false,
        })
    }

    /// Returns whether a folder is watched, alone or with one above it.
    fn covers(&self, path: &Path) -> bool {
        let is = |path: &Path, is_above: bool| {
            let watched = self.watched.get(path);
            watched.is_some_and(|watched| watched.is_ok && (watched.is_recursive || !is_above))
        };
        is(path, false) || path.ancestors().skip(1).any(|above| is(above, true))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic of another thread leaves no inconsistent state here.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
