//! The kernel's list format for sets of CPUs.

/// Highest count of CPUs believed, and so the bound on what a list expands to.
/// The largest `NR_CPUS` of any Linux architecture is 8192. A list beyond it is refused.
const CPUS_MAX: usize = 8192;

/// Reads a list such as `0-3,8` (cpuset(7), "List format"). `None` if it is malformed; empty for an
/// empty list, as a memory node without CPUs has.
pub(super) fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let text = text.trim();
    let mut cpus = Vec::new();
    if text.is_empty() {
        return Some(cpus);
    }
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: usize = first.parse().ok()?;
        let last: usize = last.parse().ok()?;
        if first > last || last >= CPUS_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::parse_cpu_list;

    #[test]
    fn malformed_lists_are_refused() {
        for text in ["x", "1-", "-1", "3-1", "0,", ",0", "0-3-5", "0 1", "0-4294967295", "8192"] {
            assert_eq!(parse_cpu_list(text), None, "{text:?}");
        }
    }

    #[test]
    fn ranges_and_single_cpus_expand_in_order() {
        assert_eq!(parse_cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list("5"), Some(vec![5]));
        assert_eq!(parse_cpu_list("8191"), Some(vec![8191]));
    }

    #[test]
    fn a_node_without_cpus_has_an_empty_list() {
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
    }
}
