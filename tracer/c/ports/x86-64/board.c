// SPDX-License-Identifier: Apache-2.0 OR MIT
/* QEMU's microvm for x86-64: entry by PVH, long mode, further cores by INIT and SIPI, serial line (16550),
 * the timer of each core's APIC. */
#include "board.h"
#include "lat_port.h"

#define SERIAL 0x3f8u
#define APIC(offset) (*(volatile uint32_t *)(0xfee00000ul + (offset)))
#define TIMER_VECTOR(level) (0x40u + 0x10u * (level)) /* a class of priority each */
#define TICKS 100u /* of the APIC, at 1 GHz, for one of the programs' */

#ifndef AREA_BYTES
#define AREA_BYTES 65536u
#endif
__attribute__((section(".noinit"), aligned(8))) uint64_t lat_port_area[AREA_BYTES / 8u];
const uint32_t board_area_bytes = AREA_BYTES;

#define STACK_SHIFT 14
__attribute__((section(".noinit"), used, aligned(16))) char board_stacks[LAT_PORT_CORES << STACK_SHIFT];
/* 4 GiB, each address its own, in pages of 2 MiB: one table, one, four. */
__attribute__((section(".noinit"), used, aligned(4096))) uint64_t board_pages[6][512];
/* Set by the first core when memory is ready; the others wait for it. */
volatile uint32_t board_is_ready;

/* What GS points to. */
static struct {
    uint32_t core, context;
} cores[LAT_PORT_CORES];

static uint64_t descriptors[256][2]; /* IDT */

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

void board_put(char c)
{
    while ((in(SERIAL + 5u) & 0x20u) == 0) {
    }
    out(SERIAL, (uint8_t)c);
}

/* Weak: a program may send its packets another way. */
__attribute__((weak)) void lat_port_put(const void *bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        board_put(((const char *)bytes)[i]);
}

_Noreturn void board_stop(void)
{
    for (;;)
        __asm__ volatile("cli\n\thlt");
}

/* One timer a core: level 1 is the same one again inside its own handler, by a vector of higher priority,
 * which lets it. */
void board_arm(unsigned level, uint32_t ticks)
{
    APIC(0x320) = TIMER_VECTOR(level); /* once */
    APIC(0x380) = ticks * TICKS;       /* initial count */
    if (level != 0)
        __asm__ volatile("sti");
}

/* 255 times NOP, entered so that `count` are left. */
__attribute__((naked)) void board_pause(__attribute__((unused)) uint32_t count)
{
    __asm__ volatile("leaq 1f(%rip), %rax\n"
                     "movl %edi, %edi\n"
                     "subq %rdi, %rax\n"
                     "jmpq *%rax\n"
                     ".rept 255\n"
                     "nop\n"
                     ".endr\n"
                     "1: retq\n");
}

static void put_text(const char *text)
{
    while (*text != '\0')
        board_put(*text++);
}

__attribute__((used)) static void interrupt(uintptr_t pc)
{
    const uint32_t core = lat_port_core();
    const uint32_t context = cores[core].context;
    cores[core].context = context + 0x100u;
    __asm__ volatile("" : : : "memory");
    on_timer(context >> 8, pc);
    __asm__ volatile("cli" : : : "memory");
    cores[core].context = context;
    APIC(0xb0) = 0; /* end of interrupt */
}

__attribute__((used)) static _Noreturn void exception(void)
{
    put_text("fault\n");
    board_stop();
}

void timer_entry(void);
void exception_entry(void);

static void describe(uint32_t vector, void (*entry)(void))
{
    const uint64_t address = (uintptr_t)entry;
    /* Segment 8, present, interrupt gate [Intel SDM 3A, 6.14.1]. */
    descriptors[vector][0] =
        (address & 0xffffu) | 8u << 16 | UINT64_C(0x8e00) << 32 | (address >> 16 & 0xffffu) << 48;
    descriptors[vector][1] = address >> 32;
}

#if LAT_PORT_CORES > 1
/* Real mode code for the other cores goes to 0x8000, page 8 of their start-up message. */
extern const char board_other[], board_other_end[];
static void start_others(void)
{
    char *to = (char *)0x8000;
    for (const char *from = board_other; from < board_other_end;)
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

__attribute__((used)) static _Noreturn void start(uint64_t core)
{
    extern uint64_t board_bss[], board_bss_end[];
    if (core == 0) {
        for (uint64_t *to = board_bss; to < board_bss_end;)
            *to++ = 0;
        for (uint32_t vector = 0; vector < 256; vector++)
            describe(vector, vector == TIMER_VECTOR(0) || vector == TIMER_VECTOR(1) ? timer_entry
                                                                                    : exception_entry);
    }
    const struct __attribute__((packed)) {
        uint16_t last;
        uint64_t address;
    } table = {sizeof descriptors - 1u, (uintptr_t)descriptors};
    __asm__ volatile("lidt %0" : : "m"(table));
    cores[core].core = (uint32_t)core;
    cores[core].context = (uint32_t)core + 1u;
    const uint64_t own = (uintptr_t)&cores[core];
    /* IA32_GS_BASE */
    __asm__ volatile("wrmsr" : : "c"(0xc0000101u), "a"((uint32_t)own), "d"((uint32_t)(own >> 32)));
    APIC(0xf0) = 0x1ff; /* on; spurious interrupts are vector 255 */
    APIC(0x3e0) = 0xb;  /* the timer counts each tick */
    __asm__ volatile("sti");
    if (core == 0) {
#if LAT_PORT_CORES > 1
        start_others();
#endif
        program();
    }
    while (__atomic_load_n(&board_is_ready, __ATOMIC_ACQUIRE) == 0) {
    }
    program_other((uint32_t)core);
}

/* From protected mode with 32 bits, as PVH has it, to long mode with pages [Intel SDM 3A, 9.8.5]. The first
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
        "movl $board_pages, %edi\n"
        "movl $2048, %ecx\n" /* two tables of 4096 bytes: empty */
        "rep stosl\n"
        "movl $board_pages + 4096 + 3, board_pages\n" /* present, writable */
        "movl $board_pages + 8192 + 3, board_pages + 4096\n"
        "movl $board_pages + 12288 + 3, board_pages + 4104\n"
        "movl $board_pages + 16384 + 3, board_pages + 4112\n"
        "movl $board_pages + 20480 + 3, board_pages + 4120\n"
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
        "orl $0x620, %eax\n" /* PAE; OSFXSR, OSXMMEXCPT: floating point is there */
        "movl %eax, %cr4\n"
        "movl $board_pages, %eax\n"
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
        "shlq $14, %rsp\n" /* STACK_SHIFT */
        "addq $board_stacks, %rsp\n"
        "call start\n"
        ".align 8\n"
        "gdt: .quad 0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff\n"
        "gdt_pointer: .word 31\n"
        ".long gdt\n"
        /* The other cores, at 0x8000 in real mode. */
        ".code16\n"
        ".global board_other, board_other_end\n"
        "board_other:\n"
        "cli\n"
        "xorw %ax, %ax\n"
        "movw %ax, %ds\n"
        "lgdtl 0x8000 + 3f - board_other\n"
        "movl %cr0, %eax\n"
        "orb $1, %al\n"
        "movl %eax, %cr0\n"
        "ljmpl $24, $4f\n"
        "3: .word 31\n"
        ".long gdt\n"
        "board_other_end:\n"
        ".code32\n"
        "4: movl $16, %eax\n"
        "movl %eax, %ds\n"
        "movl %eax, %es\n"
        "movl %eax, %ss\n"
        "jmp long_mode\n"
        ".code64\n"
        ".popsection\n"
        ".pushsection .text.entries, \"ax\"\n"
        ".global timer_entry, exception_entry\n"
        "timer_entry:\n"
        "pushq %rbp\n"
        "movq %rsp, %rbp\n"
        "pushq %rax\n pushq %rcx\n pushq %rdx\n pushq %rsi\n pushq %rdi\n"
        "pushq %r8\n pushq %r9\n pushq %r10\n pushq %r11\n"
        "subq $528, %rsp\n"
        "andq $-16, %rsp\n"
        "fxsave64 (%rsp)\n"
        "cld\n"
        "movq 8(%rbp), %rdi\n"
        "call interrupt\n"
        "fxrstor64 (%rsp)\n"
        "leaq -72(%rbp), %rsp\n"
        "popq %r11\n popq %r10\n popq %r9\n popq %r8\n"
        "popq %rdi\n popq %rsi\n popq %rdx\n popq %rcx\n popq %rax\n"
        "popq %rbp\n"
        "iretq\n"
        "exception_entry:\n"
        "andq $-16, %rsp\n"
        "call exception\n"
        ".popsection\n");
