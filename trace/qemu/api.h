/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What this plugin uses of QEMU's plugin interface, version 1, which Debian's
 * packages of QEMU do not ship a header for. See docs/devel/tcg-plugins in
 * QEMU's sources.
 */
#ifndef RDX_QEMU_API_H
#define RDX_QEMU_API_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
/* From bit 16 on 1 for a load, 2 for a store, 3 for both at once (an atomic
   operation while several threads run), which no function of 7.2 tells. */
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb*);
struct qemu_plugin_insn* qemu_plugin_tb_get_insn(const struct qemu_plugin_tb*, size_t);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn*);
const void* qemu_plugin_insn_data(const struct qemu_plugin_insn*);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn*);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb*));
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned vcpu));
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn*,
                                      void (*)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t vaddr, void*),
                                      enum qemu_plugin_cb_flags, enum qemu_plugin_mem_rw, void*);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn*, enum qemu_plugin_op, void* counter, uint64_t by);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t,
                                          void (*)(qemu_plugin_id_t, unsigned vcpu, int64_t number,
                                                   uint64_t, uint64_t, uint64_t, uint64_t,
                                                   uint64_t, uint64_t, uint64_t, uint64_t));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void*), void*);

#endif
