//! Room: descriptors and memory.

use baton_platform::{Container, Limit};
use baton_runtime::{BODY_BUFFER_BYTES, HEAD_BUFFER_BYTES};

use super::Check;
use super::readings::Readings;
use super::remedy::{self, Resource};
use crate::limits::{DESCRIPTORS_PER_CONNECTION, DESCRIPTORS_RESERVED};
use crate::units::format_size;

/// What a busy connection may hold in buffers, bytes: a head from each side and one piece of a
/// body. Reckoned, and more than most hold.
const BUSY_CONNECTION_BYTES: u64 = (2 * HEAD_BUFFER_BYTES + BODY_BUFFER_BYTES) as u64;

pub(super) fn checks(readings: &Readings) -> Vec<Check> {
    vec![
        descriptors(readings),
        locked_memory(readings),
        memory_limit(readings),
        overcommit(readings),
        huge_pages(readings),
    ]
}

/// The proxy raises the soft limit by itself, so the hard one decides.
fn descriptors(readings: &Readings) -> Check {
    const NAME: &str = "open files";
    let need = &readings.need;
    readings.check(NAME, &readings.facts.descriptors, |limit| {
        let value = format!(
            "{}; {} connections need {}",
            in_words(limit, |count| count.to_string()),
            need.connections,
            need.descriptors
        );
        let Some(hard) = limit.hard.filter(|&hard| hard < need.descriptors) else {
            return Check::ok(NAME, value);
        };
        let room = hard.saturating_sub(DESCRIPTORS_RESERVED) / DESCRIPTORS_PER_CONNECTION;
        let meaning = format!("at most {} connections are accepted at once", room.max(1));
        let change = if readings.is_linux() {
            remedy::limit(readings, Resource::OpenFiles, need.descriptors)
        } else {
            let value = need.descriptors.to_string();
            remedy::machine_sysctl(readings, "kern.maxfilesperproc", &value)
        };
        Check::warn(NAME, value, meaning).change(change)
    })
}

/// Whether it suffices is seen from the trial of the driver, which says so where it does not.
fn locked_memory(readings: &Readings) -> Check {
    const NAME: &str = "locked memory";
    readings.check(NAME, &readings.facts.locked_memory, |limit| {
        Check::ok(NAME, in_words(limit, format_size))
    })
}

fn memory_limit(readings: &Readings) -> Check {
    const NAME: &str = "memory limit";
    let connections = readings.need.connections;
    readings.check(NAME, &readings.facts.memory_limit, |limit| {
        let Some(bytes) = *limit else { return Check::ok(NAME, "none") };
        let value = format_size(bytes);
        let need = connections * BUSY_CONNECTION_BYTES;
        if bytes >= need {
            return Check::ok(NAME, value);
        }
        let meaning = format!(
            "{connections} busy connections may hold {}, and the kernel ends what goes over its limit",
            format_size(need)
        );
        let raise = match readings.facts.container {
            Some(Container::Docker) => format!("docker run --memory {need}b ..."),
            Some(Container::Podman) => format!("podman run --memory {need}b ..."),
            Some(Container::Kubernetes) => format!("in the pod, resources.limits.memory: {need}"),
            Some(Container::Other(_)) | None => format!("MemoryMax={need} in the systemd unit"),
        };
        let fewer = (bytes / BUSY_CONNECTION_BYTES).max(1);
        Check::note(NAME, value, meaning)
            .change(format!("{raise}, or connections = {fewer} under [limits]"))
    })
}

/// Values as in proc_sys_vm(5).
fn overcommit(readings: &Readings) -> Check {
    const NAME: &str = "overcommit";
    readings.check(NAME, &readings.facts.overcommit, |mode| match mode {
        0 => Check::ok(NAME, "0, by estimate"),
        1 => Check::ok(NAME, "1, always"),
        _ => Check::note(
            NAME,
            format!("{mode}, never"),
            "memory that is reserved and not used counts too, such as the stacks of threads, so a \
             start may fail with memory left",
        )
        .change(remedy::machine_sysctl(readings, "vm.overcommit_memory", "0")),
    })
}

fn huge_pages(readings: &Readings) -> Check {
    const NAME: &str = "huge pages";
    readings.check(NAME, &readings.facts.huge_pages, |choice| match choice.as_str() {
        "always" => Check::note(
            NAME,
            "always",
            "the process may take up more memory than it uses, and gives less back after a burst",
        )
        .change(remedy::on_the_machine(
            readings,
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
        )),
        choice => Check::ok(NAME, choice),
    })
}

pub(super) fn in_words(limit: &Limit, write: impl Fn(u64) -> String) -> String {
    let word = |limit: Option<u64>| limit.map_or_else(|| "unlimited".to_owned(), &write);
    format!("soft {}, hard {}", word(limit.soft), word(limit.hard))
}
