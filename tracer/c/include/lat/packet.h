// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Network packets, recorded by a program that handles them: a driver, a router, a
 * proxy, a network stack.
 *
 *     static const struct lat_interface uplink = {"uplink", LAT_LINK_ETHERNET, 256};
 *     lat_record_packet(&uplink, LAT_PACKET_OUTBOUND, frame, frame_bytes);
 *
 * Each is an event `packets:packet` (spec/packets.pleco) of the calling thread, on the timeline
 * of all others, and is enabled like any other. `lat convert RECORDING --to pcapng` writes a file for
 * tshark, with the names of the interfaces and the directions. A file that includes this
 * contains the schema, and makes the event known to recorders.
 *
 * Context of the functions: any thread, any signal handler. They do not block, allocate, or change
 * errno. Cost: disabled, two loads and a branch; enabled, that of an event whose length is known
 * only at run time (build.h), with the copy of the name and of the kept bytes.
 */
#ifndef LAT_PACKET_H
#define LAT_PACKET_H

#include "lat.h"
#include "packet_events.h"

LAT_I_C_BEGIN

/** Common link types, which define the first header of a packet. All numbers of
 * tcpdump.org/linktypes.html may be used. */
#define LAT_LINK_ETHERNET 1u
#define LAT_LINK_PPP 9u
#define LAT_LINK_IP 101u /* IPv4 or IPv6, by the first four bits */
#define LAT_LINK_IEEE802_11 105u
#define LAT_LINK_CAN 227u

/** Direction of a packet, seen from the interface. */
#define LAT_PACKET_UNKNOWN LAT_ENUM_PACKETS_PACKET_DIRECTION_UNKNOWN
#define LAT_PACKET_INBOUND LAT_ENUM_PACKETS_PACKET_DIRECTION_INBOUND
#define LAT_PACKET_OUTBOUND LAT_ENUM_PACKETS_PACKET_DIRECTION_OUTBOUND
typedef enum lat_enum_packets_packet_direction lat_packet_direction;

/** An interface that packets pass. Two of the same name and link type are one interface. */
struct lat_interface {
    const char *name;    /* shown by readers; about 15 characters are usual */
    uint16_t link_type;  /* LAT_LINK_ETHERNET, … */
    uint32_t snap_bytes; /* maximum bytes kept of a packet; 0 = all */
};

/* All of a record except name and data: its fields and their alignment. */
#define LAT_I_PACKET_FIELDS_BYTES 24u

/**
 * Records a packet of which the program has the first `bytes` bytes, and which was
 * `original_bytes` long on the network. At most `snap_bytes` of them are kept, and at most as many
 * as fit into a packet of the ring: the record contains both lengths.
 */
static inline void lat_record_packet_part(const struct lat_interface *interface,
                                          lat_packet_direction direction, const void *data,
                                          size_t bytes, size_t original_bytes)
{
    size_t kept = bytes, most;
    if (!lat_packets_packet_enabled())
        return;
    if (data == NULL)
        kept = 0;
    if (interface->snap_bytes != 0 && kept > interface->snap_bytes)
        kept = interface->snap_bytes;
    most = lat_i_payload_most();
    if (LAT_I_UNLIKELY(kept > most / 2) && most != 0) {
        const size_t name = interface->name != NULL ? strlen(interface->name) : 0;
        const size_t other = name + LAT_I_PACKET_FIELDS_BYTES;
        const size_t room = most > other ? most - other : 0;
        kept = kept > room ? room : kept;
    }
    if (kept > UINT32_MAX)
        kept = UINT32_MAX;
    if (original_bytes > UINT32_MAX)
        original_bytes = UINT32_MAX;
    lat_packets_packet(interface->name, direction, interface->link_type, (uint32_t)kept,
                       (uint32_t)original_bytes, (uint32_t)direction, data, (uint32_t)kept);
}

/** Records a packet that the program has completely. */
static inline void lat_record_packet(const struct lat_interface *interface,
                                     lat_packet_direction direction, const void *data, size_t bytes)
{
    lat_record_packet_part(interface, direction, data, bytes, bytes);
}

LAT_I_C_END

#endif
