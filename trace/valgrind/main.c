/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A valgrind tool that writes every data access of a program into buffers
 * shared with rdx. It prints nothing of its own. See stream.h for what is
 * written and docs/reference/access-model.md for what counts as an access.
 */
#include "instrument.h"
#include "stream.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_options.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

/* In the core, though not in the headers for tools. */
extern Bool VG_(clo_trace_children);

static const HChar* socket_path;
static const HChar* store = "guard";
static Bool checks = False;
static Int buffers = 0;

static Bool option(const HChar* arg)
{
   if VG_STR_CLO(arg, "--rdx-socket", socket_path) {}
   else if VG_STR_CLO(arg, "--rdx-store", store) {}
   else if VG_BOOL_CLO(arg, "--rdx-spills", instrument_spills) {}
   else if VG_BOOL_CLO(arg, "--rdx-checks", checks) {}
   else if VG_BINT_CLO(arg, "--rdx-buffers", buffers, 2, MAX_BUFFERS) {}
   else return False;
   return True;
}

static void print_usage(void)
{
   VG_(printf)("    --rdx-socket=PATH         where rdx listens [the accesses are thrown away]\n"
               "    --rdx-store=guard|check|each   how a full buffer is noticed [guard]; or sampled: rdx\n"
               "                              says which accesses are left out\n"
               "    --rdx-spills=no|yes       show what valgrind stores on the stack for itself, as lackey [no]\n"
               "    --rdx-buffers=2..16       that are filled in turn [16; 4 with --trace-children=yes]\n"
               "    --rdx-checks=no|yes       have VEX check the code that it makes [no]\n");
}

static void print_debug_usage(void)
{
   VG_(printf)("    (none)\n");
}

static void running(ThreadId tid, ULong blocks)
{
   (void)tid; (void)blocks;
   stream_running();
}

static void before_syscall(ThreadId tid, UInt number, UWord* args, UInt nargs)
{
   (void)tid; (void)args; (void)nargs;
   if (number == __NR_execve || number == __NR_execveat) stream_put(WORD_SYSCALL_EXEC, NULL, 0);
}

static void after_syscall(ThreadId tid, UInt number, UWord* args, UInt nargs, SysRes res)
{
   (void)tid; (void)number; (void)args; (void)nargs; (void)res;
}

/* The linker sends the core here instead of to its reader of symbols and line
   numbers (--wrap). Nothing here needs them, and reading those of the C library
   takes longer than many a program. */
Bool __wrap_vgModuleLocal_read_elf_debug_info(void* info);

Bool __wrap_vgModuleLocal_read_elf_debug_info(void* info)
{
   (void)info;
   return False;
}

/* VEX checks each piece of code as it comes from the program, and when the tool has been at it,
   which takes a tenth of all translation. It is left to tests. */
void __real_sanityCheckIRSB(const void* code, const HChar* stage, Bool flat, UInt guest_word);
void __wrap_sanityCheckIRSB(const void* code, const HChar* stage, Bool flat, UInt guest_word);

void __wrap_sanityCheckIRSB(const void* code, const HChar* stage, Bool flat, UInt guest_word)
{
   if (checks) __real_sanityCheckIRSB(code, stage, flat, guest_word);
}

static void start(void)
{
   if (VG_(strcmp)(store, "guard") == 0) store_mode = StoreGuarded;
   else if (VG_(strcmp)(store, "check") == 0) store_mode = StoreCheck;
   else if (VG_(strcmp)(store, "each") == 0) store_mode = StoreCheckEach;
   else if (VG_(strcmp)(store, "sampled") == 0) store_mode = StoreSampled;
   else VG_(fmsg_bad_option)(store, "--rdx-store takes guard, check, each or sampled\n");
   stream_open(socket_path, VG_(clo_trace_children), (UInt)buffers);
}

static void finish(Int code)
{
   (void)code;
   stream_close();
}

static void before_options(void)
{
   VG_(details_name)("rdx");
   VG_(details_version)(NULL);
   VG_(details_description)("every data access of a program");
   VG_(details_copyright_author)("Licensed under the GNU GPL, version 2 or later.");
   VG_(details_bug_reports_to)("the project rdx");
   VG_(details_avg_translation_sizeB)(330);
   VG_(basic_tool_funcs)(start, instrument, finish);
   VG_(needs_command_line_options)(option, print_usage, print_debug_usage);
   VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
   VG_(track_start_client_code)(running);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
