//! The CPU quota of this process's control groups, versions 1 and 2.

use std::fs;
use std::path::{Path, PathBuf};

/// CPU quota in CPUs, the smallest from this process's group up to the root; `None` if unlimited
/// or unreadable.
pub(super) fn cpu_quota() -> Option<f64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    smallest_quota(&groups, &mounts, &|path| fs::read_to_string(path).ok())
}

/// The quota, given the text of `/proc/self/cgroup` and `/proc/self/mountinfo` and a way to read
/// the files they lead to.
///
/// Each ancestor's quota binds its descendants, so all are read. Both versions may be mounted at
/// once; the controller then lives in one of them, and the other has no quota files. As the file
/// names differ too, a group sought in the other version's mount is found to have no quota.
fn smallest_quota(
    groups: &str,
    mounts: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for (version, group) in groups.lines().filter_map(parse_group) {
        for mount in mounts.lines().filter_map(parse_mount) {
            // A mount may show a subtree alone; a group outside it cannot be seen through it.
            let Ok(below) = group.strip_prefix(&mount.root) else { continue };
            let leaf = mount.point.join(below);
            for directory in leaf.ancestors().take_while(|dir| dir.starts_with(&mount.point)) {
                if let Some(quota) = quota_of(version, directory, read) {
                    smallest = Some(smallest.map_or(quota, |other| other.min(quota)));
                }
            }
        }
    }
    smallest
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
/// no say in CPU time.
fn parse_group(line: &str) -> Option<(Version, PathBuf)> {
    let mut fields = line.splitn(3, ':');
    let hierarchy = fields.next()?;
    let controllers = fields.next()?;
    let path = PathBuf::from(fields.next()?);
    if hierarchy == "0" && controllers.is_empty() {
        return Some((Version::V2, path));
    }
    controllers.split(',').any(|name| name == "cpu").then_some((Version::V1, path))
}

/// Reads a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)):
///
/// ```text
/// 36 35 98:0 /root /mount/point rw,noatime optional ... - type source super,options
/// ```
///
/// `None` if it mounts no CPU controller. A path with a space, which the kernel writes as `\040`,
/// is not decoded and so leads nowhere: its quota is not seen.
fn parse_mount(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(3);
    let root = PathBuf::from(mount.next()?);
    let point = PathBuf::from(mount.next()?);
    let mut filesystem = filesystem.split(' ');
    let has_cpu = match filesystem.next()? {
        "cgroup2" => true,
        "cgroup" => filesystem.nth(1)?.split(',').any(|option| option == "cpu"),
        _ => false,
    };
    has_cpu.then_some(Mount { root, point })
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
