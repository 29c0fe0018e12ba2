// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A packet socket with its ring [packet(7); Documentation/networking/packet_mmap.rst].
//!
//! TPACKET_V3, because it needs no system call for each packet, buffers a burst of megabytes while
//! the recorder is busy elsewhere, stamps in nanoseconds, and includes direction and VLAN tag in each
//! frame. A socket without a ring has room for some hundred packets, and needs one call for each.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Size of a block, the unit that the kernel hands over. Holds the longest frames.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks of a ring.
const BLOCKS_MIN: usize = 4;
const BLOCKS_MAX: usize = 4096;
/// Irrelevant in this version, except that it must divide the block size.
const FRAME_BYTES: usize = 2048;
/// A block with packets is handed over after this time even if it is not full.
const HAND_OVER_MS: u32 = 10;
/// Offset of `block_status` in a block.
const BLOCK_STATUS: usize = 8;
/// `ARPHRD_LOOPBACK`
const LOOPBACK: u16 = 772;

/// Counts of the kernel since the last query.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    /// Packets that passed the filter, the dropped ones included.
    pub(super) received: u64,
    /// Packets for which there was no room in the ring.
    pub(super) dropped: u64,
}

/// A packet socket with its ring.
pub(super) struct PacketSocket {
    fd: OwnedFd,
    ring: NonNull<u8>,
    blocks: usize,
    next: usize,
    snap_bytes: u32,
    /// `ARPHRD_…` of the interface.
    pub(super) hardware_type: u16,
}

// SAFETY: the ring is mapped for this value alone and unmapped with it; it is not bound to a thread.
unsafe impl Send for PacketSocket {}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_option<T>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value has the given length and lives during the call, which only reads it.
    check(unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length)
    })
}

/// Accepts the first `snap_bytes` of each packet; 0 rejects all packets.
fn set_filter(fd: BorrowedFd<'_>, snap_bytes: u32) -> io::Result<()> {
    // BPF_RET | BPF_K
    let mut program = [libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: snap_bytes }];
    let program = libc::sock_fprog { len: 1, filter: program.as_mut_ptr() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn index_of(name: &str) -> io::Result<i32> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::NotFound))?;
    // SAFETY: the name ends with NUL and lives during the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 { Err(io::Error::last_os_error()) } else { Ok(index as i32) }
}

/// Names of the interfaces in this network namespace.
pub(super) fn interfaces() -> Vec<String> {
    let mut names = Vec::new();
    // SAFETY: the list ends with an entry without a name, each name with NUL; it is freed once.
    unsafe {
        let list = libc::if_nameindex();
        let mut at = list;
        while !at.is_null() && !(*at).if_name.is_null() {
            names.push(std::ffi::CStr::from_ptr((*at).if_name).to_string_lossy().into_owned());
            at = at.add(1);
        }
        if !list.is_null() {
            libc::if_freenameindex(list);
        }
    }
    names
}

fn address(index: i32, protocol: u16) -> libc::sockaddr_ll {
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_ifindex = index;
    address.sll_protocol = protocol.to_be();
    address
}

fn bind(fd: BorrowedFd<'_>, address: &libc::sockaddr_ll) -> io::Result<()> {
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address has the given length and lives during the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(address).cast(), length) })
}

impl PacketSocket {
    /// Opens a socket on an interface, with a ring of about `ring_bytes`; nothing is received before
    /// [`PacketSocket::start`].
    pub(super) fn open(name: &str, snap_bytes: u32, ring_bytes: u64) -> io::Result<PacketSocket> {
        let index = index_of(name)?;
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no pointers. Protocol 0: nothing is received yet.
        let raw = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        check(raw)?;
        // SAFETY: the descriptor was just created and has no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        bind(fd.as_fd(), &address(index, 0))?;
        let hardware_type = hardware_type(fd.as_fd())?;
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_VERSION, &2i32)?;
        let blocks = usize::try_from(ring_bytes).unwrap_or(usize::MAX) / BLOCK_BYTES;
        let blocks = blocks.clamp(BLOCKS_MIN, BLOCKS_MAX);
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (BLOCK_BYTES / FRAME_BYTES * blocks) as u32,
            tp_retire_blk_tov: HAND_OVER_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        if hardware_type == LOOPBACK {
            // Each packet passes twice there, outgoing and incoming. Captured once, as by other tools.
            set_option(fd.as_fd(), libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32)?;
        }
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh address; the ring has the requested length.
        let ring = unsafe {
            mmap(std::ptr::null_mut(), blocks * BLOCK_BYTES, flags, MapFlags::SHARED, &fd, 0)
        }?;
        let Some(ring) = NonNull::new(ring.cast()) else {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        };
        Ok(PacketSocket { fd, ring, blocks, next: 0, snap_bytes, hardware_type })
    }

    /// Starts receiving.
    pub(super) fn start(&self, name: &str) -> io::Result<()> {
        set_filter(self.fd.as_fd(), self.snap_bytes)?;
        bind(self.fd.as_fd(), &address(index_of(name)?, libc::ETH_P_ALL as u16))
    }

    /// Stops or resumes receiving.
    pub(super) fn pause(&self, paused: bool) -> io::Result<()> {
        set_filter(self.fd.as_fd(), if paused { 0 } else { self.snap_bytes })
    }

    /// Readable when the kernel has handed over a block.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Visits the next block that the kernel has handed over, and returns it to the kernel; returns whether
    /// there was one.
    pub(super) fn take(&mut self, look: impl FnOnce(&[u8])) -> bool {
        // SAFETY: `next` is below `blocks`, so the block is inside the ring, which is mapped as long
        // as this value lives; the word is aligned, and both sides access it atomically.
        let status = unsafe {
            AtomicU32::from_ptr(
                self.ring.as_ptr().add(self.next * BLOCK_BYTES + BLOCK_STATUS).cast(),
            )
        };
        // Pairs with the kernel's barrier before it hands a block over: its frames are complete.
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: as above; the kernel does not write to a block that it has handed over, and
        // there is no other user of this mapping. The status word in it is not written while this lives.
        let block = unsafe {
            std::slice::from_raw_parts(self.ring.as_ptr().add(self.next * BLOCK_BYTES), BLOCK_BYTES)
        };
        look(block);
        // Pairs with the kernel's read of the word before it reuses the block.
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.blocks;
        true
    }

    /// The kernel's counts since the last call.
    pub(super) fn counted(&self) -> io::Result<Counted> {
        // SAFETY: all zeros is a valid value.
        let mut counts: libc::tpacket_stats_v3 = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the structure has the given length and lives during the call.
        check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut counts).cast(),
                &mut length,
            )
        })?;
        Ok(Counted { received: counts.tp_packets.into(), dropped: counts.tp_drops.into() })
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        // SAFETY: mapped in `open` with this length; no borrow of it remains.
        let _ = unsafe { munmap(self.ring.as_ptr().cast(), self.blocks * BLOCK_BYTES) };
    }
}

/// `ARPHRD_…` of the interface that a socket is bound to.
fn hardware_type(fd: BorrowedFd<'_>) -> io::Result<u16> {
    let mut bound = address(0, 0);
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address has the given length and lives during the call.
    check(unsafe {
        libc::getsockname(fd.as_raw_fd(), std::ptr::from_mut(&mut bound).cast(), &mut length)
    })?;
    Ok(bound.sll_hatype)
}
