// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * QEMU's RISC-V `virt`, 64 bits. The kernel runs in machine mode and is never interrupted; applications run
 * in user mode, and physical memory protection restricts them to their own memory.
 */
#include "kernel.h"
#include "lat_port.h"

#define UART 0x10000000ul
#define CLINT_SEND(core) (*(volatile uint32_t *)(0x02000000ul + 4ul * (core)))
#define CLINT_COMPARE(core) (*(volatile uint64_t *)(0x02004000ul + 8ul * (core)))
#define CLINT_TIME (*(volatile uint64_t *)0x0200bff8ul)
#define STACK_BYTES 4096u

#define READ(name)                                                                              \
    ({                                                                                          \
        uint64_t value_;                                                                        \
        __asm__ volatile("csrr %0, " name : "=r"(value_));                                      \
        value_;                                                                                 \
    })
#define WRITE(name, value) __asm__ volatile("csrw " name ", %0" : : "r"((uint64_t)(value)) : "memory")

extern char user_begin[], user_end[], board_bss[], board_bss_end[];
__attribute__((section(".noinit"), used, aligned(16))) char kernel_stacks[STACK_BYTES * CORES];

void console_put(char c)
{
    while ((*(volatile uint8_t *)(UART + 5u) & 0x20u) == 0) {
    }
    *(volatile char *)UART = c;
}

void machine_send(uint32_t core)
{
    CLINT_SEND(core) = 1;
}

void machine_taken(void)
{
    CLINT_SEND(this_core()->number) = 0;
    /* What the sender wrote before is visible after this. */
    __asm__ volatile("fence iorw, iorw" : : : "memory");
}

void machine_timer(uint32_t ticks)
{
    CLINT_COMPARE(this_core()->number) = ticks == 0 ? UINT64_MAX : CLINT_TIME + ticks;
}

uint64_t machine_sleep(void)
{
    /* Interrupts enabled in mie end the wait, though mstatus masks all [Privileged ISA, 3.3.3]. */
    __asm__ volatile("wfi" : : : "memory");
    return READ("mip") & READ("mie");
}

int machine_is_user(uint64_t address, uint64_t bytes)
{
    return address >= (uintptr_t)user_begin && address < (uintptr_t)user_end &&
           bytes <= (uintptr_t)user_end - address;
}

_Noreturn void machine_stop(void)
{
    for (;;) {
        WRITE("mie", 0);
        __asm__ volatile("wfi");
    }
}

void machine_watch(const void *address)
{
    /* Trigger 0: type 2, stores (1) in machine mode (6), a breakpoint exception [Debug, 5.7.2]. */
    WRITE("tselect", 0);
    WRITE("tdata2", address);
    WRITE("tdata1", UINT64_C(2) << 60 | 1u << 6 | 1u << 1);
}

#define REGISTERS(op)                                                                           \
    op " x1, 16(t0)\n" op " x2, 24(t0)\n" op " x3, 32(t0)\n"                                    \
    op " x6, 56(t0)\n" op " x7, 64(t0)\n" op " x8, 72(t0)\n" op " x9, 80(t0)\n"                 \
    op " x10, 88(t0)\n" op " x11, 96(t0)\n" op " x12, 104(t0)\n" op " x13, 112(t0)\n"           \
    op " x14, 120(t0)\n" op " x15, 128(t0)\n" op " x16, 136(t0)\n" op " x17, 144(t0)\n"         \
    op " x18, 152(t0)\n" op " x19, 160(t0)\n" op " x20, 168(t0)\n" op " x21, 176(t0)\n"         \
    op " x22, 184(t0)\n" op " x23, 192(t0)\n" op " x24, 200(t0)\n" op " x25, 208(t0)\n"         \
    op " x26, 216(t0)\n" op " x27, 224(t0)\n" op " x28, 232(t0)\n" op " x29, 240(t0)\n"         \
    op " x30, 248(t0)\n" op " x31, 256(t0)\n"
_Static_assert(offsetof(struct core, frame) == 8 && offsetof(struct core, scratch) == 16 &&
                   offsetof(struct frame, x) == 8,
               "as below");

__attribute__((used)) static struct frame *trap(struct core *core)
{
    const uint64_t cause = READ("mcause");
    /* From machine mode: an error of the kernel itself [Privileged ISA, 3.1.6: MPP]. */
    if ((READ("mstatus") >> 11 & 3u) == 3u)
        kernel_panic(core, cause, READ("mepc"));
    if (cause >> 63 != 0)
        return kernel_interrupt(core, (enum interrupt)(cause & 63u));
    if (cause == 8) { /* a system call from user mode */
        core->frame->pc += 4;
        return kernel_call(core);
    }
    kernel_panic(core, cause, READ("mepc"));
}

/* mscratch contains the address of the core; x4 is tp and x5 is t0. */
__attribute__((naked, aligned(4), used)) static void trap_entry(void)
{
    __asm__ volatile("csrrw tp, mscratch, tp\n"
                     "sd t0, 16(tp)\n"
                     "ld t0, 8(tp)\n" REGISTERS("sd")
                     "ld t1, 16(tp)\n"
                     "sd t1, 48(t0)\n"
                     "csrr t1, mscratch\n"
                     "sd t1, 40(t0)\n"
                     "csrr t1, mepc\n"
                     "sd t1, 0(t0)\n"
                     "csrw mscratch, tp\n"
                     "ld sp, 0(tp)\n"
                     "mv a0, tp\n"
                     "call trap\n"
                     "j machine_resume\n");
}

__attribute__((naked)) void machine_resume(__attribute__((unused)) struct frame *frame)
{
    __asm__ volatile("sd a0, 8(tp)\n"
                     "mv t0, a0\n"
                     "ld t1, 0(t0)\n"
                     "csrw mepc, t1\n"
                     "li t1, 0x1800\n" /* MPP: user mode; MPIE: enables interrupts there */
                     "csrc mstatus, t1\n"
                     "li t1, 0x80\n"
                     "csrs mstatus, t1\n"
                     "ld tp, 40(t0)\n" REGISTERS("ld")
                     "ld t0, 48(t0)\n"
                     "mret\n");
}

__attribute__((used)) static _Noreturn void start(uint64_t number)
{
    struct core *const core = &cores[number];
    if (number == 0)
        for (char *to = board_bss; to < board_bss_end; to++)
            *to = 0;
    __asm__ volatile("mv tp, %0" : : "r"(core));
    core->number = (uint32_t)number;
    core->stack = (uintptr_t)kernel_stacks + STACK_BYTES * (number + 1);
    core->frame = &core->own;
    WRITE("mscratch", core);
    WRITE("mtvec", trap_entry);
    /* No access below the applications' memory, full access to it, none above: ranges given by their end
     * (TOR, 0x08), the second one readable, writable and executable [Privileged ISA, 3.7.1]. */
    WRITE("pmpaddr0", (uintptr_t)user_begin >> 2);
    WRITE("pmpaddr1", (uintptr_t)user_end >> 2);
    WRITE("pmpcfg0", 0x0f08);
    machine_timer(0);
    WRITE("mie", 1u << INTERRUPT_MESSAGE | 1u << INTERRUPT_TIMER);
    if (number == 0) {
        kernel_begin();
        for (uint32_t other = 1; other < CORES; other++)
            machine_send(other);
    }
    kernel_core(core);
}

/* All cores begin here; all but the first sleep until it has cleared the memory. */
__attribute__((naked, section(".reset"), used)) void board_reset(void)
{
    __asm__ volatile("csrr a0, mhartid\n"
                     "li t0, %0\n"
                     "bgeu a0, t0, 3f\n" /* a core that this kernel does not support */
                     "csrwi mie, 8\n"
                     "beqz a0, 2f\n"
                     "1: wfi\n"
                     "csrr t0, mip\n"
                     "andi t0, t0, 8\n"
                     "beqz t0, 1b\n"
                     "2: la sp, kernel_stacks\n"
                     "addi t0, a0, 1\n"
                     "slli t0, t0, 12\n" /* STACK_BYTES */
                     "add sp, sp, t0\n"
                     "j start\n"
                     "3: wfi\n"
                     "j 3b\n"
                     :
                     : "i"(CORES));
}
