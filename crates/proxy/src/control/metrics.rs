//! A snapshot as metrics: the text format 0.0.4 of Prometheus, and OpenMetrics 1.0.
//!
//! Series are bounded by the configuration: labels are names of cores, routes, upstreams, endpoints
//! and classes, never anything a client sends.

mod families;
mod writer;

use hyper::header::HeaderValue;

use super::snapshot::Snapshot;
use writer::Writer;

/// How metrics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// The text format of Prometheus, version 0.0.4.
    Text,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// What a scraper with this Accept is given: OpenMetrics 1.0 where it likes it at least as much
    /// as text, else text, whatever it asks for.
    pub(super) fn accepted(accept: Option<&HeaderValue>) -> Format {
        let Some(accept) = accept.and_then(|accept| accept.to_str().ok()) else {
            return Format::Text;
        };
        let mut best = (Format::Text, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let (mut quality, mut version) = (1.0, None);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                match name.trim() {
                    "q" => quality = value.trim().parse().unwrap_or(0.0),
                    "version" => version = Some(value.trim()),
                    _ => {}
                }
            }
            let format = match kind {
                "application/openmetrics-text" if matches!(version, None | Some("1.0.0")) => {
                    Format::OpenMetrics
                }
                "text/plain" | "text/*" | "*/*" => Format::Text,
                _ => continue,
            };
            if quality > best.1 {
                best = (format, quality);
            }
        }
        best.0
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All metrics there are.
pub(super) fn write(snapshot: &Snapshot, format: Format) -> String {
    let mut writer = Writer::new(format);
    families::process(&mut writer, snapshot);
    families::logs(&mut writer, snapshot);
    families::counters(&mut writer, snapshot);
    families::cores(&mut writer, snapshot);
    families::routes(&mut writer, snapshot);
    families::upstreams(&mut writer, snapshot);
    writer.finish()
}

#[cfg(test)]
mod tests;
