//! Which CPUs share a core, a cache and a memory node, from sysfs.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use super::cpu_list::parse_cpu_list;
use crate::cpu::CpuPlace;

/// Most caches of one CPU looked at. Present machines have 4 or 5: L1 for data and for code, L2,
/// L3, L4. Any further one is not seen.
const CACHES_MAX: usize = 16;

pub(crate) fn topology(ids: &[usize]) -> Vec<CpuPlace> {
    topology_under(Path::new("/sys/devices/system"), ids)
}

/// A shared part is named by the lowest CPU that shares it, which is unique across sockets (the
/// kernel's own `core_id` is not).
fn topology_under(system: &Path, ids: &[usize]) -> Vec<CpuPlace> {
    let nodes = memory_nodes(system);
    let place = |&cpu: &usize| {
        let directory = system.join(format!("cpu/cpu{cpu}"));
        let node = nodes.iter().find(|node| node.cpus.contains(&cpu));
        CpuPlace {
            cpu,
            smt: lowest_cpu(&directory.join("topology/thread_siblings_list")).unwrap_or(cpu),
            llc: last_level_cache(&directory.join("cache")).unwrap_or(0),
            numa: node.map_or(0, |node| node.id),
        }
    };
    ids.iter().map(place).collect()
}

struct MemoryNode {
    id: usize,
    cpus: Vec<usize>,
}

fn memory_nodes(system: &Path) -> Vec<MemoryNode> {
    let Ok(entries) = fs::read_dir(system.join("node")) else { return Vec::new() };
    let node = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
        let list = fs::read_to_string(entry.path().join("cpulist")).ok()?;
        Some(MemoryNode { id, cpus: parse_cpu_list(&list)? })
    };
    entries.flatten().filter_map(node).collect()
}

/// The lowest CPU that shares the highest cache in `directory`.
fn last_level_cache(directory: &Path) -> Option<usize> {
    let mut last: Option<(u32, usize)> = None;
    for index in 0..CACHES_MAX {
        let cache = directory.join(format!("index{index}"));
        let Some(level) = read_parsed::<u32>(&cache.join("level")) else { break };
        if let Some(lowest) = lowest_cpu(&cache.join("shared_cpu_list"))
            && last.is_none_or(|(highest, _)| level > highest)
        {
            last = Some((level, lowest));
        }
    }
    last.map(|(_, lowest)| lowest)
}

fn lowest_cpu(list: &Path) -> Option<usize> {
    parse_cpu_list(&fs::read_to_string(list).ok()?)?.into_iter().min()
}

fn read_parsed<T: FromStr>(path: &Path) -> Option<T> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
