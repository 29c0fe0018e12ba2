// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Decodes a file of packets with Intel's library repeatedly and prints how long each round took.
 *
 *     libipt block|instruction ROUNDS PACKETS [FILE:ADDRESS]...
 *
 * Prints the number of instructions and of errors, then the seconds of each round.
 */
#include <intel-pt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct pt_image *image;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t by_block(const struct pt_config *config, uint64_t *errors)
{
    struct pt_block_decoder *decoder = pt_blk_alloc_decoder(config);
    uint64_t instructions = 0;
    pt_blk_set_image(decoder, image);
    int status = pt_blk_sync_forward(decoder);
    while (status != -pte_eos) {
        if (status < 0) {
            *errors += 1;
            status = pt_blk_sync_forward(decoder);
        } else if (status & pts_event_pending) {
            struct pt_event event;
            status = pt_blk_event(decoder, &event, sizeof event);
        } else {
            struct pt_block block = { 0 };
            status = pt_blk_next(decoder, &block, sizeof block);
            instructions += block.ninsn;
        }
    }
    pt_blk_free_decoder(decoder);
    return instructions;
}

static uint64_t by_instruction(const struct pt_config *config, uint64_t *errors)
{
    struct pt_insn_decoder *decoder = pt_insn_alloc_decoder(config);
    uint64_t instructions = 0;
    pt_insn_set_image(decoder, image);
    int status = pt_insn_sync_forward(decoder);
    while (status != -pte_eos) {
        if (status < 0) {
            *errors += 1;
            status = pt_insn_sync_forward(decoder);
        } else if (status & pts_event_pending) {
            struct pt_event event;
            status = pt_insn_event(decoder, &event, sizeof event);
        } else {
            struct pt_insn instruction = { 0 };
            status = pt_insn_next(decoder, &instruction, sizeof instruction);
            instructions += status >= 0;
        }
    }
    pt_insn_free_decoder(decoder);
    return instructions;
}

int main(int count, char **arguments)
{
    if (count < 4)
        return 2;
    FILE *file = fopen(arguments[3], "rb");
    if (file == NULL)
        return 2;
    fseek(file, 0, SEEK_END);
    const long bytes = ftell(file);
    rewind(file);
    uint8_t *packets = malloc((size_t)bytes + 1);
    if (packets == NULL || fread(packets, 1, (size_t)bytes, file) != (size_t)bytes)
        return 2;
    struct pt_config config;
    pt_config_init(&config);
    config.begin = packets;
    config.end = packets + bytes;
    image = pt_image_alloc("image");
    for (int at = 4; at < count; at++) {
        char *colon = strrchr(arguments[at], ':');
        *colon = 0;
        if (pt_image_add_file(image, arguments[at], 0, UINT64_MAX, NULL, strtoull(colon + 1, NULL, 16)) < 0)
            return 2;
    }
    uint64_t instructions = 0, errors = 0;
    const int rounds = atoi(arguments[2]);
    double seconds[64] = { 0 };
    for (int round = 0; round < rounds && round < 64; round++) {
        const double begin = now();
        errors = 0;
        instructions = strcmp(arguments[1], "block") == 0 ? by_block(&config, &errors)
                                                          : by_instruction(&config, &errors);
        seconds[round] = now() - begin;
    }
    printf("%" PRIu64 " %" PRIu64, instructions, errors);
    for (int round = 0; round < rounds && round < 64; round++)
        printf(" %f", seconds[round]);
    printf("\n");
    return 0;
}
