# SPDX-License-Identifier: Apache-2.0 OR MIT
"""prepared.py LIBRARY FOLDER: areas that a recorder prepared (spec/ring-abi.md §2) are taken over if they
are as the program would make them, and else removed; and what a program that is recorded from its start says
of itself without asking /proc. FOLDER is empty, in shared memory. Plays the recorder. Prints each fact that
does not hold; exit status 1 if there is one."""

import fcntl
import os
import struct
import subprocess
import sys

library, folder = sys.argv[1:]
SESSION = 0xAB
MAGIC = 0x316165724174614C
PAGE, RING_BYTES, PACKET_BYTES = 4096, 1 << 20, 1 << 16
RINGS = 0x100000
CPUS = int(open("/sys/devices/system/cpu/possible").read().strip().replace(",", "-").split("-")[-1]) + 1
STRIDE = PAGE + RING_BYTES
problems = []


def expect(condition, *facts):
    if not condition:
        problems.append(" ".join(str(fact) for fact in facts))


prepared = f"{folder}/prepared-{SESSION:016x}"
os.mkdir(prepared, 0o700)
lock = open(f"{folder}/session-{SESSION:016x}.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
fcntl.lockf(lock, fcntl.LOCK_EX)


def areas():
    return [name for name in os.listdir(folder) if name.endswith(".area")]


def run(command=("/bin/true",), recorder=os.getpid(), more="", folder_of_run="/"):
    """Runs a program; what its area says, and its inode."""
    for name in areas():
        os.unlink(f"{folder}/{name}")
    request = (f"session={SESSION:x};recorder={recorder};lock;grow;cpus={CPUS};pidns=4242;{more}"
               f"buffer={RING_BYTES};packet={PACKET_BYTES};mode=discard;cap={RING_BYTES * CPUS};enable=io")
    environment = {"LD_PRELOAD": library, "LATERALIS_DIR": folder, "LATERALIS_RECORD": request}
    status = subprocess.run(command, env=environment, cwd=folder_of_run,
                            stdin=subprocess.DEVNULL).returncode
    expect(status == 0, command, "exit status", status)
    found = areas()
    expect(len(found) == 1 and not found[0].startswith("."), command, "areas", found)
    path = f"{folder}/{found[0]}"
    with open(path, "rb") as file:
        return file.read(RINGS), os.stat(path).st_ino


def word(area, offset):
    return struct.unpack_from("<I", area, offset)[0]


def long_word(area, offset):
    return struct.unpack_from("<Q", area, offset)[0]


def text(area, offset, length):
    return area[offset:offset + length].split(b"\0")[0].decode()


def prepare(change=None, length=None):
    """Prepares areas under both names; their inodes."""
    head = bytearray(template)
    if change:
        offset, value = change
        head[offset:offset + len(value)] = value
    inodes = set()
    for number in range(2):
        path = f"{prepared}/{number}"
        with open(path, "wb") as file:
            file.write(head)
            file.truncate(length or RINGS + STRIDE * CPUS)
            for ring in range(CPUS):
                place = RINGS + STRIDE * ring
                os.posix_fallocate(file.fileno(), place, PAGE + (128 << 10))
                control = bytearray(PAGE)
                struct.pack_into("<Q", control, 24, (RING_BYTES - 1) & ~7)
                struct.pack_into("<Q", control, 112, 128 << 10)
                os.pwrite(file.fileno(), control, place)
            os.fchmod(file.fileno(), 0o600)
        inodes.add(os.stat(path).st_ino)
    return inodes


# ---- what a program says of itself ------------------------------------------------------------
own, _ = run()
expect(long_word(own, 224) == 4242, "the namespace of its recorder", long_word(own, 224))
other, _ = run(recorder=os.getpid() + 1)
real = os.stat("/proc/self/ns/pid").st_ino
expect(long_word(other, 224) == real, "its own namespace", long_word(other, 224))
expect(os.path.realpath(text(own, 512, 256)) == os.path.realpath("/bin/true"), text(own, 512, 256))
script = f"{folder}/script"
with open(script, "w") as file:
    file.write("#!/bin/sh -e\n:\n")
os.chmod(script, 0o700)
shell = os.path.realpath("/bin/sh")
expect(os.path.realpath(text(run((script,))[0], 512, 256)) == shell, "the interpreter of a script")
relative, _ = run(("./true",), folder_of_run="/bin")
expect(text(relative, 512, 256) == os.path.realpath("/bin/true"), "a relative path", text(relative, 512, 256))

# ---- prepared areas -----------------------------------------------------------------------------
# As a recorder makes them, of an area that was not prepared; without what a program writes.
template = bytearray(own[:0x1B000 + PAGE])
for offset, length in ((0, 16), (48, 4), (76, 4), (128, 24), (512, 768), (0x1000, 0x4000)):
    template[offset:offset + length] = bytes(length)
if word(own, 64) != 1:
    print("SKIPPED: rings of this machine belong to threads")
    sys.exit(0)
inodes = prepare()
area, inode = run(more="prepared=2;")
expect(inode in inodes, "the prepared area was not taken")
expect(long_word(area, 0) == MAGIC and word(area, 48) != 0 and word(area, 76) == 2, "not filled in")
expect(word(area, 152) == word(own, 152), "its schema was registered again", word(area, 152))
expect(area[0x9000:0xA000] == own[0x9000:0xA000], "other events are on")
left = os.listdir(prepared)
expect(len(left) == 1, "one is taken by one program", left)
_, inode = run(more="prepared=2;")
expect(inode in inodes, "the other one was not taken")
_, inode = run(more="prepared=2;")
expect(inode not in inodes, "there was none")

changes = {
    "another version": (16, struct.pack("<I", 2)),
    "another byte order": (24, struct.pack("<I", 0)),
    "another session": (56, struct.pack("<Q", SESSION + 1)),
    "a process has it": (48, struct.pack("<I", 1)),
    "it has been an area": (0, struct.pack("<Q", MAGIC)),
    "it was in use": (76, struct.pack("<I", 1)),
    "another mode": (72, struct.pack("<I", 1)),
    "rings of threads": (64, struct.pack("<I", 2)),
    "more rings": (68, struct.pack("<I", CPUS + 1)),
    "rings far away": (88, struct.pack("<Q", STRIDE * 2)),
    "larger packets": (96, struct.pack("<Q", PACKET_BYTES * 2)),
    "more packets": (104, struct.pack("<Q", 2 * RING_BYTES // PACKET_BYTES)),
    "rings that are not ready": (112, struct.pack("<I", 1)),
    "more texts than there is room": (160, struct.pack("<Q", 1 << 40)),
}
for what, change in changes.items():
    inodes = prepare(change)
    _, inode = run(more="prepared=2;")
    expect(inode not in inodes, "taken:", what)
for what, length in (("a short file", RINGS), ("a long file", RINGS + STRIDE * (CPUS + 1))):
    inodes = prepare(None, length)
    _, inode = run(more="prepared=2;")
    expect(inode not in inodes, "taken:", what)
# A link, and a file of another user.
for number in range(2):
    path = f"{prepared}/{number}"
    if os.path.exists(path):
        os.unlink(path)
    os.symlink("/etc/hostname", path)
_, inode = run(more="prepared=2;")
expect(os.path.exists("/etc/hostname"), "a link was followed")
for number in range(2):
    if os.path.islink(path := f"{folder}/prepared-{SESSION:016x}-{number}"):
        os.unlink(path)
if os.geteuid() == 0:
    inodes = prepare()
    for number in range(2):
        os.chown(f"{prepared}/{number}", 65534, 65534)
    _, inode = run(more="prepared=2;")
    expect(inode not in inodes, "taken: a file of another user")

left = [name for name in os.listdir(prepared) if len(name) > 1]
expect(left == [], "what was refused is removed", left)
print("\n".join(problems))
sys.exit(1 if problems else 0)
