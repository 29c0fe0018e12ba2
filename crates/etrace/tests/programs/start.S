# SPDX-License-Identifier: Apache-2.0 OR MIT
# Runs main in user mode, and traps in machine mode.
    .section .start, "ax"
    .globl _start
_start:
    la sp, stack_end
    la t0, trap
    csrw mtvec, t0
    la t0, trap_stack_end
    csrw mscratch, t0
    # All of memory for user mode.
    li t0, -1
    csrw pmpaddr0, t0
    li t0, 0x1f
    csrw pmpcfg0, t0
    call machine_start
    csrw mstatus, zero
    la t0, user
    csrw mepc, t0
    mret
user:
    call main
    # The third of the calls to the machine ends it.
    li a7, 93
    ecall
    j .

    .balign 4
trap:
    csrrw sp, mscratch, sp
    addi sp, sp, -144
    sd ra, 0(sp)
    sd t0, 8(sp)
    sd t1, 16(sp)
    sd t2, 24(sp)
    sd t3, 32(sp)
    sd t4, 40(sp)
    sd t5, 48(sp)
    sd t6, 56(sp)
    sd a0, 64(sp)
    sd a1, 72(sp)
    sd a2, 80(sp)
    sd a3, 88(sp)
    sd a4, 96(sp)
    sd a5, 104(sp)
    sd a6, 112(sp)
    sd a7, 120(sp)
    csrr a1, mcause
    csrr a2, mepc
    mv a3, a7
    call machine_trap
    csrw mepc, a0
    ld ra, 0(sp)
    ld t0, 8(sp)
    ld t1, 16(sp)
    ld t2, 24(sp)
    ld t3, 32(sp)
    ld t4, 40(sp)
    ld t5, 48(sp)
    ld t6, 56(sp)
    ld a0, 64(sp)
    ld a1, 72(sp)
    ld a2, 80(sp)
    ld a3, 88(sp)
    ld a4, 96(sp)
    ld a5, 104(sp)
    ld a6, 112(sp)
    ld a7, 120(sp)
    addi sp, sp, 144
    csrrw sp, mscratch, sp
    mret

    .bss
    .balign 16
    .skip 16384
stack_end:
    .skip 4096
trap_stack_end:
