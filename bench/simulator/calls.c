// SPDX-License-Identifier: Apache-2.0 OR MIT
// Six system calls, twenty times each, after a round that loads what they need.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int count, char **words) {
    char bytes[64];
    for (int i = 0; i < 21; i++) {
        char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *(volatile char *)pages = 1;
        munmap(pages, 8192);
        int file = open(words[count - 1], O_RDONLY);
        if (read(file, bytes, sizeof bytes) < 0) {
            return 1;
        }
        close(file);
        syscall(SYS_getppid);
    }
    return 0;
}
