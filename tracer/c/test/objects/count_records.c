// SPDX-License-Identifier: Apache-2.0 OR MIT
/* count_records FOLDER: whether the only area there has closed packets, or open ones with content. */
#include "../support/area_reader.h"

#include <stdio.h>

int main(int count, char **arguments)
{
    static struct reader reader;
    uint64_t bytes = 0;
    if (count < 2 || !reader_find(&reader, arguments[1])) {
        printf("%s\n", reader.problem);
        return 1;
    }
    for (uint32_t r = 0; reader.header->rings_ready == 2 && r < reader.header->ring_count; r++)
        bytes += reader_ring(&reader, r)->cursor;
    printf("%llu bytes of packets\n", (unsigned long long)bytes);
    /* More than the sizes of packet header, WRITER, PROCESS and THREAD_NAME. */
    return bytes <= 128 + 16 + 80 + 16;
}
