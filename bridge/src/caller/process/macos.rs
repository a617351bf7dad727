//! libproc and `sysctl`, as `<libproc.h>` and `<sys/proc_info.h>` describe them.

use std::{
    ffi::{OsString, c_int, c_void},
    mem::{MaybeUninit, size_of},
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
    ptr,
};

use super::Facts;

/// `PROC_PIDPATHINFO_MAXSIZE`.
const LONGEST_PATH: usize = 4 * 1024;

/// Arguments and environment together; the system allows no more.
const MOST_ARGUMENTS: usize = 1024 * 1024;

pub(super) fn facts(pid: u32) -> Option<Facts> {
    let pid = c_int::try_from(pid).ok()?;
    let info: libc::proc_bsdinfo = info(pid, libc::PROC_PIDTBSDINFO)?;
    let exe = path(pid);
    let name: Vec<u8> = info
        .pbi_name
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| byte.cast_unsigned())
        .collect();
    Some(Facts {
        exe_is_at_its_path: exe.as_ref().is_some_and(|path| path.exists()),
        exe,
        name: String::from_utf8_lossy(&name).into_owned(),
        args: arguments(pid).unwrap_or_default(),
        cwd: folder(pid),
        parent: info.pbi_ppid,
        started: info
            .pbi_start_tvsec
            .saturating_mul(1_000_000)
            .saturating_add(info.pbi_start_tvusec),
    })
}

/// One of `proc_pidinfo`'s structures.
fn info<T>(pid: c_int, flavor: c_int) -> Option<T> {
    let size = c_int::try_from(size_of::<T>()).ok()?;
    let mut info = MaybeUninit::<T>::zeroed();
    // SAFETY: the system writes at most `size` bytes, the structure's own.
    let written = unsafe { libc::proc_pidinfo(pid, flavor, 0, info.as_mut_ptr().cast::<c_void>(), size) };
    // SAFETY: all of it is written, and every bit pattern is valid for the system's plain structures.
    (written == size).then(|| unsafe { info.assume_init() })
}

fn path(pid: c_int) -> Option<PathBuf> {
    let mut buffer = vec![0_u8; LONGEST_PATH];
    let size = u32::try_from(buffer.len()).ok()?;
    // SAFETY: the system writes at most `size` bytes into the buffer of that length.
    let length = unsafe { libc::proc_pidpath(pid, buffer.as_mut_ptr().cast::<c_void>(), size) };
    buffer.truncate(usize::try_from(length).ok().filter(|length| *length > 0)?);
    Some(PathBuf::from(OsString::from_vec(buffer)))
}

fn folder(pid: c_int) -> Option<PathBuf> {
    let info: libc::proc_vnodepathinfo = info(pid, libc::PROC_PIDVNODEPATHINFO)?;
    let path: Vec<u8> = info
        .pvi_cdir
        .vip_path
        .iter()
        .flatten()
        .take_while(|byte| **byte != 0)
        .map(|byte| byte.cast_unsigned())
        .collect();
    (!path.is_empty()).then(|| PathBuf::from(OsString::from_vec(path)))
}

/// `KERN_PROCARGS2`: the count, the program's path, zeros, then the arguments, each ended by a zero.
fn arguments(pid: c_int) -> Option<Vec<OsString>> {
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, pid];
    let mut buffer = vec![0_u8; MOST_ARGUMENTS];
    let mut size = buffer.len();
    // SAFETY: `name` has the length that is said; the system writes at most `size` bytes and says how many.
    let failed = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            3,
            buffer.as_mut_ptr().cast::<c_void>(),
            &raw mut size,
            ptr::null_mut(),
            0,
        )
    };
    if failed != 0 {
        return None;
    }
    let (count, rest) = buffer.get(..size)?.split_first_chunk::<4>()?;
    let count = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let path_end = rest.iter().position(|byte| *byte == 0)?;
    let rest = rest.get(path_end..)?;
    let start = rest.iter().position(|byte| *byte != 0)?;
    let args = rest.get(start..)?.split(|byte| *byte == 0).take(count);
    Some(args.map(|arg| OsString::from_vec(arg.to_vec())).collect())
}
