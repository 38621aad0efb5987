//! The CPU quota and memory limit of this process's control groups, versions 1 and 2.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::host::Reading;

/// Memory limits from here on are none: version 1 writes the largest whole number of pages, which
/// depends on their size.
const UNLIMITED_BYTES: u64 = 1 << 62;

/// CPU quota in CPUs, the smallest from this process's group up to the root; `None` if unlimited
/// or unreadable.
pub(super) fn cpu_quota() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    smallest_quota(&groups, &mounts, &|path| fs::read_to_string(path).ok())
}

/// Memory limit in bytes, the smallest from this process's group up to the root; `None` if
/// unlimited.
pub(super) fn memory_limit() -> Reading<Option<u64>> {
    let read = || -> io::Result<Option<u64>> {
        let groups = fs::read_to_string("/proc/self/cgroup")?;
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        Ok(smallest_memory_limit(&groups, &mounts, &|path| fs::read_to_string(path).ok()))
    };
    read().into()
}

/// The quota, given the text of `/proc/self/cgroup` and `/proc/self/mountinfo` and a way to read
/// the files they lead to.
fn smallest_quota(
    groups: &str,
    mounts: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<f64> {
    let quotas = quota_directories(groups, mounts, "cpu");
    quotas.iter().filter_map(|(version, dir)| quota_of(*version, dir, read)).reduce(f64::min)
}

/// The memory limit, from the same texts.
fn smallest_memory_limit(
    groups: &str,
    mounts: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<u64> {
    let limit_of = |(version, directory): &(Version, PathBuf)| {
        let name = match version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        // Unlimited is written `max` in version 2.
        let bytes: u64 = read(&directory.join(name))?.trim().parse().ok()?;
        (bytes < UNLIMITED_BYTES).then_some(bytes)
    };
    quota_directories(groups, mounts, "memory").iter().filter_map(limit_of).min()
}

/// The directories of this process's groups that `controller` may have files in.
///
/// Each ancestor's quota binds its descendants, so all are read. Both versions may be mounted at
/// once; the controller then lives in one of them, and the other has no quota files. As the file
/// names differ too, a group sought in the other version's mount is found to have no quota.
fn quota_directories(groups: &str, mounts: &str, controller: &str) -> Vec<(Version, PathBuf)> {
    let mut directories = Vec::new();
    for (version, group) in groups.lines().filter_map(|line| parse_group(line, controller)) {
        for mount in mounts.lines().filter_map(|line| parse_mount(line, controller)) {
            // A mount may show a subtree alone; a group outside it cannot be seen through it.
            let Ok(below) = group.strip_prefix(&mount.root) else { continue };
            let leaf = mount.point.join(below);
            let above = leaf.ancestors().take_while(|dir| dir.starts_with(&mount.point));
            directories.extend(above.map(|dir| (version, dir.to_owned())));
        }
    }
    directories
}

#[derive(Clone, Copy)]
enum Version {
    V1,
    V2,
}

/// A mounted hierarchy of either version: the group `root` appears as the directory `point`.
struct Mount {
    root: PathBuf,
    point: PathBuf,
}

/// Reads a line of `/proc/self/cgroup`, `hierarchy:controllers:path` (cgroups(7)); `None` if it has
/// no say in what `controller` controls.
fn parse_group(line: &str, controller: &str) -> Option<(Version, PathBuf)> {
    let mut fields = line.splitn(3, ':');
    let hierarchy = fields.next()?;
    let controllers = fields.next()?;
    let path = PathBuf::from(fields.next()?);
    if hierarchy == "0" && controllers.is_empty() {
        return Some((Version::V2, path));
    }
    controllers.split(',').any(|name| name == controller).then_some((Version::V1, path))
}

/// Reads a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)):
///
/// ```text
/// 36 35 98:0 /root /mount/point rw,noatime optional ... - type source super,options
/// ```
///
/// `None` if it does not mount `controller`. A path with a space, which the kernel writes as `\040`,
/// is not decoded and so leads nowhere: its quota is not seen.
fn parse_mount(line: &str, controller: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let root = PathBuf::from(mount.next()?);
    let point = PathBuf::from(mount.next()?);
    let mut filesystem = filesystem.split(' ');
    let has_controller = match filesystem.next()? {
        "cgroup2" => true,
        "cgroup" => filesystem.nth(1)?.split(',').any(|option| option == controller),
        _ => false,
    };
    has_controller.then_some(Mount { root, point })
}

fn quota_of(
    version: Version,
    directory: &Path,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<f64> {
    let read = |name| read(&directory.join(name));
    match version {
        Version::V1 => {
            let quota = read("cpu.cfs_quota_us")?;
            let period = read("cpu.cfs_period_us")?;
            quota_in_cpus(quota.trim(), period.trim())
        }
        Version::V2 => {
            let cpu_max = read("cpu.max")?;
            let (quota, period) = cpu_max.trim().split_once(' ')?;
            quota_in_cpus(quota, period)
        }
    }
}

/// Microseconds of CPU per period of microseconds. Unlimited is written `max` in version 2 and
/// `-1` in version 1; neither is an unsigned number.
fn quota_in_cpus(quota: &str, period: &str) -> Option<f64> {
    let quota: u32 = quota.parse().ok()?;
    let period: u32 = period.parse().ok()?;
    (period > 0).then(|| f64::from(quota) / f64::from(period))
}

#[cfg(test)]
mod tests;
