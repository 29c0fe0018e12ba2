// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Files on the machine of the debugger (OpenOCD, J-Link, pyOCD, QEMU), by semihosting: an output for packets
 * and memory where no serial line is free. Cortex-M, AArch64 and RISC-V have it [Arm, Semihosting for
 * AArch32 and AArch64; RISC-V International, RISC-V Semihosting]. With small/serial.c:
 *
 *   static intptr_t file;                         file = lat_semihosting_open("line.bin");
 *   void lat_port_put(const void *bytes, uint32_t count)
 *   {
 *       lat_semihosting_put(file, bytes, count);
 *   }
 *
 * and `lat recover line.bin`. Or all of the memory at the end, for `lat recover ram.bin --elf app.elf`:
 *
 *   lat_semihosting_save("ram.bin", lat_port_area, sizeof lat_port_area);
 *
 * The processor is stopped during a call, for milliseconds with a debug probe: call it only where that is
 * acceptable. Without a debugger these instructions fault.
 */
#ifndef LAT_SMALL_SEMIHOSTING_H
#define LAT_SMALL_SEMIHOSTING_H

#include <stdint.h>

#ifndef LAT_INLINE
#define LAT_INLINE __attribute__((always_inline)) inline
#endif

/* Numbers of the calls; their parameters are address-sized words. */
#define LAT_I_SYS_OPEN 1u
#define LAT_I_SYS_CLOSE 2u
#define LAT_I_SYS_WRITE 5u
#define LAT_I_MODE_WB 5u /* of fopen: "wb" */

static LAT_INLINE intptr_t lat_i_semihosting(uintptr_t call, const uintptr_t *parameters)
{
#if defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M' && !defined(__aarch64__)
    register uintptr_t r0 __asm__("r0") = call;
    register uintptr_t r1 __asm__("r1") = (uintptr_t)parameters;
    __asm__ volatile("bkpt #0xab" : "+r"(r0) : "r"(r1) : "memory", "cc");
    return (intptr_t)r0;
#elif defined(__aarch64__)
    register uintptr_t x0 __asm__("x0") = call;
    register uintptr_t x1 __asm__("x1") = (uintptr_t)parameters;
    __asm__ volatile("hlt #0xf000" : "+r"(x0) : "r"(x1) : "memory", "cc");
    return (intptr_t)x0;
#elif defined(__riscv)
    register uintptr_t a0 __asm__("a0") = call;
    register uintptr_t a1 __asm__("a1") = (uintptr_t)parameters;
    /* The three instructions must be 32 bits wide and in one page. */
    __asm__ volatile(".option push\n\t"
                     ".balign 16\n\t"
                     ".option norvc\n\t"
                     "slli x0, x0, 0x1f\n\t"
                     "ebreak\n\t"
                     "srai x0, x0, 7\n\t"
                     ".option pop"
                     : "+r"(a0)
                     : "r"(a1)
                     : "memory");
    return (intptr_t)a0;
#else
#error "this machine has no semihosting"
#endif
}

/** Creates or truncates a file for writing. @return its handle, or -1 on failure. */
static inline intptr_t lat_semihosting_open(const char *name)
{
    uintptr_t length = 0;
    while (name[length] != '\0')
        length++;
    const uintptr_t parameters[3] = {(uintptr_t)name, LAT_I_MODE_WB, length};
    return lat_i_semihosting(LAT_I_SYS_OPEN, parameters);
}

/** Writes to a file, in as many calls as needed. @return bytes not written: 0 unless the disk is full. */
static inline uint32_t lat_semihosting_put(intptr_t file, const void *bytes, uint32_t count)
{
    const char *from = (const char *)bytes;
    while (count != 0) {
        const uintptr_t parameters[3] = {(uintptr_t)file, (uintptr_t)from, count};
        const uintptr_t left = (uintptr_t)lat_i_semihosting(LAT_I_SYS_WRITE, parameters);
        /* The result is the number of bytes not written. No progress, or an invalid number, is an error. */
        if (left >= count)
            return count;
        from += count - left;
        count = (uint32_t)left;
    }
    return 0;
}

static inline void lat_semihosting_close(intptr_t file)
{
    const uintptr_t parameters[1] = {(uintptr_t)file};
    (void)lat_i_semihosting(LAT_I_SYS_CLOSE, parameters);
}

/** Writes memory to a new file. @return 0, or the number of bytes missing from the file. */
static inline uint32_t lat_semihosting_save(const char *name, const void *memory, uint32_t bytes)
{
    const intptr_t file = lat_semihosting_open(name);
    if (file == -1)
        return bytes;
    const uint32_t left = lat_semihosting_put(file, memory, bytes);
    lat_semihosting_close(file);
    return left;
}

#endif
