//! What the checks judge, read from the machine or made up by a test.

use baton_platform::{self as platform, CpuPlace, HostFacts, Reading, RingDiagnosis, UsableCpus};
use baton_runtime::{Driver, DriverChoice, RuntimeOptions, StartError, probe_driver};

use super::Check;
use crate::config::Limits;
use crate::limits::{DESCRIPTORS_PER_CONNECTION, DESCRIPTORS_RESERVED};

pub(super) struct Readings {
    pub(super) version: &'static str,
    pub(super) facts: HostFacts,
    pub(super) cpus: UsableCpus,
    /// Of the usable CPUs.
    pub(super) places: Vec<CpuPlace>,
    /// What the cores would run on, or why they would not.
    pub(super) driver: Result<Driver, String>,
    pub(super) ring: Ring,
    pub(super) need: Need,
}

/// How io_uring fares.
pub(super) enum Ring {
    /// The cores use it, or the system has none.
    Settled,
    /// It works, but only without the flags that make it worth having.
    Plain,
    Refused {
        error: String,
        diagnosis: RingDiagnosis,
    },
}

/// What a proxy with the default settings asks of the machine.
pub(super) struct Need {
    pub(super) connections: u64,
    pub(super) descriptors: u64,
    /// Finished handshakes that may wait at a listener.
    pub(super) backlog: u64,
}

impl Readings {
    pub(super) fn take() -> Readings {
        // In this order: the limits are told as they are found, then raised as a start would, so
        // that the trial of the driver has the descriptors that a start would have.
        let facts = platform::host_facts();
        // A refusal shows in the facts.
        let _raised = platform::raise_descriptor_limit();
        let cpus = platform::usable_cpus();
        let places = platform::topology(&cpus.ids);
        let (driver, ring) = try_drivers(cpus.count());
        let need = Need::default();
        Readings { version: env!("CARGO_PKG_VERSION"), facts, cpus, places, driver, ring, need }
    }

    /// The check of a fact that `judge` makes, where the fact is known.
    pub(super) fn check<T>(
        &self,
        name: &'static str,
        reading: &Reading<T>,
        judge: impl FnOnce(&T) -> Check,
    ) -> Check {
        match reading {
            Reading::Known(fact) => judge(fact),
            Reading::Absent if self.is_linux() => Check::ok(name, "this Linux has no such thing"),
            Reading::Absent => Check::ok(name, format!("{} has no such thing", self.facts.system)),
            Reading::Unknown(reason) => {
                let check = Check::note(name, format!("unknown: {reason}"), "it is not judged");
                match reason.as_str() {
                    "permission denied" => check.change("sudo baton doctor"),
                    _ => check,
                }
            }
        }
    }

    pub(super) fn is_linux(&self) -> bool {
        self.facts.system == "Linux"
    }
}

impl Default for Need {
    fn default() -> Need {
        let connections = Limits::default().connections as u64;
        Need {
            connections,
            descriptors: connections * DESCRIPTORS_PER_CONNECTION + DESCRIPTORS_RESERVED,
            backlog: RuntimeOptions::default().backlog.into(),
        }
    }
}

/// Goes the way of a start; where that ends at polling, asks for io_uring by name to hear why.
fn try_drivers(cores: usize) -> (Result<Driver, String>, Ring) {
    let driver = probe_driver(DriverChoice::Auto, cores).map_err(|error| error.to_string());
    if driver != Ok(Driver::Poll) {
        return (driver, Ring::Settled);
    }
    let ring = match probe_driver(DriverChoice::IoUring, cores) {
        Ok(_) => Ring::Plain,
        Err(StartError::Driver { error: Some(error), .. }) => {
            match platform::ring_diagnosis(&error) {
                Some(diagnosis) => Ring::Refused { error: error.to_string(), diagnosis },
                None => Ring::Settled,
            }
        }
        Err(_) => Ring::Settled,
    };
    (driver, ring)
}
