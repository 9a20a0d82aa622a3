//! `transcript serve`: sessions in a browser, as they are written.

use std::env;
use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use transcript_engine::catalog::usage::{CallPrices, Prices};
use transcript_engine::redact::RedactedDisk;
use transcript_engine::wire::ServeRecord;
use transcript_render::{CallPrice, Escaping, Tools};
use transcript_serve::{ServeOptions, serve};

use crate::redact_args::RedactArgs;
use crate::ui::Ui;
use crate::{exit, record, session};

/// The variable with the token of the address, for servers that are started again.
const TOKEN: &str = "TRANSCRIPT_SERVE_TOKEN";
/// The minimum length of a token, in characters. A shorter one could be guessed.
const MIN_TOKEN_LEN: usize = 16;

/// Show your sessions in the browser, live
///
/// Listens on 127.0.0.1 only and changes nothing. Anyone with the printed address can read every session. It contains a random
/// token; set $TRANSCRIPT_SERVE_TOKEN to keep it across restarts. Ctrl-C stops the server.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// The port; 0 for any free port
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Open the address in the browser
    #[arg(long)]
    open: bool,
    /// Do not use the search cache on disk
    #[arg(long)]
    no_cache: bool,
    /// Print the address as JSON
    #[arg(long)]
    json: bool,
    /// Replace each secret by its kind; implies --no-cache
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    redact_args: RedactArgs,
}

pub(crate) fn run(ui: &Ui, args: &Args) -> Result<u8> {
    let token = env::var(TOKEN).ok().filter(|token| !token.is_empty());
    if let Some(token) = &token {
        let is_usable = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if token.len() < MIN_TOKEN_LEN || !token.chars().all(is_usable) {
            bail!("{TOKEN}: expected at least {MIN_TOKEN_LEN} letters, digits, - and _");
        }
    }
    let prices = CallPrices::new(Prices::embedded());
    let render = ui
        .render
        .clone()
        .coloured(false)
        .escaping(Escaping::Visible);
    let disk = match args.redact_args.if_wanted(ui, args.redact)? {
        Some(redactor) => Arc::new(RedactedDisk::live(ui.disk(), redactor)) as _,
        None => ui.disk(),
    };
    let keeps = !args.no_cache && !args.redact;
    // A wrong `--root` is an error, and not a page without sessions.
    session::roots(ui)?;
    let context = session::context(ui)
        .disk(disk)
        .without_archives()
        .cache_folder(transcript_engine::cache_folder().filter(|_| keeps))
        .only_below_roots();
    let options = ServeOptions {
        context,
        render: render
            .thinking(true)
            .tools(Tools::Short)
            .price(CallPrice::new(move |model, usage| {
                prices.cost(model, usage)
            })),
        port: args.port,
        token,
    };
    let mut printed = Ok(());
    let served = serve(options, |url| {
        printed = print(args, url);
        if args.open && !open(url) {
            ui.note("no browser could be started; open the address yourself");
        }
    });
    printed?;
    served.with_context(|| format!("cannot serve on 127.0.0.1, port {}", args.port))?;
    Ok(exit::DONE)
}

fn print(args: &Args, url: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    if args.json {
        record::write(&mut out, &ServeRecord::new(url))?;
    } else {
        writeln!(out, "{url}")?;
    }
    Ok(out.flush()?)
}

/// Opens an address in the browser of this machine.
fn open(url: &str) -> bool {
    let (program, arguments): (&str, &[&str]) = match env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("rundll32", &["url.dll,FileProtocolHandler"]),
        _ => ("xdg-open", &[]),
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().is_ok()
}
