// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Two processes that can be recorded separately: one sends orders through a named pipe, the
 * other receives them. Both use the schema of examples/slowdown.
 *
 *     two_sides send|receive PIPE COUNT
 */
#define _GNU_SOURCE

#include "slowdown.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    const int sends = strcmp(argv[1], "send") == 0;
    const int fd = open(argv[2], sends ? O_WRONLY : O_RDONLY);
    if (fd < 0)
        return 1;
    const uint32_t count = (uint32_t)strtoul(argv[3], NULL, 10);
    for (uint32_t id = 1; id <= count; id++) {
        uint32_t letter = id;
        if (sends) {
            lat_shop_order(id);
            if (write(fd, &letter, sizeof letter) != (ssize_t)sizeof letter)
                return 1;
        } else {
            if (read(fd, &letter, sizeof letter) != (ssize_t)sizeof letter)
                return 1;
            lat_desk_order(letter);
        }
    }
    return 0;
}
