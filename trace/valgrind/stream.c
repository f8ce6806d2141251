/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Buffers shared with rdx. They lie in one memory file mapped by both sides:
 * a control page, then NBUF buffers, each followed by a tail. A full buffer
 * is announced over a socket and comes back over the same socket. When rdx
 * goes away the program goes on: the buffers are then filled and forgotten.
 *
 * With StoreGuarded generated code takes all the room that a segment needs
 * when it enters it (one load and one store of the cursor), then stores word
 * by word. The tail is protected; the first store into it faults. The handler
 * opens that tail, so that the segment under way completes there, and points
 * the cursor at the next buffer, whose tail is closed. This is the scheme of
 * Shen and Shaw, section 3, Algorithm 2, with the two pages in two buffers,
 * so that one is read while the other is written. No register is changed.
 */
#include "stream.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_libcsignal.h"
#include "pub_tool_machine.h"
#include "pub_tool_threadstate.h"

#define PAGE       4096UL
#define NBUF       MAX_BUFFERS
#define NBUF_CHILD 4 /* that a process uses if there can be many */
#define DATA_BYTES (2UL << 20)
#define TAIL_BYTES (1UL << 16) /* more than a segment and its header */

/* In the core, though not in the headers for tools. */
extern Int VG_(safe_fd)(Int oldfd);
extern volatile Bool VG_(in_generated_code);
extern ThreadId VG_(running_tid);
extern void VG_(discard_translations)(Addr start, ULong range, const HChar* who);

/* rdx reads this when the program has died. */
struct control {
   ULong* cursor;
   ULong* limit;
   ULong  base;    /* address of this page in the program's process */
   ULong  in_use;  /* buffer that the cursor is in */
   ULong  retired; /* buffers given up for the next one, ever */
   Long   pending; /* buffer that is full but for a segment under way, or -1 */
   ULong  pending_words;
};

/* In the image of the tool, so that generated code reaches the control page
   with a 32-bit address; the memory file is mapped over it. */
static struct {
   union {
      struct control c;
      UChar page[PAGE];
   } control;
   UChar buffers[NBUF][DATA_BYTES + TAIL_BYTES];
} region __attribute__((aligned(4096)));

#define control region.control.c

ULong** const stream_cursor = &control.cursor;
ULong** const stream_limit  = &control.limit;

StoreMode store_mode = StoreGuarded;

/* Messages on the socket: from the tool 24 bytes, from rdx 4 bytes (the
   number of a buffer that is free again). */
struct message {
   UInt  kind;
   UInt  buffer;
   ULong words;
   ULong pid;
};
enum { MSG_HELLO = 1, MSG_FULL = 2, MSG_ENTRIES = 3 /* full, of nothing but entries */ };

static Int   sock = -1;
static UInt  nbuf = NBUF;     /* buffers in use */
static Bool  is_free[NBUF];
static Bool  tail_open[NBUF];
static Bool  marked[NBUF];        /* has words that are no entries */
static Int   last_tid;            /* kernel thread of the last WORD_THREAD */
static Bool  client_fault;        /* a segment did not run to its end */
static Addr  fault_pc;            /* where; the handler's pc comes next */
static Bool  follow_children;
static const HChar* path;

/* StoreSampled: rdx answers a buffer when it has analysed it, with the number
   of accesses that it has no use for. Those are counted, and written to one
   place over and over. */
static ULong granted;         /* accesses; 0 while all are recorded */
static ULong offered;         /* by the last answer */
static ULong window;          /* words of a buffer before it is handed over */
static ULong nowhere[MAX_WORDS + 1];
static ULong* place = nowhere;
#define RECORDING (-(1LL << 62))
static Long   left = RECORDING; /* of granted; far below 0 while all are recorded */
ULong** const stream_place = &place;
Long* const   stream_left = &left;
#define LEAST_WINDOW 256 /* most samples are over soon */

static Long call6(ULong n, ULong a, ULong b, ULong c, ULong d, ULong e, ULong f)
{
   Long r;
   register ULong r10 __asm__("r10") = d;
   register ULong r8 __asm__("r8") = e;
   register ULong r9 __asm__("r9") = f;
   __asm__ volatile("syscall" : "=a"(r)
                    : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                    : "rcx", "r11", "memory");
   return r;
}

static ULong* data_of(UInt b) { return (ULong*)region.buffers[b]; }
static UChar* tail_of(UInt b) { return region.buffers[b] + DATA_BYTES; }

static void protect_tail(UInt b, Bool open)
{
   if (store_mode != StoreGuarded || tail_open[b] == open) return;
   Long r = call6(__NR_mprotect, (Addr)tail_of(b), TAIL_BYTES,
                  open ? VKI_PROT_READ | VKI_PROT_WRITE : VKI_PROT_NONE, 0, 0, 0);
   tl_assert2(r == 0, "rdx: mprotect of the guarded page: error %lld", -r);
   tail_open[b] = open;
}

static void hang_up(void)
{
   if (sock >= 0) VG_(close)(sock);
   sock = -1;
   for (UInt b = 0; b < nbuf; b++) is_free[b] = b != control.in_use && (Long)b != control.pending;
}

static void send_message(UInt kind, UInt buffer, ULong words)
{
   struct message m = { kind, buffer, words, (ULong)VG_(getpid)() };
   if (sock < 0) return;
   Long r;
   do
      r = call6(__NR_sendto, sock, (Addr)&m, sizeof m, 0x4000 /* MSG_NOSIGNAL */, 0, 0);
   while (r == -VKI_EINTR);
   if (r != sizeof m) hang_up();
}

/* Looks which buffers rdx has given back. If none is free it waits for some of
   them: to sleep and be woken for each costs both sides more. */
static UInt next_buffer(void)
{
   Bool dry = False;
   for (;;) {
      /* the first, so that no more memory is used than must be */
      UInt b, first = nbuf, nfree = 0;
      for (Int i = (Int)nbuf - 1; i >= 0; i--)
         if (is_free[i]) {
            first = i;
            nfree++;
         }
      if (sock < 0) return first;
      if (nfree == 0) dry = True;
      Bool wait = dry && nfree < nbuf / 2;
      Long r = call6(__NR_recvfrom, sock, (Addr)&b, sizeof b, wait ? 0 : 0x40 /* MSG_DONTWAIT */, 0, 0);
      if (r == -VKI_EAGAIN) return first;
      if (r == -VKI_EINTR) continue;
      if (r != sizeof b || b >= nbuf) hang_up();
      else is_free[b] = True;
   }
}

static void use(UInt b)
{
   control.in_use = b;
   is_free[b] = False;
   marked[b] = False;
   protect_tail(b, False);
   control.limit = (ULong*)tail_of(b);
   if (store_mode == StoreSampled && window < DATA_BYTES / 8) control.limit = data_of(b) + window;
   control.cursor = data_of(b);
}

static void hand_over(UInt b, ULong words)
{
   if (sock < 0) is_free[b] = True;
   else send_message(marked[b] ? MSG_FULL : MSG_ENTRIES, b, words);
}

/* Gives away the buffer whose last segment has completed meanwhile. */
static void settle(void)
{
   if (control.pending < 0) return;
   UInt b = control.pending;
   control.pending = -1;
   hand_over(b, control.pending_words);
}

/* Hands the buffer over and waits for the answer. */
static void swap_sampled(void)
{
   UInt b = control.in_use;
   control.retired++;
   hand_over(b, control.cursor - data_of(b));
   offered = 0;
   while (sock >= 0) {
      struct { UInt buffer, pad; ULong skip; } m;
      Long r = call6(__NR_recvfrom, sock, (Addr)&m, sizeof m, 0x100 /* MSG_WAITALL */, 0, 0);
      if (r == -VKI_EINTR) continue;
      if (r != sizeof m || m.buffer != b) hang_up();
      else offered = m.skip;
      break;
   }
   if (window < DATA_BYTES / 8) window *= 2;
   use(b);
}

static void swap(void)
{
   if (store_mode == StoreSampled) {
      swap_sampled();
      return;
   }
   settle();
   UInt full = control.in_use;
   ULong words = control.cursor - data_of(full);
   UInt next = next_buffer();
   control.retired++;
   use(next);
   hand_over(full, words);
}

void stream_make_room(void) { swap(); }

/* The segment under way has taken words up to the cursor and writes the rest
   of them into the tail, which is open from now on. */
static void guard_hit(void)
{
   settle();
   UInt full = control.in_use;
   ULong words = control.cursor - data_of(full);
   protect_tail(full, True);
   UInt next = next_buffer();
   control.retired++;
   control.pending_words = words;
   control.pending = full;
   use(next);
}

static void end_skip(Long rest);

void stream_put(UInt kind, const ULong* words, UInt n)
{
   settle();
   if (kind == WORD_SYSCALL_EXEC) end_skip(left);
   if ((UChar*)(control.cursor + n + 1) > tail_of(control.in_use)) swap();
   tl_assert((UChar*)(control.cursor + n + 1) <= tail_of(control.in_use));
   ULong* p = control.cursor;
   *p++ = kind | (ULong)n << 32;
   for (UInt i = 0; i < n; i++) *p++ = words[i];
   control.cursor = p;
   marked[control.in_use] = True;
}

/* Back to recording, when so many accesses of those granted are left. */
static void end_skip(Long rest)
{
   if (granted == 0) return;
   ULong n = granted - rest;
   granted = 0;
   left = RECORDING;
   window = LEAST_WINDOW;
   stream_put(WORD_SKIPPED, &n, 1);
   if (control.cursor + window < control.limit) control.limit = control.cursor + window;
   stream_running();
}

void stream_enter(ULong room, ULong accesses)
{
   Long rest = left + (Long)accesses;
   left = RECORDING;
   end_skip(rest);
   if (control.cursor != data_of(control.in_use) && control.cursor + room > control.limit) {
      swap();
      if (sock < 0) offered = 1ULL << 62;
      if (offered >= accesses && offered > 0) {
         granted = offered;
         left = granted - accesses;
         place = nowhere;
         return;
      }
   }
   place = control.cursor;
   control.cursor += room;
}

void stream_flush(void)
{
   settle();
   if (control.cursor != data_of(control.in_use)) swap();
}

void stream_close(void)
{
   end_skip(left);
   stream_put(WORD_END, NULL, 0);
   stream_flush();
}

/* ---- threads and faults ---- */

void stream_running(void)
{
   if (granted > 0) return; /* told when recording goes on */
   Int tid = VG_(gettid)();
   settle();
   if (tid == last_tid) return;
   ULong w = tid;
   stream_put(WORD_THREAD, &w, 1);
   last_tid = tid;
}

static void stopped(ThreadId tid, ULong blocks)
{
   (void)tid; (void)blocks;
   if (!client_fault) {
      settle();
      return;
   }
   client_fault = False;
   if (granted > 0) return;
   if (control.pending >= 0 && control.cursor == data_of(control.in_use)) {
      /* that segment lies in the open tail */
      ULong* p = data_of(control.pending) + control.pending_words;
      p[0] = WORD_FAULT | 1ULL << 32;
      p[1] = fault_pc;
      control.pending_words += 2;
      settle();
      return;
   }
   settle();
   /* It must lie next to its segment, if need be in the tail. */
   protect_tail(control.in_use, True);
   *control.cursor++ = WORD_FAULT | 1ULL << 32;
   *control.cursor++ = fault_pc;
   if ((UChar*)control.cursor > tail_of(control.in_use)) swap();
   else protect_tail(control.in_use, False);
}

typedef void (*Handler)(Int, vki_siginfo_t*, void*);
static Handler core_handler[VKI_SIGSEGV + 1];

static void on_fault(Int sig, vki_siginfo_t* info, void* context)
{
   if (VG_(in_generated_code) && info->si_code > 0) {
      UChar* a = info->_sifields._sigfault._addr;
      UChar* tail = tail_of(control.in_use);
      if (sig == VKI_SIGSEGV && a >= tail && a < tail + TAIL_BYTES) {
         guard_hit();
         return;
      }
      client_fault = True;
      fault_pc = VG_(get_IP)(VG_(running_tid));
   }
   core_handler[sig](sig, info, context);
   /* The core comes back here only when it has made the stack grow; the
      instruction is then tried again. Otherwise it has jumped away. */
   client_fault = False;
}

/* The linker sends the core's calls of VG_(sigaction) here (--wrap), so that
   the faults of generated code come to us first. */
extern Int __real_vgPlain_sigaction(Int, const vki_sigaction_toK_t*, vki_sigaction_fromK_t*);
Int __wrap_vgPlain_sigaction(Int sig, const vki_sigaction_toK_t* act, vki_sigaction_fromK_t* old);

Int __wrap_vgPlain_sigaction(Int sig, const vki_sigaction_toK_t* act, vki_sigaction_fromK_t* old)
{
   if (sig != VKI_SIGSEGV && sig != VKI_SIGBUS && sig != VKI_SIGFPE)
      return __real_vgPlain_sigaction(sig, act, old);
   Handler before = core_handler[sig];
   vki_sigaction_toK_t ours;
   if (act) {
      ours = *act;
      if (act->ksa_handler != VKI_SIG_DFL && act->ksa_handler != VKI_SIG_IGN
          && (act->sa_flags & VKI_SA_SIGINFO)) {
         core_handler[sig] = (Handler)(Addr)act->ksa_handler;
         ours.ksa_handler = (void*)on_fault;
      }
   }
   Int r = __real_vgPlain_sigaction(sig, act ? &ours : NULL, old);
   if (old && (Addr)old->ksa_handler == (Addr)on_fault)
      old->ksa_handler = (void*)before;
   return r;
}

/* ---- opening ---- */

static void map_region(Int fd)
{
   Int flags = VKI_MAP_FIXED | (fd < 0 ? VKI_MAP_PRIVATE | VKI_MAP_ANONYMOUS : 0x01 /* MAP_SHARED */);
   Long r = call6(__NR_mmap, (Addr)&region, sizeof region,
                  VKI_PROT_READ | VKI_PROT_WRITE, flags, fd, 0);
   tl_assert2(r == (Long)(Addr)&region, "rdx: mapping the buffers: error %lld", -r);
   for (UInt b = 0; b < NBUF; b++) {
      tail_open[b] = True; /* as mapped */
      protect_tail(b, False);
      is_free[b] = b < nbuf;
   }
   control.base = (Addr)&region;
   control.retired = 0;
   control.pending = -1;
   client_fault = False;
   last_tid = 0;
   granted = 0;
   left = RECORDING;
   place = nowhere;
   window = LEAST_WINDOW;
   use(0);
}

/* Sends the memory file with the first message, so that no name of it is
   ever in a file system. */
static Bool say_hello(Int fd)
{
   struct message m = { MSG_HELLO, STREAM_VERSION, sizeof region, (ULong)VG_(getpid)() };
   struct { ULong base, len; } iov = { (Addr)&m, sizeof m };
   struct { ULong len; Int level, type; Int fd; Int pad; } rights = { 20, 1 /* SOL_SOCKET */, 1 /* SCM_RIGHTS */, fd, 0 };
   struct {
      ULong name; UInt namelen; UInt pad0;
      ULong iov, iovlen, ancillary, ancillary_len; Int flags; Int pad1;
   } h = { 0, 0, 0, (Addr)&iov, 1, (Addr)&rights, sizeof rights, 0, 0 };
   return call6(__NR_sendmsg, sock, (Addr)&h, 0x4000, 0, 0, 0) == sizeof m;
}

static Bool connect_to_rdx(void)
{
   struct { UShort family; HChar path[108]; } a;
   VG_(memset)(&a, 0, sizeof a);
   a.family = 1; /* AF_UNIX */
   tl_assert(VG_(strlen)(path) < sizeof a.path);
   VG_(strcpy)(a.path, path);
   Long s = call6(__NR_socket, 1, 1 | 02000000 /* SOCK_STREAM | SOCK_CLOEXEC */, 0, 0, 0, 0);
   if (s < 0) return False;
   sock = VG_(safe_fd)((Int)s);
   if (call6(__NR_connect, sock, (Addr)&a, 2 + VG_(strlen)(path) + 1, 0, 0, 0) != 0) {
      hang_up();
      return False;
   }
   Long fd = call6(__NR_memfd_create, (Addr)"rdx", 1 /* MFD_CLOEXEC */, 0, 0, 0, 0);
   if (fd < 0 || call6(__NR_ftruncate, fd, sizeof region, 0, 0, 0, 0) != 0) {
      hang_up();
      return False;
   }
   map_region((Int)fd);
   Bool ok = say_hello((Int)fd);
   VG_(close)((Int)fd);
   if (!ok) hang_up();
   return ok;
}

/* A child shares no buffer with its parent. Followed, it starts a stream of
   its own, in which every segment is defined anew; else it records nothing. */
static void in_child(ThreadId tid)
{
   (void)tid;
   if (sock >= 0) VG_(close)(sock);
   sock = -1;
   map_region(-1);
   if (!follow_children || path == NULL) return;
   connect_to_rdx();
   VG_(discard_translations)((Addr)1, 1ULL << 62, "rdx child");
}

void stream_open(const HChar* socket_path, Bool children, UInt buffers)
{
   follow_children = children;
   if (buffers > 0) nbuf = buffers;
   else if (children) nbuf = NBUF_CHILD;
   path = socket_path;
   map_region(-1);
   /* The program goes on in any case. rdx reports a run without a stream. */
   if (path != NULL && !connect_to_rdx()) VG_(umsg)("rdx: connecting to %s: no answer\n", path);
   VG_(atfork)(NULL, NULL, in_child);
   VG_(track_stop_client_code)(stopped);
}
