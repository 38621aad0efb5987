//! A file and those it includes, as they stand.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::DeTable;

use super::environment::substitute;
use super::root::{INCLUDED, INCLUDED_LABEL, ROOT, Root};
use crate::config::FILE_BYTES_MAX;
use crate::config::problem::{Problem, Source};
use crate::config::reader::Reader;
use crate::config::table::{At, Place, read_keys};

/// Files that one configuration may include, over all. When over it: refused.
pub(crate) const INCLUDED_FILES_MAX: usize = 256;
/// Entries of a folder that are looked through for one `include`. When over it: refused.
const FOLDER_ENTRIES_MAX: usize = 10_000;
/// Parts of a key, as in `a.b.c`. The TOML crate takes any number, and its tree is taken down by
/// recursion.
const KEY_PARTS_MAX: usize = 32;

/// What has been read so far.
pub(super) struct Loader<'e> {
    pub(super) reader: Reader<'e>,
    pub(super) sources: Vec<Source>,
    /// Where relative paths of each source begin.
    pub(super) folders: Vec<PathBuf>,
    /// What all of them say.
    pub(super) root: Root,
    /// Whether every file could be read as TOML.
    pub(super) is_whole: bool,
    /// Every file that was read.
    pub(super) files: Vec<PathBuf>,
    /// The files read, each by the one name it has.
    known: Vec<PathBuf>,
    /// Those of `known` that are being read.
    open: Vec<PathBuf>,
    /// Whether a table stands in any file, if it was refused too.
    has_listen: bool,
    has_route: bool,
}

impl<'e> Loader<'e> {
    /// `path`: of the first file, where there is one.
    pub(super) fn new(reader: Reader<'e>, path: Option<&Path>) -> Self {
        let known: Vec<PathBuf> =
            path.and_then(|path| path.canonicalize().ok()).into_iter().collect();
        Self {
            reader,
            sources: Vec::new(),
            folders: Vec::new(),
            root: Root::default(),
            is_whole: true,
            files: path.into_iter().map(Path::to_owned).collect(),
            open: known.clone(),
            known,
            has_listen: false,
            has_route: false,
        }
    }

    /// Reads the first file and what it includes.
    pub(super) fn read(&mut self, text: &str, name: &str, folder: &Path) {
        self.read_file(text, name, folder);
        if !self.is_whole {
            return;
        }
        if !self.has_listen {
            self.reader.missing("no [[listen]] table", r#"[[listen]] with addr = ":8080""#);
        }
        if !self.has_route {
            self.reader.missing("no [[route]] table", r#"[[route]] with to = "127.0.0.1:9000""#);
        }
    }

    fn read_file(&mut self, text: &str, name: &str, folder: &Path) {
        let file = self.sources.len();
        self.reader.file = file;
        let text: Arc<str> = text.into();
        self.sources.push(Source { name: name.to_owned(), text: text.clone() });
        self.folders.push(folder.to_owned());
        if let Some(span) = long_key(&text) {
            let problem = format!("a key of more than {KEY_PARTS_MAX} parts");
            self.reader.refuse(span, problem, "keys with few dots");
            self.is_whole = false;
            return;
        }
        let (mut document, errors) = DeTable::parse_recoverable(&text);
        if !errors.is_empty() {
            self.is_whole = false;
            self.reader.problems.extend(errors.into_iter().map(|error| Problem {
                place: error.span().map(|span| Place { file, span }),
                problem: error.message().to_owned(),
                fix: String::new(),
                expected: String::new(),
            }));
            return;
        }
        substitute(document.get_mut(), &mut self.reader);
        let root = self.read_root(&document, file == 0);
        for pattern in root.include.iter().flat_map(|include| &include.value) {
            self.include(pattern, file);
        }
        // What reads the tables of this file afterwards belongs to it.
        self.reader.file = file;
    }

    fn read_root(&mut self, document: &Spanned<DeTable<'_>>, is_first: bool) -> Root {
        let mut root = Root::default();
        let (label, only) =
            if is_first { (ROOT.label, None) } else { (INCLUDED_LABEL, Some(INCLUDED)) };
        let (mut has_listen, mut has_route) = (false, false);
        read_keys(
            &ROOT,
            label,
            only,
            document.get_ref(),
            &mut root,
            &mut self.reader,
            |field, _| {
                has_listen |= field.name == "listen";
                has_route |= field.name == "route";
            },
        );
        self.has_listen |= has_listen;
        self.has_route |= has_route;
        if is_first {
            self.root = root.clone();
        } else {
            append(&mut self.root.listen, &root.listen);
            append(&mut self.root.upstream, &root.upstream);
            append(&mut self.root.route, &root.route);
        }
        root
    }

    /// Reads the files of one `include` of the source `from`.
    fn include(&mut self, pattern: &At<String>, from: usize) {
        let paths = match matches(&self.folders[from], &pattern.value) {
            Ok(paths) => paths,
            Err(problem) => return self.refuse(pattern, problem),
        };
        for path in paths {
            let name = path.display().to_string();
            if self.sources.len() > INCLUDED_FILES_MAX {
                let problem = format!("more than {INCLUDED_FILES_MAX} files are included");
                return self.refuse(pattern, problem);
            }
            let text = match read_text(&path) {
                Ok(text) => text,
                Err(error) => {
                    self.refuse(pattern, format!("{name}: {error}"));
                    continue;
                }
            };
            let one = path.canonicalize().unwrap_or_else(|_| path.clone());
            if self.open.contains(&one) {
                self.refuse(pattern, format!("{name} includes itself"));
                continue;
            }
            if self.known.contains(&one) {
                self.refuse(pattern, format!("{name} is included twice"));
                continue;
            }
            self.known.push(one.clone());
            self.open.push(one);
            self.files.push(path.clone());
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            self.read_file(&text, &name, &folder);
            self.open.pop();
        }
    }

    fn refuse(&mut self, pattern: &At<String>, problem: String) {
        self.is_whole = false;
        let expected = r#"files that can be read, such as "conf.d/*.toml""#;
        self.reader.refuse_at(&pattern.place, format!("include: {problem}"), "", expected);
    }
}

fn append<T: Clone>(to: &mut Option<At<Vec<T>>>, from: &Option<At<Vec<T>>>) {
    match (to.as_mut(), from) {
        (Some(to), Some(from)) => to.value.extend(from.value.iter().cloned()),
        (None, Some(_)) => to.clone_from(from),
        (_, None) => {}
    }
}

/// The files that `pattern` names, in the order of their names. Error, in words.
fn matches(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let path = folder.join(pattern);
    let Some((before, after)) = pattern.rsplit('/').next().and_then(|name| name.split_once('*'))
    else {
        return Ok(vec![path]);
    };
    if after.contains('*') {
        return Err("`*` stands once in a name".to_owned());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let wrong = |error: io::Error| format!("{}: cannot read: {error}", folder.display());
    let mut names = Vec::new();
    for (count, entry) in std::fs::read_dir(&folder).map_err(wrong)?.enumerate() {
        if count == FOLDER_ENTRIES_MAX {
            return Err(format!("{}: too many entries", folder.display()));
        }
        let Ok(name) = entry.map_err(wrong)?.file_name().into_string() else { continue };
        // A hidden file is one that an editor or a package manager left.
        let is_long = name.len() >= before.len() + after.len();
        if is_long && !name.starts_with('.') && name.starts_with(before) && name.ends_with(after) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let parent = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok(names.into_iter().map(|name| parent.join(name)).collect())
}

/// The text of a file within the bound. Error, in words.
fn read_text(path: &Path) -> Result<String, String> {
    let bytes = read_bytes(path, FILE_BYTES_MAX)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        format!("line {line} is not UTF-8")
    })
}

/// The bytes of a file within the bound. Error, in words.
pub(super) fn read_bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, String> {
    let wrong = |error: io::Error| format!("cannot read: {error}");
    let file = File::open(path).map_err(wrong)?;
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is over the bound.
    file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("the file is over {}", crate::units::format_size(bytes_max)));
    }
    Ok(bytes)
}

/// The line of a key with too many parts.
fn long_key(text: &str) -> Option<std::ops::Range<usize>> {
    use toml_parser::lexer::TokenKind;
    let mut dots = 0;
    for token in toml_parser::Source::new(text).lex() {
        match token.kind() {
            TokenKind::Dot => dots += 1,
            TokenKind::Newline | TokenKind::Equals | TokenKind::Comma => dots = 0,
            _ => {}
        }
        if dots >= KEY_PARTS_MAX {
            return Some(token.span().start()..token.span().end());
        }
    }
    None
}
