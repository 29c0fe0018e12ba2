// SPDX-License-Identifier: Apache-2.0 OR MIT
/* `newc DIRECTORY… PATH=FILE…`: writes an initramfs with these directories and executables to standard
 * output, in the "newc" format of cpio (Linux, Documentation/driver-api/early-userspace). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTORY 0040755u
#define EXECUTABLE 0100755u

static unsigned next_inode = 1;

static void pad(size_t written)
{
    static const char zeros[4];
    fwrite(zeros, 1, (4 - written % 4) % 4, stdout);
}

static void entry(const char *name, unsigned mode, const char *bytes, size_t length)
{
    const size_t name_bytes = strlen(name) + 1;
    /* magic, then 8 hexadecimal digits each: inode mode uid gid links time size, device twice and
     * that of a special file twice, bytes of the name, checksum */
    printf("070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x", next_inode++, mode, 0u,
           0u, 1u, 0u, length, 0u, 0u, 0u, 0u, name_bytes, 0u);
    fwrite(name, 1, name_bytes, stdout);
    pad(110 + name_bytes);
    fwrite(bytes, 1, length, stdout);
    pad(length);
}

static int file_entry(const char *name, const char *path)
{
    FILE *file = fopen(path, "rb");
    long length;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0 || (length = ftell(file)) < 0) {
        perror(path);
        return 0;
    }
    char *bytes = malloc((size_t)length + 1);
    rewind(file);
    if (bytes == NULL || fread(bytes, 1, (size_t)length, file) != (size_t)length) {
        perror(path);
        return 0;
    }
    entry(name, EXECUTABLE, bytes, (size_t)length);
    free(bytes);
    fclose(file);
    return 1;
}

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        char *path = strchr(arguments[i], '=');
        if (path == NULL) {
            entry(arguments[i], DIRECTORY, "", 0);
            continue;
        }
        *path = 0;
        if (!file_entry(arguments[i], path + 1))
            return 1;
    }
    next_inode = 0;
    entry("TRAILER!!!", 0, "", 0);
    return fflush(stdout) != 0 || ferror(stdout);
}
