// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What Intel's library decodes up to the first error: the number of instructions, a hash of their addresses,
 * the number of errors.
 *
 *     libipt TRACE [FILE:ADDRESS]...
 */
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    FILE *file = fopen(arguments[1], "rb");
    if (file == NULL)
        return 2;
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    rewind(file);
    uint8_t *trace = malloc((size_t)bytes + 1);
    if (fread(trace, 1, (size_t)bytes, file) != (size_t)bytes)
        return 2;
    struct pt_config config;
    pt_config_init(&config);
    config.begin = trace;
    config.end = trace + bytes;
    struct pt_insn_decoder *decoder = pt_insn_alloc_decoder(&config);
    struct pt_image *image = pt_insn_get_image(decoder);
    for (int at = 2; at < count; at++) {
        char *colon = strrchr(arguments[at], ':');
        *colon = 0;
        if (pt_image_add_file(image, arguments[at], 0, UINT64_MAX, NULL, strtoull(colon + 1, NULL, 16)) < 0)
            return 2;
    }
    uint64_t instructions = 0, hash = UINT64_C(0xcbf29ce484222325), errors = 0;
    int status = pt_insn_sync_forward(decoder);
    while (status != -pte_eos) {
        if (status < 0) {
            uint64_t offset = 0;
            pt_insn_get_offset(decoder, &offset);
            fprintf(stderr, "byte %" PRIu64 ": %s\n", offset, pt_errstr(pt_errcode(status)));
            errors++;
            break;
        }
        if (status & pts_event_pending) {
            struct pt_event event;
            status = pt_insn_event(decoder, &event, sizeof event);
            continue;
        }
        struct pt_insn instruction;
        status = pt_insn_next(decoder, &instruction, sizeof instruction);
        if (status >= 0) {
            instructions++;
            hash = (hash ^ instruction.ip) * UINT64_C(0x100000001b3);
        }
    }
    printf("%" PRIu64 " %016" PRIx64 " %" PRIu64 "\n", instructions, hash, errors);
    return 0;
}
