//! The topology of machines laid out as files in a directory of the test's own.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, process};

use super::topology_under;
use crate::cpu::CpuPlace;

/// A directory in the place of `/sys/devices/system`; removed at the end of the test.
struct FakeSystem(PathBuf);

impl FakeSystem {
    fn new(files: &[(&str, &str)]) -> Self {
        static CREATED: AtomicUsize = AtomicUsize::new(0);
        let number = CREATED.fetch_add(1, Ordering::Relaxed);
        let root = env::temp_dir().join(format!("baton-topology-{}-{number}", process::id()));
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().expect("the path is below the root")).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(root)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for FakeSystem {
    fn drop(&mut self) {
        // A system without files has no directory to remove.
        drop(fs::remove_dir_all(&self.0));
    }
}

fn place(cpu: usize, smt: usize, llc: usize, numa: usize) -> CpuPlace {
    CpuPlace { cpu, smt, llc, numa }
}

#[test]
fn without_sysfs_all_cpus_are_cores_in_one_group() {
    let system = FakeSystem::new(&[]);
    assert_eq!(topology_under(system.path(), &[0, 5]), [place(0, 0, 0, 0), place(5, 5, 0, 0)]);
}

#[test]
fn unreadable_files_count_as_missing() {
    let system = FakeSystem::new(&[
        ("cpu/cpu3/topology/thread_siblings_list", "three\n"),
        ("cpu/cpu3/cache/index0/level", "high\n"),
        ("cpu/cpu3/cache/index0/shared_cpu_list", "2-3\n"),
        ("node/node1/cpulist", "3-\n"),
        ("node/nodeX/cpulist", "3\n"),
        ("node/possible", "0-1\n"),
    ]);
    assert_eq!(topology_under(system.path(), &[3]), [place(3, 3, 0, 0)]);
}

#[test]
fn shared_parts_are_named_by_their_lowest_cpu() {
    // Two sockets of two cores of two threads; a CPU and its hyper-thread are 4 apart.
    let mut files = Vec::new();
    for cpu in 0..8 {
        let core = cpu % 4;
        let socket = if core < 2 { "0-1,4-5\n" } else { "2-3,6-7\n" };
        let siblings = format!("{core},{}\n", core + 4);
        let directory = format!("cpu/cpu{cpu}");
        let mut file = |path: &str, text: &str| {
            files.push((format!("{directory}/{path}"), text.to_owned()));
        };
        file("topology/thread_siblings_list", &siblings);
        file("cache/index0/level", "1\n");
        file("cache/index0/shared_cpu_list", &siblings);
        file("cache/index1/level", "3\n");
        file("cache/index1/shared_cpu_list", socket);
        // The order of the indexes is not the order of the levels.
        file("cache/index2/level", "2\n");
        file("cache/index2/shared_cpu_list", &siblings);
    }
    files.push(("node/node0/cpulist".to_owned(), "0-1,4-5\n".to_owned()));
    files.push(("node/node1/cpulist".to_owned(), "2-3,6-7\n".to_owned()));
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let system = FakeSystem::new(&files);

    // Answers come in the order asked, for the CPUs asked.
    assert_eq!(
        topology_under(system.path(), &[7, 1, 5]),
        [place(7, 3, 2, 1), place(1, 1, 0, 0), place(5, 1, 0, 0)]
    );
}

#[test]
fn this_machine_has_a_place_for_each_cpu_asked() {
    let cpus: Vec<usize> = super::topology(&[0, 1]).iter().map(|place| place.cpu).collect();
    assert_eq!(cpus, [0, 1]);
}
