//! Holds that no modules of a crate depend on each other in a cycle, so that each can be read from
//! the bottom.
//!
//! A dependency is a path in a `use` or in code (`crate::…`, `super::…`, `self::…`, or a child of the
//! module). A re-export is followed to the module that defines the name. What only re-exports for
//! users of the crate, and tests, do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// A module, by its path in the crate; empty for the crate itself.
type Module = Vec<String>;

#[test]
fn no_modules_of_a_crate_depend_on_each_other_in_a_cycle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut crates: Vec<PathBuf> = vec![root.join("bindings/shared")];
    let members = fs::read_dir(root.join("crates")).expect("there are crates");
    crates.extend(members.map(|member| member.expect("it can be listed").path()));
    let mut cycles = Vec::new();
    for folder in crates {
        let name = folder.file_name().expect("it has a name").to_string_lossy();
        let found = Modules::read(&folder.join("src")).cycles();
        cycles.extend(found.into_iter().map(|cycle| format!("{name}: {cycle}")));
    }
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
}

#[test]
fn a_cycle_is_found_through_a_re_export_a_path_in_code_and_a_macro() {
    let cycles = |files: &[(&str, &str)]| Modules::of(files).cycles();
    let cycle = |between: &str| vec![between.to_owned()];
    assert_eq!(
        cycles(&[
            ("", "mod a; mod b; pub use b::B;"),
            ("a", "use crate::B; pub struct A;"),
            ("b", "pub struct B; fn f() { crate::a::A; }"),
        ]),
        cycle("a -> b -> a")
    );
    assert_eq!(
        cycles(&[
            ("", "mod a; mod b;"),
            ("a", "fn f() { print!(\"{}\", super::b::N) }"),
            (
                "b",
                "use super::a::{self as other, X as Y}; pub const N: u8 = 0;"
            ),
        ]),
        cycle("a -> b -> a")
    );
    assert_eq!(
        cycles(&[
            ("a", "mod b; use b::f; pub struct A;"),
            ("a::b", "use super::A; pub fn f() {}"),
        ]),
        cycle("a -> a::b -> a")
    );
    // Tests, and re-exports for users, are not dependencies, and a module within a file is a part of it.
    let none: Vec<String> = Vec::new();
    assert_eq!(
        cycles(&[
            ("", "mod a; pub use a::A;"),
            (
                "a",
                "pub struct A; #[cfg(test)] mod tests { use crate::f; }"
            ),
        ]),
        none
    );
    assert_eq!(
        cycles(&[
            ("a", "mod b; use b::f;"),
            ("a::b", "pub fn f() {} mod fast { use super::f; }"),
        ]),
        none
    );
    assert_eq!(
        cycles(&[
            ("a", "mod b; pub use b::f; pub struct A;"),
            ("a::b", "use super::A; pub fn f() {}"),
        ]),
        none
    );
}

/// The modules of a crate, and what each of them names.
#[derive(Default)]
struct Modules {
    /// The paths that a module names, relative to the crate.
    named: BTreeMap<Module, BTreeSet<Vec<String>>>,
    /// Where the names that a module re-exports are from.
    exported: HashMap<Module, HashMap<String, Vec<String>>>,
}

impl Modules {
    fn read(src: &Path) -> Self {
        let mut files = Vec::new();
        let mut folders = vec![src.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("it can be listed") {
                let path = entry.expect("it can be listed").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") {
                    let below = path
                        .strip_prefix(src)
                        .expect("it is below")
                        .with_extension("");
                    let parts = below.iter().map(|part| part.to_string_lossy());
                    let parts = parts.filter(|part| !["lib", "main", "mod"].contains(&&**part));
                    let module = parts.collect::<Vec<_>>().join("::");
                    files.push((module, fs::read_to_string(&path).expect("it can be read")));
                }
            }
        }
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(name, text)| (&**name, &**text))
            .collect();
        Self::of(&files)
    }

    fn of(files: &[(&str, &str)]) -> Self {
        let mut modules = Self::default();
        let path = |name: &str| -> Module {
            let parts = name.split("::").filter(|part| !part.is_empty());
            parts.map(str::to_owned).collect()
        };
        for (name, _) in files {
            modules.named.insert(path(name), BTreeSet::new());
        }
        for (name, text) in files {
            let file = syn::parse_file(text).expect("it compiles");
            modules.add(&path(name), &file.items);
        }
        modules
    }

    fn add(&mut self, module: &Module, items: &[Item]) {
        let mut reader = Reader {
            modules: self,
            module: module.clone(),
            paths: Vec::new(),
            exported: Vec::new(),
        };
        for item in items {
            reader.visit_item(item);
        }
        let Reader {
            paths, exported, ..
        } = reader;
        for path in exported {
            if let Some(name) = path.last() {
                let names = self.exported.entry(module.clone()).or_default();
                names.insert(name.clone(), path.clone());
            }
        }
        self.named.entry(module.clone()).or_default().extend(paths);
    }

    /// Returns the path from the crate of one that a module names; `None` for a path of another crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut from = module.clone();
        match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => {}
            "super" => {
                from.pop()?;
                let again = rest.first().is_some_and(|next| next == "super");
                if again {
                    return self.absolute(&from, rest);
                }
            }
            child => {
                from.push(child.to_owned());
                if !self.named.contains_key(&from) {
                    return None;
                }
            }
        }
        from.extend_from_slice(rest);
        Some(from)
    }

    /// Returns the module that defines what a path from the crate leads to.
    fn module_of(&self, path: &[String]) -> Module {
        let mut path = path.to_vec();
        // A re-export of a re-export ends; a wrong loop does not.
        for _ in 0..8 {
            let mut at = path.len();
            while !self.named.contains_key(&path[..at]) && at > 0 {
                at -= 1;
            }
            let (module, rest) = path.split_at(at);
            let exported = || self.exported.get(module)?.get(rest.first()?);
            match exported() {
                Some(from) if *from != path[..=at] => {
                    let mut next = from.clone();
                    next.extend_from_slice(&rest[1..]);
                    path = next;
                }
                _ => return module.to_vec(),
            }
        }
        path
    }

    /// Returns the cycles, each by the modules of one way around.
    fn cycles(&self) -> Vec<String> {
        let arrows: BTreeMap<&Module, BTreeSet<Module>> = self
            .named
            .iter()
            .map(|(module, paths)| {
                let to = paths.iter().map(|path| self.module_of(path));
                (module, to.filter(|to| to != module).collect())
            })
            .collect();
        let mut cycles = Vec::new();
        let mut in_a_cycle = BTreeSet::new();
        for module in self.named.keys() {
            if !in_a_cycle.contains(module)
                && let Some(cycle) = way_around(&arrows, module)
            {
                let names = cycle.iter().chain(cycle.first());
                let names: Vec<String> = names.map(|module| module.join("::")).collect();
                cycles.push(names.join(" -> "));
                in_a_cycle.extend(cycle);
            }
        }
        cycles
    }
}

/// Returns the shortest way from a module back to itself.
fn way_around(arrows: &BTreeMap<&Module, BTreeSet<Module>>, start: &Module) -> Option<Vec<Module>> {
    let mut before: HashMap<&Module, &Module> = HashMap::new();
    let mut wave = vec![start];
    while !wave.is_empty() {
        let mut next = Vec::new();
        for module in wave {
            for to in arrows.get(module).into_iter().flatten() {
                if to == start {
                    let mut way = vec![module.clone()];
                    let mut at = module;
                    while at != start {
                        at = before[at];
                        way.push(at.clone());
                    }
                    way.reverse();
                    return Some(way);
                }
                if !before.contains_key(to) {
                    before.insert(to, module);
                    next.push(to);
                }
            }
        }
        wave = next;
    }
    None
}

/// Reads the paths of a module.
struct Reader<'m> {
    modules: &'m Modules,
    /// The module, with those within its file.
    module: Module,
    paths: Vec<Vec<String>>,
    exported: Vec<Vec<String>>,
}

impl Reader<'_> {
    fn name(&mut self, path: &[String]) -> Option<Vec<String>> {
        let path = self.modules.absolute(&self.module, path)?;
        self.paths.push(path.clone());
        Some(path)
    }

    /// Reads what a `use` names, from the path above it.
    fn read_use(&mut self, above: &[String], tree: &UseTree, is_exported: bool) {
        let below = |name: &syn::Ident| {
            let mut path = above.to_vec();
            if name != "self" || above.is_empty() {
                path.push(name.to_string());
            }
            path
        };
        let (path, name) = match tree {
            UseTree::Path(path) => {
                let above = below(&path.ident);
                return self.read_use(&above, &path.tree, is_exported);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(above, tree, is_exported);
                }
                return;
            }
            UseTree::Name(name) => (below(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(name) => (below(&name.ident), Some(name.rename.to_string())),
            UseTree::Glob(_) => (above.to_vec(), None),
        };
        let Some(path) = self.modules.absolute(&self.module, &path) else {
            return;
        };
        if is_exported && name.as_ref() == path.last() {
            self.exported.push(path);
        } else {
            self.paths.push(path);
        }
    }

    /// Reads the paths in the arguments of a macro.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.name(&path);
                        path.clear();
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.name(&path);
                    path.clear();
                    self.read_tokens(group.stream());
                }
                _ => {
                    self.name(&path);
                    path.clear();
                }
            }
        }
        self.name(&path);
    }
}

impl Visit<'_> for Reader<'_> {
    fn visit_item(&mut self, item: &Item) {
        let attributes = match item {
            Item::Mod(module) => &module.attrs,
            Item::Use(one) => &one.attrs,
            Item::Fn(function) => &function.attrs,
            Item::Impl(block) => &block.attrs,
            _ => return visit::visit_item(self, item),
        };
        if attributes.iter().any(is_for_tests) {
            return;
        }
        match item {
            Item::Mod(within) => {
                self.module.push(within.ident.to_string());
                visit::visit_item(self, item);
                self.module.pop();
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_item_use(&mut self, item: &syn::ItemUse) {
        let is_exported = !matches!(item.vis, Visibility::Inherited);
        self.read_use(&[], &item.tree, is_exported);
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let segments = path.segments.iter();
        let path_: Vec<String> = segments.map(|segment| segment.ident.to_string()).collect();
        if path_.len() > 1 {
            self.name(&path_);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, of: &syn::Macro) {
        visit::visit_macro(self, of);
        self.read_tokens(of.tokens.clone());
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let is_cfg = attribute.path().is_ident("cfg");
    is_cfg
        && attribute
            .parse_args::<syn::Path>()
            .is_ok_and(|of| of.is_ident("test"))
}
