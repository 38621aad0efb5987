//! The file: TOML to `Config`, with every finding at its place.
//!
//! The tree is walked by hand and not through serde, whose derive stops at the first error and
//! cannot say which key was meant. What the file says is first taken as it stands (`root`), then
//! made into what it means (`build`), when all of it and of what it includes is known.

// The meanings of keys are shown to users as they stand, with tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod build;
mod environment;
mod include;
mod listen;
mod root;
mod route;
mod upstream;

use std::path::{Path, PathBuf};

pub(super) use build::{own_name, route_name};
pub(super) use environment::OfProcess;
pub(crate) use listen::{LISTEN, ListenTable};
pub(crate) use root::{ROOT, homes};
pub(crate) use route::{
    EditsTable, PageTable, ROUTE, RateTable, RedirectTable, ReplaceTable, RespondTable, RouteTable,
};
pub(crate) use upstream::{
    EjectTable, EndpointTable, HealthTable, QueueTable, RetryTable, UPSTREAM, UpstreamTable,
};

use super::reader::{Environment, Reader};
use super::{Config, ConfigError, Problems};
use include::Loader;

/// A configuration, and what it was made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// What the files say.
    pub config: Config,
    /// Every file that was read, in its order: the file itself, those it includes, and the bodies it
    /// names. Not standard input.
    pub files: Vec<PathBuf>,
}

/// Parses the text of a configuration file. `name`: the file's, for the messages, and for relative
/// paths in it.
///
/// Errors: `ConfigError::Invalid` with every finding; where the text is not TOML, with those of the
/// syntax alone, because what the rest says is then a guess.
pub fn parse(text: &str, name: &str) -> Result<Config, ConfigError> {
    load_text(text, name).map(|loaded| loaded.config)
}

/// As [`parse`], and says which files were read.
pub fn load_text(text: &str, name: &str) -> Result<Loaded, ConfigError> {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    load_with(text, name, folder, None, &OfProcess)
}

/// `path`: of the file, where there is one.
pub(super) fn load_with(
    text: &str,
    name: &str,
    folder: &Path,
    path: Option<&Path>,
    environment: &dyn Environment,
) -> Result<Loaded, ConfigError> {
    let mut loader = Loader::new(Reader::new(environment), path);
    loader.read(text, name, folder);
    let Loader { mut reader, sources, folders, root, is_whole, mut files, .. } = loader;
    let mut config = Config::defaults();
    // Where a file could not be read, what the others refer to may be in it.
    if is_whole {
        let builder = build::Builder {
            reader: &mut reader,
            sources: &sources,
            folders: &folders,
            files: &mut files,
            config: &mut config,
        };
        builder.build(root);
    }
    if reader.problems.is_empty() {
        Ok(Loaded { config, files })
    } else {
        Err(ConfigError::Invalid(Problems::new(&sources, reader.problems)))
    }
}
