//! The process's image, times and command line. The folder it runs in is told to debuggers only, so relative scripts
//! stay unknown.

use std::{
    ffi::{OsString, c_void},
    os::windows::ffi::OsStringExt as _,
    path::PathBuf,
    ptr,
};

use windows_sys::{
    Wdk::System::Threading::{NtQueryInformationProcess, ProcessBasicInformation, ProcessCommandLineInformation},
    Win32::{
        Foundation::{CloseHandle, FILETIME, HANDLE, LocalFree, UNICODE_STRING},
        System::Threading::{
            GetProcessTimes, OpenProcess, PROCESS_BASIC_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION,
            QueryFullProcessImageNameW,
        },
        UI::Shell::CommandLineToArgvW,
    },
};

use super::Facts;

/// In UTF-16 units; the system's own limit for paths and command lines.
const LONGEST: usize = 32 * 1024;

pub(super) fn facts(pid: u32) -> Option<Facts> {
    // SAFETY: a system call without pointers.
    let process = unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION, 0, pid) };
    if process.is_null() {
        return None;
    }
    let facts = read(process);
    // SAFETY: the handle is ours and open.
    unsafe { CloseHandle(process) };
    facts
}

fn read(process: HANDLE) -> Option<Facts> {
    let exe = image(process);
    Some(Facts {
        exe_is_at_its_path: exe.as_ref().is_some_and(|path| path.exists()),
        exe,
        name: String::new(),
        args: arguments(process).unwrap_or_default(),
        cwd: None,
        parent: parent(process)?,
        started: started(process)?,
    })
}

fn image(process: HANDLE) -> Option<PathBuf> {
    let mut buffer = vec![0_u16; LONGEST];
    let mut length = u32::try_from(buffer.len()).ok()?;
    // SAFETY: the system writes at most `length` units, the buffer's own, and says how many.
    let done = unsafe { QueryFullProcessImageNameW(process, 0, buffer.as_mut_ptr(), &raw mut length) };
    buffer.truncate(length as usize);
    (done != 0).then(|| PathBuf::from(OsString::from_wide(&buffer)))
}

fn started(process: HANDLE) -> Option<u64> {
    let mut times = [FILETIME::default(); 4];
    let [created, ended, kernel, user] = &mut times;
    // SAFETY: four places for four times.
    if unsafe { GetProcessTimes(process, created, ended, kernel, user) } == 0 {
        return None;
    }
    Some(u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime))
}

fn parent(process: HANDLE) -> Option<u32> {
    let mut info = PROCESS_BASIC_INFORMATION::default();
    let size = u32::try_from(size_of::<PROCESS_BASIC_INFORMATION>()).ok()?;
    // SAFETY: the system writes at most `size` bytes, the structure's own.
    let status = unsafe {
        NtQueryInformationProcess(
            process,
            ProcessBasicInformation,
            (&raw mut info).cast::<c_void>(),
            size,
            ptr::null_mut(),
        )
    };
    if status < 0 {
        return None;
    }
    u32::try_from(info.InheritedFromUniqueProcessId).ok()
}

fn arguments(process: HANDLE) -> Option<Vec<OsString>> {
    // A UNICODE_STRING and behind it the text it points to; of u64 for its alignment.
    let mut buffer = vec![0_u64; LONGEST / 2];
    let size = u32::try_from(buffer.len() * 8).ok()?;
    // SAFETY: the system writes at most `size` bytes, the buffer's own.
    let status = unsafe {
        NtQueryInformationProcess(
            process,
            ProcessCommandLineInformation,
            buffer.as_mut_ptr().cast::<c_void>(),
            size,
            ptr::null_mut(),
        )
    };
    if status < 0 {
        return None;
    }
    // SAFETY: the system has written a UNICODE_STRING whose text lies in the same buffer.
    let mut line: Vec<u16> = unsafe {
        let text = &*buffer.as_ptr().cast::<UNICODE_STRING>();
        if text.Buffer.is_null() {
            return None;
        }
        std::slice::from_raw_parts(text.Buffer, usize::from(text.Length) / 2).to_vec()
    };
    line.push(0);
    let mut count = 0;
    // SAFETY: the line ends with a zero; what is returned is `count` texts that end with one, in one block to be freed.
    unsafe {
        let args = CommandLineToArgvW(line.as_ptr(), &raw mut count);
        if args.is_null() {
            return None;
        }
        let found = (0..usize::try_from(count).unwrap_or(0)).map(|at| {
            let text = *args.add(at);
            let length = (0..).take_while(|unit| *text.add(*unit) != 0).count();
            OsString::from_wide(std::slice::from_raw_parts(text, length))
        });
        let found = found.collect();
        LocalFree(args.cast::<c_void>());
        Some(found)
    }
}
