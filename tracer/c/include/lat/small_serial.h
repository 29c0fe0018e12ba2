// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Sends the packets of a small area over any byte stream: UART, RTT, USB CDC, TCP. The frames are those of
 * spec/serial.md; `lat record --serial` and `lat recover` read them. Link small/serial.c, and add one
 * function to lat_port.h:
 *
 *   void lat_port_put(const void *bytes, uint32_t count)
 *                             sends all of them, and waits while there is no room
 *
 * No allocation, no C library, no buffer: a frame is encoded while it is sent, directly from its source. Only
 * one context at a time may use a sender, for all cores: an idle loop, a task of the lowest priority.
 */
#ifndef LAT_SMALL_SERIAL_H
#define LAT_SMALL_SERIAL_H

#include <stdint.h>

#include "small.h"

#define LAT_SERIAL_VERSION 1u

#define LAT_SERIAL_HELLO 1u  /* description of the packets: area header, schema descriptors */
#define LAT_SERIAL_TEXT 2u   /* a part of the text of a schema */
#define LAT_SERIAL_PACKET 3u /* a packet as it is in the area */
#define LAT_SERIAL_STATUS 4u /* counters of a core */

#define LAT_SERIAL_TEXT_BYTES 256u /* maximum bytes of a text in a frame */
/* Maximum number of schemas: the payload of a hello is no longer than the longest packet. */
#define LAT_SERIAL_SCHEMAS_MAX ((LAT_SMALL_PACKET_BYTES_MAX - 144u) / 32u)

/* Flags of lat_serial_begin, and of a hello. */
#define LAT_SERIAL_TEXTS 1u /* send the texts of the schemas too: no file is needed to read the line */
/* Flag of a status. */
#define LAT_SERIAL_LAST 1u /* no more frames of this core */

/** A sender; the caller provides its memory. */
struct lat_serial {
    uint32_t sequence;    /* of the next frame */
    uint32_t run;         /* as given to lat_serial_begin */
    uint32_t hello_every; /* packets from one hello to the next */
    uint32_t until_hello; /* remaining packets before the next hello */
    uint32_t flags;
    uint32_t core; /* core of the next packet */
};

LAT_I_C_BEGIN

/**
 * Initialises a sender. Context: after lat_small_init.
 *
 * @param hello_every  packets from one introduction to the next, 1 or more: the maximum wait of a receiver
 *                     that connects late or has lost an introduction
 * @param run          a number that no other run of the program has, if available: a boot
 *                     counter, a random number; else 0
 * @param flags        LAT_SERIAL_TEXTS or 0
 */
void lat_serial_begin(struct lat_serial *serial, uint32_t hello_every, uint32_t run, uint32_t flags);

/**
 * Sends the oldest closed packet of the next core that has one, and gives it back. Sends an introduction
 * before it when one is due. Discard mode only: in overwrite mode there is no packet to take.
 * @return 1 if it sent one, 0 if there was none.
 */
int lat_serial_send(struct lat_serial *serial);

/** Sends an introduction now: hello, texts, counters. Any mode. For lines that are idle for long periods. */
void lat_serial_introduce(struct lat_serial *serial);

/**
 * Closes the open packet of this core, sends all closed packets, and marks the end of the stream. Other cores
 * call lat_small_close before.
 */
void lat_serial_end(struct lat_serial *serial);

/**
 * Sends all packets in the memory at LAT_PORT_AREA, oldest first, including open ones: a flight
 * recorder (overwrite mode), or the area that the program left before a reset (before lat_small_init).
 * Nothing may record meanwhile: a packet that changes while it is sent arrives damaged. Gives nothing back.
 * @return packets sent; 0 where lat_small_left(area_bytes) finds no whole area.
 */
uint32_t lat_serial_send_area(struct lat_serial *serial, uint32_t area_bytes);

LAT_I_C_END

#endif
