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

/// The value of a sysctl that is a text of less than `BYTES_MAX` bytes; `None` otherwise.
pub(super) fn sysctl_text<const BYTES_MAX: usize>(name: &CStr) -> Option<String> {
    let mut value = [0_u8; BYTES_MAX];
    let mut bytes = BYTES_MAX;
    // SAFETY: `name` ends in NUL; `value` is valid for a write of `bytes` bytes, and `bytes` for a
    // write; nothing is set, so the new value is null with length 0.
    let failed = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            value.as_mut_ptr().cast(),
            &raw mut bytes,
            ptr::null_mut(),
            0,
        )
    };
    if failed != 0 {
        return None;
    }
    let text = CStr::from_bytes_until_nul(value.get(..bytes)?).ok()?;
    Some(text.to_str().ok()?.to_owned())
}
