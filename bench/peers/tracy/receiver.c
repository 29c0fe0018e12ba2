// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Connects to a program that contains Tracy's client, in the way Tracy's own capture program does, and
 * discards the data received. The program is therefore "connected" without Tracy's server, which is in no
 * registry.
 *
 *     receiver PROTOCOL_VERSION     from the client's TracyProtocol.hpp; prints the bytes received
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TRACY_PORT 8086
#define HANDSHAKE_WELCOME 1

static int connect_to_client(void)
{
    const struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons(TRACY_PORT),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    for (int tries = 0; tries < 100; tries++) {
        const int connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connection < 0)
            return -1;
        if (connect(connection, (const struct sockaddr *)&address, sizeof address) == 0)
            return connection;
        close(connection);
        nanosleep(&(struct timespec){0, 50000000}, NULL);
    }
    return -1;
}

int main(int argc, char **argv)
{
    static char bytes[1 << 18];
    if (argc != 2) {
        fprintf(stderr, "usage: receiver PROTOCOL_VERSION\n");
        return 2;
    }
    const uint32_t version = (uint32_t)strtoul(argv[1], NULL, 10);
    const int connection = connect_to_client();
    char hello[12] = "TracyPrf";
    memcpy(hello + 8, &version, 4);
    if (connection < 0 || write(connection, hello, sizeof hello) != (ssize_t)sizeof hello) {
        fprintf(stderr, "receiver: nobody at port %d\n", TRACY_PORT);
        return 2;
    }
    ssize_t length = read(connection, bytes, 1);
    if (length != 1 || bytes[0] != HANDSHAKE_WELCOME) {
        fprintf(stderr, "receiver: refused: is %u its protocol version?\n", (unsigned)version);
        return 2;
    }
    uint64_t total = 0;
    while ((length = read(connection, bytes, sizeof bytes)) > 0)
        total += (uint64_t)length;
    printf("%llu\n", (unsigned long long)total);
    return 0;
}
