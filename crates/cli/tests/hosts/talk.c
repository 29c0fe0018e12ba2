/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * talk answer ADDRESS            answers questions until one requests the end
 * talk ask ADDRESS COUNT         sends COUNT questions over UDP, and omits some as if lost
 */
#define _GNU_SOURCE
#include "talk.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PORT 6661
#define NOTHING UINT32_MAX

static int answer(int line, struct sockaddr_in here)
{
    struct sockaddr_in from;
    socklen_t length = sizeof(from);
    uint32_t number;
    if (bind(line, (struct sockaddr *)&here, sizeof(here)) != 0)
        return 1;
    puts("ready");
    fflush(stdout);
    while (recvfrom(line, &number, sizeof(number), 0, (struct sockaddr *)&from, &length) > 0) {
        if (number == NOTHING)
            return 0;
        lat_talk_asked(number);
        lat_talk_tell(number);
        sendto(line, &number, sizeof(number), 0, (struct sockaddr *)&from, length);
    }
    return 1;
}

static int ask(int line, struct sockaddr_in there, uint32_t count)
{
    const struct timeval patience = {0, 200000};
    uint32_t number, told;
    setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(line, (struct sockaddr *)&there, sizeof(there)) != 0)
        return 1;
    for (number = 0; number < count; number++) {
        lat_talk_ask(number);
        if (number % 10 == 7) /* lost on the way */
            continue;
        send(line, &number, sizeof(number), 0);
        if (recv(line, &told, sizeof(told), 0) > 0)
            lat_talk_told(told);
        usleep(3000);
    }
    for (count = 0; count < 3; count++) {
        number = NOTHING;
        send(line, &number, sizeof(number), 0);
    }
    return 0;
}

int main(int count, char **words)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    const int line = socket(AF_INET, SOCK_DGRAM, 0);
    if (count < 3 || inet_pton(AF_INET, words[2], &address.sin_addr) != 1)
        return 2;
    return strcmp(words[1], "answer") == 0 ? answer(line, address)
                                           : ask(line, address, (uint32_t)atoi(words[3]));
}
