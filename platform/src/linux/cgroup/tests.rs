//! Quota and limit as functions of text: files are a map from path to content.

use std::collections::HashMap;
use std::path::Path;

use super::{smallest_memory_limit, smallest_quota};

const MOUNTS_V2: &str = "\
    22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
    30 22 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

const MOUNTS_V1: &str = "\
    31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
    32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
    33 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n";

fn quota(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<f64> {
    let files: HashMap<&Path, &str> =
        files.iter().map(|&(path, text)| (Path::new(path), text)).collect();
    smallest_quota(groups, mounts, &|path| files.get(path).map(|&text| text.to_owned()))
}

#[test]
fn garbage_means_no_quota() {
    for cpu_max in ["", "\n", "max", "50000", "50000 0\n", "50000 100000 7\n", "x y\n", "-5 100\n"]
    {
        let files = [("/sys/fs/cgroup/cpu.max", cpu_max)];
        assert_eq!(quota("0::/\n", MOUNTS_V2, &files), None, "{cpu_max:?}");
    }
    let files = [("/sys/fs/cgroup/cpu.max", "50000 100000\n")];
    assert_eq!(quota("0::/\n", "not a mount table\n - \n", &files), None);
    assert_eq!(quota("nonsense\n0:\n", MOUNTS_V2, &files), None);
}

#[test]
fn max_means_no_quota() {
    assert_eq!(quota("0::/\n", MOUNTS_V2, &[("/sys/fs/cgroup/cpu.max", "max 100000\n")]), None);
}

#[test]
fn version_2_divides_quota_by_period() {
    let files = [("/sys/fs/cgroup/web/cpu.max", "150000 100000\n")];
    assert_eq!(quota("0::/web\n", MOUNTS_V2, &files), Some(1.5));
}

#[test]
fn the_smallest_quota_on_the_way_to_the_root_binds() {
    let groups = "0::/system.slice/baton.service/cores\n";
    let files = [
        ("/sys/fs/cgroup/system.slice/cpu.max", "300000 100000\n"),
        ("/sys/fs/cgroup/system.slice/baton.service/cpu.max", "200000 100000\n"),
        ("/sys/fs/cgroup/system.slice/baton.service/cores/cpu.max", "max 100000\n"),
        ("/sys/fs/cgroup/system.slice/other.service/cpu.max", "10000 100000\n"),
        // Neither above the hierarchy nor on a disk that has a directory of the same name.
        ("/sys/fs/cpu.max", "10000 100000\n"),
        ("/system.slice/cpu.max", "10000 100000\n"),
    ];
    assert_eq!(quota(groups, MOUNTS_V2, &files), Some(2.0));
}

#[test]
fn version_1_reads_the_mount_of_the_cpu_controller() {
    let groups = "9:name=systemd:/\n4:cpuset:/docker/abc\n2:cpu,cpuacct:/docker/abc\n";
    let files = [
        ("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "50000\n"),
        ("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n"),
        ("/sys/fs/cgroup/cpuset/docker/abc/cpu.cfs_quota_us", "10000\n"),
        ("/sys/fs/cgroup/cpuset/docker/abc/cpu.cfs_period_us", "100000\n"),
    ];
    assert_eq!(quota(groups, MOUNTS_V1, &files), Some(0.5));
}

#[test]
fn a_negative_quota_of_version_1_is_unlimited() {
    let files = [
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
        ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
    ];
    assert_eq!(quota("2:cpu,cpuacct:/\n", MOUNTS_V1, &files), None);
}

#[test]
fn a_container_sees_its_own_subtree_at_the_mount_point() {
    // The group's path is the host's, and the mount shows that group as its root.
    let mounts = "40 39 0:26 /docker/abc /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw\n";
    let files = [("/sys/fs/cgroup/cpu.max", "25000 100000\n")];
    assert_eq!(quota("0::/docker/abc\n", mounts, &files), Some(0.25));
    assert_eq!(quota("0::/docker/abcdef\n", mounts, &files), None);
}

#[test]
fn with_both_versions_mounted_the_one_with_a_quota_counts() {
    let mounts =
        format!("{MOUNTS_V1}41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    let groups = "2:cpu,cpuacct:/web\n0::/web\n";
    let files = [
        ("/sys/fs/cgroup/cpu,cpuacct/web/cpu.cfs_quota_us", "70000\n"),
        ("/sys/fs/cgroup/cpu,cpuacct/web/cpu.cfs_period_us", "100000\n"),
    ];
    assert_eq!(quota(groups, &mounts, &files), Some(0.7));
}

fn memory(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
    let files: HashMap<&Path, &str> =
        files.iter().map(|&(path, text)| (Path::new(path), text)).collect();
    smallest_memory_limit(groups, mounts, &|path| files.get(path).map(|&text| text.to_owned()))
}

#[test]
fn garbage_and_the_words_for_unlimited_mean_no_memory_limit() {
    for limit in ["", "max\n", "-1\n", "9223372036854771712\n", "1 2\n"] {
        let files = [("/sys/fs/cgroup/memory.max", limit)];
        assert_eq!(memory("0::/\n", MOUNTS_V2, &files), None, "{limit:?}");
    }
}

#[test]
fn the_smallest_memory_limit_binds_in_both_versions() {
    let files = [
        ("/sys/fs/cgroup/a/memory.max", "536870912\n"),
        ("/sys/fs/cgroup/a/b/memory.max", "1073741824\n"),
    ];
    assert_eq!(memory("0::/a/b\n", MOUNTS_V2, &files), Some(536_870_912));
    let mounts = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n";
    let files = [
        ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "268435456\n"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
    ];
    assert_eq!(memory("4:memory:/a\n", mounts, &files), Some(268_435_456));
}
