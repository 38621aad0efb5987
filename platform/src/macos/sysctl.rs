//! Numbers the kernel publishes by name.

use std::ffi::CStr;
use std::ptr;

use libc::c_int;

/// The value of a sysctl that is a C `int`; `None` if there is none of that name and size.
pub(super) fn sysctl_int(name: &CStr) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut bytes = size_of::<c_int>();
    // SAFETY: `name` ends in NUL; `value` is valid for a write of `bytes` bytes, and `bytes` for a
    // write; nothing is set, so the new value is null with length 0.
    let failed = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            (&raw mut value).cast(),
            &raw mut bytes,
            ptr::null_mut(),
            0,
        )
    };
    (failed == 0 && bytes == size_of::<c_int>()).then_some(value)
}
