//! What `baton fmt` does: files in one form.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::{EXIT_USAGE, FmtConfig};
use crate::config;

/// What became of the files.
pub(crate) struct Formatted {
    /// For standard output.
    pub(crate) output: String,
    /// For standard error.
    pub(crate) errors: String,
    /// 0: all is well. 1: with `--check`, a file has another form. 2: a file could not be read,
    /// written, or is not TOML.
    pub(crate) exit: u8,
}

/// Formats the files. A file that is not TOML stays as it is, and so does one that is formatted.
pub(crate) fn format_files(options: &FmtConfig, input: impl Read) -> Formatted {
    let mut done = Formatted { output: String::new(), errors: String::new(), exit: 0 };
    let mut input = Some(input);
    for path in &options.files {
        let result = if path == Path::new("-") {
            // Standard input has one end.
            input.take().map_or(Ok(()), |input| format_input(options, input, &mut done))
        } else {
            format_file(options, path, &mut done)
        };
        if let Err(error) = result {
            done.errors.push_str(&format!("{error}\n"));
            done.exit = EXIT_USAGE;
        }
    }
    done
}

fn format_input(options: &FmtConfig, input: impl Read, done: &mut Formatted) -> Result<(), String> {
    let name = config::STANDARD_INPUT;
    let text = config::read_text(input, Path::new(name)).map_err(|error| error.to_string())?;
    let formatted = config::format(&text, name).map_err(|error| error.to_string())?;
    if !options.check {
        done.output.push_str(&formatted);
    } else if formatted != text {
        differs(name, done);
    }
    Ok(())
}

fn format_file(options: &FmtConfig, path: &Path, done: &mut Formatted) -> Result<(), String> {
    let name = path.display().to_string();
    let wrong = |error: io::Error| format!("{name}: {error}");
    let file = fs::File::open(path).map_err(|error| format!("{name}: cannot read: {error}"))?;
    let text = config::read_text(file, path).map_err(|error| error.to_string())?;
    let formatted = config::format(&text, &name).map_err(|error| error.to_string())?;
    if formatted == text {
        return Ok(());
    }
    if options.check {
        differs(&name, done);
        return Ok(());
    }
    replace(path, &formatted).map_err(wrong)?;
    done.output.push_str(&format!("{name}: formatted\n"));
    Ok(())
}

fn differs(name: &str, done: &mut Formatted) {
    done.errors.push_str(&format!("{name}: not in the form that baton fmt gives it\n"));
    done.exit = done.exit.max(1);
}

/// Puts `text` in the place of the file at once, so that no reader and no failure meets a half of it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    // What a link leads to is replaced, and not the link.
    let path = path.canonicalize()?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside: PathBuf = path.with_file_name(name);
    let written = write_beside(&path, &beside, text).and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // It may not be there; what went wrong is told already.
        drop(fs::remove_file(&beside));
    }
    written
}

fn write_beside(path: &Path, beside: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create_new(beside)?;
    file.set_permissions(fs::metadata(path)?.permissions())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
