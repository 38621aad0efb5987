//! The command that changes a setting of the machine, for where the proxy runs.

use baton_platform::Container;

use super::readings::Readings;

/// Limits of a process.
#[derive(Clone, Copy)]
pub(super) enum Resource {
    OpenFiles,
    /// Bytes.
    LockedMemory,
}

/// Sets a sysctl that each network namespace has for itself: for a container it is set from outside.
pub(super) fn network_sysctl(readings: &Readings, name: &str, value: &str) -> String {
    match &readings.facts.container {
        Some(Container::Docker) => format!("docker run --sysctl {name}={} ...", quoted(value)),
        Some(Container::Podman) => format!("podman run --sysctl {name}={} ...", quoted(value)),
        Some(Container::Kubernetes) => format!(
            "in the pod, securityContext: {{ sysctls: [{{ name: {name}, value: \"{value}\" }}] }}"
        ),
        Some(Container::Other(_)) | None => sysctl(name, value),
    }
}

/// Sets a sysctl of the whole machine.
pub(super) fn machine_sysctl(readings: &Readings, name: &str, value: &str) -> String {
    on_the_machine(readings, sysctl(name, value))
}

/// A command that a container cannot run for itself.
pub(super) fn on_the_machine(readings: &Readings, command: String) -> String {
    match readings.facts.container {
        Some(_) => format!("on the host, {command}"),
        None => command,
    }
}

/// Raises a limit for the process, both the soft and the hard one.
pub(super) fn limit(readings: &Readings, resource: Resource, value: u64) -> String {
    let (name, flag, setting, shell_value) = match resource {
        Resource::OpenFiles => ("nofile", "-n", "LimitNOFILE", value),
        // The shell counts in KiB.
        Resource::LockedMemory => ("memlock", "-l", "LimitMEMLOCK", value.div_ceil(1024)),
    };
    match &readings.facts.container {
        Some(Container::Docker) => format!("docker run --ulimit {name}={value}:{value} ..."),
        Some(Container::Podman) => format!("podman run --ulimit {name}={value}:{value} ..."),
        Some(Container::Kubernetes) => {
            format!("on the node, {setting}={value} in the unit of its container runtime")
        }
        Some(Container::Other(_)) | None if readings.is_linux() => {
            format!("{setting}={value} in the systemd unit, or as root ulimit {flag} {shell_value}")
        }
        Some(Container::Other(_)) | None => format!("as root, ulimit {flag} {shell_value}"),
    }
}

fn sysctl(name: &str, value: &str) -> String {
    format!("sudo sysctl -w {name}={}", quoted(value))
}

/// For a shell: a value of two numbers is one word.
fn quoted(value: &str) -> String {
    if value.contains(' ') { format!("\"{value}\"") } else { value.to_owned() }
}
