// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Starts QEMU's microvm for x86-64 on all cores, from the PVH entry to long mode. */
#include "boot.h"

/* The header of the program: not the one next to this file. */
#include <lat_port.h>

#define SERIAL 0x3f8u

__attribute__((section(".noinit"), used, aligned(16))) char boot_stacks[LAT_PORT_CORES << BOOT_STACK_SHIFT];
__attribute__((section(".noinit"), used, aligned(4096))) uint64_t boot_pages[6][512];

static void out(uint16_t port, uint8_t value)
{
    __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static uint8_t in(uint16_t port)
{
    uint8_t value;
    __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

void boot_put(char c)
{
    while ((in(SERIAL + 5u) & 0x20u) == 0) {
    }
    out(SERIAL, (uint8_t)c);
}

void boot_describe(uint64_t descriptor[2], void (*entry)(void), unsigned level)
{
    const uint64_t address = (uintptr_t)entry;
    /* Segment 8, present, interrupt gate [Intel SDM 3A, 6.14.1]. */
    descriptor[0] = (address & 0xffffu) | 8u << 16 | (UINT64_C(0x8e00) | (uint64_t)level << 13) << 32 |
                    (address >> 16 & 0xffffu) << 48;
    descriptor[1] = address >> 32;
}

void boot_own(uint64_t own)
{
    /* IA32_GS_BASE */
    __asm__ volatile("wrmsr" : : "c"(0xc0000101u), "a"((uint32_t)own), "d"((uint32_t)(own >> 32)));
    /* The legacy interrupt controllers, whose timer would use vector 0: all masked. */
    out(0x21u, 0xff);
    out(0xa1u, 0xff);
    APIC(0xf0) = 0x1ff; /* on; spurious interrupts are vector 255 */
    APIC(0x3e0) = 0xb;  /* the timer counts each tick */
}

#if LAT_PORT_CORES > 1
/* Real mode code for the other cores is copied to 0x8000, page 8 of their start-up message. */
extern const char boot_other[], boot_other_end[];
void boot_others(void)
{
    char *to = (char *)0x8000;
    for (const char *from = boot_other; from < boot_other_end;)
        *to++ = *from++;
    for (uint32_t core = 1; core < LAT_PORT_CORES; core++) {
        APIC(0x310) = core << 24;
        APIC(0x300) = 0x4500; /* INIT */
        for (volatile uint32_t wait = 0; wait < 3000; wait++) {
        }
        APIC(0x310) = core << 24;
        APIC(0x300) = 0x4608; /* start-up, page 8 */
    }
}
#endif

/* From 32-bit protected mode, as defined by PVH, to long mode with paging [Intel SDM 3A, 9.8.5]. The first
 * core makes the tables. */
__asm__(".pushsection .note.board, \"a\", @note\n"
        ".align 4\n"
        ".long 4, 8, 18\n" /* XEN_ELFNOTE_PHYS32_ENTRY */
        ".asciz \"Xen\"\n"
        ".quad board_reset\n"
        ".popsection\n"
        ".pushsection .reset, \"ax\"\n"
        ".code32\n"
        ".global board_reset\n"
        "board_reset:\n"
        "cli\n"
        "cld\n"
        "xorl %eax, %eax\n"
        "movl $boot_pages, %edi\n"
        "movl $2048, %ecx\n" /* two tables of 4096 bytes: empty */
        "rep stosl\n"
        "movl $boot_pages + 4096 + 3, boot_pages\n" /* present, writable */
        "movl $boot_pages + 8192 + 3, boot_pages + 4096\n"
        "movl $boot_pages + 12288 + 3, boot_pages + 4104\n"
        "movl $boot_pages + 16384 + 3, boot_pages + 4112\n"
        "movl $boot_pages + 20480 + 3, boot_pages + 4120\n"
        "movl $0x83, %eax\n" /* and of 2 MiB */
        "movl $2048, %ecx\n"
        "1: movl %eax, (%edi)\n"
        "movl $0, 4(%edi)\n"
        "addl $0x200000, %eax\n"
        "addl $8, %edi\n"
        "loop 1b\n"
        "lgdt gdt_pointer\n"
        "long_mode:\n"
        "movl %cr4, %eax\n"
        "orl $0x620, %eax\n" /* PAE; OSFXSR, OSXMMEXCPT: floating point is supported */
        "movl %eax, %cr4\n"
        "movl $boot_pages, %eax\n"
        "movl %eax, %cr3\n"
        "movl $0xc0000080, %ecx\n" /* IA32_EFER */
        "rdmsr\n"
        "orl $0x100, %eax\n" /* LME */
        "wrmsr\n"
        "movl %cr0, %eax\n"
        "andl $~4, %eax\n"         /* EM */
        "orl $0x80000003, %eax\n" /* PG, MP, PE */
        "movl %eax, %cr0\n"
        "ljmp $8, $2f\n"
        ".code64\n"
        "2: movl $16, %eax\n"
        "movl %eax, %ds\n"
        "movl %eax, %es\n"
        "movl %eax, %ss\n"
        "movl $1, %eax\n" /* CPUID 1: EBX has the APIC's number */
        "cpuid\n"
        "shrl $24, %ebx\n"
        "movq %rbx, %rdi\n"
        "leaq 1(%rbx), %rsp\n"
        "shlq $14, %rsp\n" /* BOOT_STACK_SHIFT */
        "addq $boot_stacks, %rsp\n"
        "call boot_start\n"
        ".align 8\n"
        "gdt: .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff\n"
        "gdt_pointer: .word 31\n"
        ".long gdt\n"
        /* The other cores, at 0x8000 in real mode. */
        ".code16\n"
        ".global boot_other, boot_other_end\n"
        "boot_other:\n"
        "cli\n"
        "xorw %ax, %ax\n"
        "movw %ax, %ds\n"
        "lgdtl 0x8000 + 3f - boot_other\n"
        "movl %cr0, %eax\n"
        "orb $1, %al\n"
        "movl %eax, %cr0\n"
        "ljmpl $24, $4f\n"
        "3: .word 31\n"
        ".long gdt\n"
        "boot_other_end:\n"
        ".code32\n"
        "4: movl $16, %eax\n"
        "movl %eax, %ds\n"
        "movl %eax, %es\n"
        "movl %eax, %ss\n"
        "jmp long_mode\n"
        ".code64\n"
        ".popsection\n");
