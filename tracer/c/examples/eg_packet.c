// SPDX-License-Identifier: Apache-2.0 OR MIT
/* <lat/packet.h>: a program that forwards packets between two interfaces, and records both directions. */
#include <lat/packet.h>

#include <stdio.h>

/* Only the headers of packets to the uplink are kept. */
static const struct lat_interface inside = {"inside", LAT_LINK_ETHERNET, 0};
static const struct lat_interface uplink = {"uplink", LAT_LINK_ETHERNET, 42};

/* An Ethernet frame with a UDP datagram of `bytes` bytes from port 7. */
static size_t make_frame(uint8_t *frame, uint8_t bytes)
{
    static const uint8_t head[42] = {
        2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, /* Ethernet, IPv4 */
        0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, /* UDP */
        0, 7, 0, 9, 0, 8, 0, 0,
    };
    memcpy(frame, head, sizeof head);
    frame[17] = (uint8_t)(28 + bytes);
    frame[39] = (uint8_t)(8 + bytes);
    memset(frame + sizeof head, 'x', bytes);
    return sizeof head + bytes;
}

int main(void)
{
    uint8_t frame[256];
    for (uint8_t i = 0; i < 10; i++) {
        const size_t bytes = make_frame(frame, (uint8_t)(10 * i));
        lat_record_packet(&inside, LAT_PACKET_INBOUND, frame, bytes);
        lat_record_packet(&uplink, LAT_PACKET_OUTBOUND, frame, bytes);
    }
    printf("%s\n", lat_recording() ? "recorded" : "nobody records");
    return 0;
}
