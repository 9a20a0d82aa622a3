//! Holds that files and folders are reached through a disk of `transcript-storage` and in no other way, so that whatever works
//! on the file system of this machine works on an archive, in memory, and on any other disk; and that libraries do not read the
//! environment.
//!
//! Tests may use the file system directly. `Path::metadata` and `Path::is_file`, which look like methods of the same
//! names without types, are in `clippy.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ExprMethodCall, Item, ItemMod, ItemUse, Macro, UseTree};

/// The crates that may use the file system: the disks themselves, and tools of tests.
const MAY_USE_FILES: [&str; 2] = ["transcript-storage", "transcript-testkit"];

/// The code that may read the environment: the programs, tools of tests, and one module of the libraries.
const MAY_READ_ENVIRONMENT: [&str; 4] = [
    "crates/transcript-browse/",
    "crates/transcript-cli/",
    "crates/transcript-testkit/",
    "crates/transcript-session/src/user_folders.rs",
];

/// Functions of `std::env` that read the environment.
const ENVIRONMENT_FUNCTIONS: [&str; 5] = ["home_dir", "var", "var_os", "vars", "vars_os"];

/// Methods of `Path` without arguments that look at the file system.
const FILE_METHODS: [&str; 8] = [
    "canonicalize",
    "exists",
    "is_dir",
    "is_symlink",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

#[test]
fn every_path_goes_through_a_disk() {
    let mut found = uses_of_all();
    found.retain(|(path, what)| {
        !is_of_environment(what) && !MAY_USE_FILES.iter().any(|name| path.contains(name))
    });
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn no_library_reads_the_environment_but_in_one_module() {
    let mut found = uses_of_all();
    found.retain(|(_, what)| is_of_environment(what));
    let is_allowed = |path: &str| MAY_READ_ENVIRONMENT.iter().any(|part| path.contains(part));
    let (allowed, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(path, _)| is_allowed(path));
    assert!(others.is_empty(), "{others:#?}");
    let is_module = |(path, _): &(String, String)| path.ends_with("user_folders.rs");
    assert!(allowed.iter().any(is_module));
}

fn is_of_environment(what: &str) -> bool {
    what.rsplit("::")
        .next()
        .is_some_and(|name| ENVIRONMENT_FUNCTIONS.contains(&name))
}

/// Returns the file and the name of each use of the file system or the environment in all crates.
fn uses_of_all() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut crates: Vec<PathBuf> = ["shared", "python", "node"]
        .map(|name| root.join("bindings").join(name))
        .into();
    let members = fs::read_dir(root.join("crates")).expect("there are crates");
    crates.extend(members.map(|member| member.expect("it can be listed").path()));
    let mut found = Vec::new();
    let mut files = 0;
    for folder in crates {
        for start in ["lib.rs", "main.rs"] {
            let start = folder.join("src").join(start);
            if start.exists() {
                read(&start, &mut found, &mut files);
            }
        }
    }
    assert!(files > 300, "only {files} files were read");
    found
}

#[test]
fn every_way_around_a_disk_and_to_the_environment_is_found() {
    let uses = |text: &str| {
        let file = syn::parse_file(text).expect("it compiles");
        let mut reader = Uses::default();
        reader.visit_file(&file);
        reader.found
    };
    for (text, expected) in [
        ("use std::fs;", "std::fs"),
        ("use std::{fs::File, io};", "std::fs::File"),
        ("use std::fs as files;", "std::fs"),
        ("use tokio::fs;", "tokio::fs"),
        ("fn f() { std::fs::read(\"a\"); }", "std::fs::read"),
        ("fn f(file: std::fs::File) {}", "std::fs::File"),
        ("fn f(path: &Path) -> bool { path.exists() }", ".exists()"),
        (
            "fn f(path: &Path) { path.join(\"a\").read_dir(); }",
            ".read_dir()",
        ),
        (
            "fn f(all: &[PathBuf]) { all.iter().map(Path::metadata); }",
            "Path::metadata",
        ),
        (
            "fn f(all: &[PathBuf]) { all.iter().any(|a| a.is_dir()); }",
            ".is_dir()",
        ),
        ("fn f(a: &Path) { assert!(a.is_dir()); }", ".is_dir()"),
        ("fn f() { vec![std::fs::read(\"a\")]; }", "std::fs::read"),
        ("use std::env::{consts, var_os};", "std::env::var_os"),
        ("use std::env; fn f() { env::var(\"HOME\"); }", "env::var"),
        ("fn f() { vec![std::env::vars()]; }", "std::env::vars"),
        ("use std::env::*;", "std::env::vars"),
    ] {
        assert_eq!(uses(text), [expected], "{text}");
    }
    for text in [
        "fn f(disk: &dyn ReadDisk, path: &Path) -> bool { disk.exists(path) }",
        "fn f(found: Metadata) -> bool { found.is_folder() && found.is_file() }",
        "use rustix::fs::statvfs; use crate::fs_watch;",
        "fn f(path: &Path) { path.join(\"fs\"); path.parent(); }",
        "/// Use `std::fs`.\nfn f() { print!(\"std::fs::read, a.exists()\") }",
        "fn f(env: &str) { std::env::current_dir(); env::consts::OS; env!(\"A\"); }",
        "#[cfg(test)] mod tests { use std::fs; }",
        "#[cfg(all(test, unix))] fn f() { std::fs::read(\"a\"); }",
        "impl A { #[cfg(test)] fn f(&self) { std::fs::read(\"a\"); } }",
    ] {
        assert!(uses(text).is_empty(), "{text}: {:?}", uses(text));
    }
}

/// Reads a file and the modules that it declares.
fn read(path: &Path, found: &mut Vec<(String, String)>, files: &mut usize) {
    let text = fs::read_to_string(path).expect("it can be read");
    let file = syn::parse_file(&text).expect("it compiles");
    let mut uses = Uses::default();
    uses.visit_file(&file);
    *files += 1;
    let uses = uses.found.into_iter();
    found.extend(uses.map(|what| (path.display().to_string().replace('\\', "/"), what)));
    let stem = path.file_stem().expect("it has a name");
    let own = ["lib", "main", "mod"].iter().any(|name| stem == *name);
    let folder = if own {
        path.with_file_name("")
    } else {
        path.with_extension("")
    };
    for item in &file.items {
        if let Item::Mod(ItemMod {
            ident,
            content: None,
            attrs,
            ..
        }) = item
            && !is_of_tests(attrs)
        {
            let name = ident.to_string();
            let candidates = [
                folder.join(format!("{name}.rs")),
                folder.join(&name).join("mod.rs"),
            ];
            let module = candidates.iter().find(|path| path.exists());
            read(module.expect("a module has a file"), found, files);
        }
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = attribute.meta.require_list().map(|list| &list.tokens);
        attribute.path().is_ident("cfg")
            && condition.is_ok_and(|tokens| {
                let text = tokens.to_string();
                !text.contains("not")
                    && text
                        .split(|c: char| !c.is_alphanumeric())
                        .any(|word| word == "test")
            })
    })
}

/// Collects what reaches the file system directly, or reads the environment.
#[derive(Default)]
struct Uses {
    found: Vec<String>,
}

impl Uses {
    fn add_path(&mut self, path: &[String]) {
        let is_of = |start: &[&str]| {
            path.len() >= start.len() && path.iter().zip(start).all(|(a, b)| a == b)
        };
        let is_method = match path {
            [.., of, name] => {
                ["Path", "PathBuf"].contains(&&**of)
                    && (FILE_METHODS.contains(&&**name)
                        || ["metadata", "is_file"].contains(&&**name))
            }
            _ => false,
        };
        let reads_environment = matches!(path, [.., of, name]
            if of == "env" && ENVIRONMENT_FUNCTIONS.contains(&&**name));
        if is_of(&["std", "fs"]) || is_of(&["tokio", "fs"]) || is_method || reads_environment {
            self.found.push(path.join("::"));
        }
    }

    fn add_use(&mut self, above: &[String], tree: &UseTree) {
        let below = |name: &syn::Ident| {
            let mut path = above.to_vec();
            if name != "self" {
                path.push(name.to_string());
            }
            path
        };
        match tree {
            UseTree::Path(path) => self.add_use(&below(&path.ident), &path.tree),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(above, tree);
                }
            }
            UseTree::Name(name) => self.add_path(&below(&name.ident)),
            UseTree::Rename(name) => self.add_path(&below(&name.ident)),
            UseTree::Glob(_) if above.ends_with(&["std".to_owned(), "env".to_owned()]) => {
                self.add_path(&[above, &["vars".to_owned()]].concat());
            }
            UseTree::Glob(_) => self.add_path(above),
        }
    }

    /// Reads the arguments of a macro.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |at: usize, mark: char| matches!(tokens.get(at), Some(TokenTree::Punct(found)) if found.as_char() == mark);
        let mut path: Vec<String> = Vec::new();
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                TokenTree::Ident(name) => {
                    path.push(name.to_string());
                    if is(at + 1, ':') && is(at + 2, ':') {
                        continue;
                    }
                    self.add_path(&std::mem::take(&mut path));
                    let is_called = matches!(tokens.get(at + 1), Some(TokenTree::Group(group))
                        if group.delimiter() == Delimiter::Parenthesis && group.stream().is_empty());
                    let is_method = at > 0 && is(at - 1, '.') && is_called;
                    if is_method && FILE_METHODS.contains(&&*name.to_string()) {
                        self.found.push(format!(".{name}()"));
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => {}
                _ => path.clear(),
            }
        }
    }
}

impl<'s> Visit<'s> for Uses {
    fn visit_item(&mut self, item: &'s Item) {
        let attributes = match item {
            Item::Mod(item) => &item.attrs,
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            Item::Const(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_of_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'s syn::ImplItemFn) {
        if !is_of_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_use(&mut self, item: &'s ItemUse) {
        self.add_use(&[], &item.tree);
    }

    fn visit_path(&mut self, path: &'s syn::Path) {
        let names = path.segments.iter().map(|part| part.ident.to_string());
        self.add_path(&names.collect::<Vec<_>>());
        visit::visit_path(self, path);
    }

    fn visit_expr_method_call(&mut self, call: &'s ExprMethodCall) {
        let name = call.method.to_string();
        if call.args.is_empty() && FILE_METHODS.contains(&&*name) {
            self.found.push(format!(".{name}()"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, call: &'s Macro) {
        self.add_tokens(call.tokens.clone());
    }
}
