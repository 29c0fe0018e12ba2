// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * QEMU's x86-64 `microvm`. All cores start with the code of the tracer's port, ports/x86-64/boot.c.
 * Applications run in user mode and can access one page, of 2 MiB. The kernel can be interrupted only while
 * it sleeps, and then notes which interrupt occurred.
 */
#include "kernel.h"

#include "boot.h"
#include "lat_port.h"

#define TIMER_VECTOR 0x40u
#define MESSAGE_VECTOR 0x41u
#define CALL_VECTOR 0x80u
#define EXCEPTIONS 32u
#define TICKS 100u /* of the APIC, at 1 GHz, in 100 ns */
#define PAGE_BYTES 0x200000u
#define PAGE_USER 4u

extern char user_begin[], user_end[], board_bss[], board_bss_end[];

/* [Intel SDM 3A, 8.7]: only the stack of the kernel is used. */
struct __attribute__((packed)) task_state {
    uint32_t reserved;
    uint64_t stack;
    uint8_t rest[92];
};
static struct task_state task_states[CORES];
static uint64_t segments[CORES][8];  /* GDT of each core: the last two entries are its task state */
static uint64_t descriptors[256][2]; /* IDT */
static volatile uint64_t pending[CORES];

void console_put(char c)
{
    boot_put(c);
}

void machine_send(uint32_t core)
{
    APIC(0x310) = core << 24;
    APIC(0x300) = 0x4000u | MESSAGE_VECTOR;
}

void machine_taken(void)
{
    /* What the sender wrote before is visible after this. */
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
}

void machine_timer(uint32_t ticks)
{
    APIC(APIC_COUNT) = ticks * TICKS;
}

uint64_t machine_sleep(void)
{
    const uint32_t core = this_core()->number;
    /* An interrupt that arrives after STI is taken after HLT has begun [Intel SDM 2B, STI]. */
    if (pending[core] == 0)
        __asm__ volatile("sti\n\thlt\n\tcli" : : : "memory");
    const uint64_t came = pending[core];
    pending[core] = 0;
    return came;
}

int machine_is_user(uint64_t address, uint64_t bytes)
{
    return address >= (uintptr_t)user_begin && address < (uintptr_t)user_end &&
           bytes <= (uintptr_t)user_end - address;
}

_Noreturn void machine_stop(void)
{
    for (;;)
        __asm__ volatile("cli\n\thlt");
}

void machine_watch(const void *address)
{
    /* Breakpoint 0: stores to the 8 bytes at this address [Intel SDM 3B, 17.2]. */
    __asm__ volatile("movq %0, %%dr0\n\tmovq %1, %%dr7" : : "r"(address), "r"(UINT64_C(0x90001)));
}

static enum interrupt interrupt_of(uint64_t vector)
{
    return vector == TIMER_VECTOR ? INTERRUPT_TIMER : INTERRUPT_MESSAGE;
}

/* An assignment would become a call of memcpy, which this program does not have. */
static void copy(struct frame *to, const struct frame *from)
{
    uint64_t words = sizeof *to / 8u;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words) : : "memory");
}

__attribute__((used)) static struct frame *trap(struct frame *saved)
{
    struct core *const core = this_core();
    const uint64_t vector = saved->vector;
    const int is_interrupt = vector == TIMER_VECTOR || vector == MESSAGE_VECTOR;
    if (is_interrupt)
        APIC(APIC_EOI) = 0;
    if ((saved->cs & 3u) == 0) {
        if (!is_interrupt)
            kernel_panic(core, vector, saved->pc);
        pending[core->number] |= UINT64_C(1) << interrupt_of(vector);
        return saved;
    }
    copy(core->frame, saved);
    struct frame *next;
    if (is_interrupt)
        next = kernel_interrupt(core, interrupt_of(vector));
    else if (vector == CALL_VECTOR)
        next = kernel_call(core);
    else
        kernel_panic(core, vector, saved->pc);
    core->frame = next;
    return next;
}

_Static_assert(offsetof(struct frame, vector) == 120 && offsetof(struct frame, cs) == 144 &&
                   offsetof(struct core, scratch) == 16,
               "as below");

/* On the stack: the values that the processor pushed, then error (or 0) and vector; in user mode GS does not
 * point to the core. */
__asm__(".pushsection .text.entries, \"ax\"\n"
        "entry:\n"
        "testb $3, 24(%rsp)\n"
        "jz 1f\n"
        "swapgs\n"
        "1: pushq %rax\n pushq %rbx\n pushq %rcx\n pushq %rdx\n pushq %rsi\n pushq %rdi\n pushq %rbp\n"
        "pushq %r8\n pushq %r9\n pushq %r10\n pushq %r11\n pushq %r12\n pushq %r13\n pushq %r14\n"
        "pushq %r15\n"
        "cld\n"
        "movq %rsp, %rdi\n"
        "andq $-16, %rsp\n"
        "call trap\n"
        "movq %rax, %rdi\n"
        ".global resume\n"
        "resume:\n"
        "movq %rdi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %r11\n popq %r10\n popq %r9\n popq %r8\n"
        "popq %rbp\n popq %rdi\n popq %rsi\n popq %rdx\n popq %rcx\n popq %rbx\n popq %rax\n"
        "addq $16, %rsp\n"
        "testb $3, 8(%rsp)\n"
        "jz 1f\n"
        "swapgs\n"
        "1: iretq\n"
        /* One entry every 16 bytes: exceptions, some of which push an error code
         * [Intel SDM 3A, 6.3.1], then interrupts. */
        ".balign 16\n"
        "exception_entries:\n"
        ".set vector, 0\n"
        ".rept 32\n"
        ".balign 16\n"
        ".if (0x60227d00 >> vector) & 1\n"
        ".else\n"
        "pushq $0\n"
        ".endif\n"
        "pushq $vector\n"
        "jmp entry\n"
        ".set vector, vector + 1\n"
        ".endr\n"
        "timer_entry: pushq $0\n pushq $0x40\n jmp entry\n"
        "message_entry: pushq $0\n pushq $0x41\n jmp entry\n"
        "call_entry: pushq $0\n pushq $0x80\n jmp entry\n"
        "spurious_entry: iretq\n"
        ".popsection\n");
_Noreturn void resume(struct frame *frame);
extern char exception_entries[];
void timer_entry(void);
void message_entry(void);
void call_entry(void);
void spurious_entry(void);

_Noreturn void machine_resume(struct frame *frame)
{
    this_core()->frame = frame;
    resume(frame);
}

/* Makes the pages of applications accessible in user mode. */
static void open_pages(void)
{
    boot_pages[0][0] |= PAGE_USER;
    boot_pages[1][0] |= PAGE_USER;
    for (uint64_t at = (uintptr_t)user_begin; at < (uintptr_t)user_end; at += PAGE_BYTES)
        boot_pages[2][at / PAGE_BYTES] |= PAGE_USER;
    uint64_t tables;
    __asm__ volatile("movq %%cr3, %0\n\tmovq %0, %%cr3" : "=r"(tables) : : "memory");
}

static void make_segments(uint64_t number, uint64_t stack)
{
    uint64_t *const own = segments[number];
    const uint64_t state = (uintptr_t)&task_states[number];
    /* Code and data of the kernel as in boot.c, 32-bit code, data and code of user mode. */
    static const uint64_t usual[6] = {0, 0x00af9a000000ffff, 0x00cf92000000ffff, 0x00cf9a000000ffff,
                                      0x00cff2000000ffff, 0x00affa000000ffff};
    for (uint32_t i = 0; i < 6; i++)
        own[i] = usual[i];
    task_states[number].stack = stack;
    /* A 64-bit task state segment, present [Intel SDM 3A, 8.2.3]. */
    own[6] = (sizeof(struct task_state) - 1u) | (state & 0xffffffu) << 16 | UINT64_C(0x89) << 40 |
             (state >> 24 & 0xffu) << 56;
    own[7] = state >> 32;
}

_Noreturn void boot_start(uint64_t number)
{
    struct core *const core = &cores[number];
    if (number == 0) {
        for (char *to = board_bss; to < board_bss_end; to++)
            *to = 0;
        for (uint32_t vector = 0; vector < 256; vector++)
            boot_describe(descriptors[vector], spurious_entry, 0);
        for (uint32_t vector = 0; vector < EXCEPTIONS; vector++) {
            const uintptr_t entry = (uintptr_t)exception_entries + 16u * vector;
            boot_describe(descriptors[vector], (void (*)(void))entry, 0);
        }
        boot_describe(descriptors[TIMER_VECTOR], timer_entry, 0);
        boot_describe(descriptors[MESSAGE_VECTOR], message_entry, 0);
        boot_describe(descriptors[CALL_VECTOR], call_entry, 3);
        open_pages();
    }
    core->number = (uint32_t)number;
    core->stack = (uintptr_t)boot_stacks + ((number + 1u) << BOOT_STACK_SHIFT);
    core->frame = &core->own;
    core->scratch = (uintptr_t)core;
    make_segments(number, core->stack);
    struct __attribute__((packed)) {
        uint16_t last;
        uint64_t address;
    } table = {sizeof segments[0] - 1u, (uintptr_t)segments[number]};
    __asm__ volatile("lgdt %0\n\tltr %w1" : : "m"(table), "r"(6u << 3));
    table.last = sizeof descriptors - 1u;
    table.address = (uintptr_t)descriptors;
    __asm__ volatile("lidt %0" : : "m"(table));
    boot_own((uintptr_t)core);
    APIC(APIC_TIMER) = TIMER_VECTOR; /* one-shot */
    if (number == 0) {
        kernel_begin();
        boot_others();
    }
    kernel_core(core);
}
