/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A QEMU user-mode plugin that writes every data access of a program into
 * buffers shared with rdx. Threads run truly in parallel, each with buffers
 * and a socket of its own. What is written, and the layout of the buffers, is
 * that of the valgrind tool (../valgrind/stream.h and stream.c), with one
 * access to a segment: what an instruction accesses is known only when it has.
 */
#define _GNU_SOURCE
#include "api.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define STREAM_VERSION 4
#define NBUF       8
/* With order=on rdx reads nothing before the program's end, so that its work takes no
   processor from the threads; memory that is not written is not there. */
#define NBUF_ORDER 4096
#define DATA_BYTES (1UL << 20)
#define TAIL_BYTES (1UL << 16)
#define CONTROL_BYTES 4096UL
#define REGION_BYTES (CONTROL_BYTES + nbuf * (DATA_BYTES + TAIL_BYTES))

/* With order=on, a thread writes the time after so many words, before and
   after system calls and at both ends of a buffer. */
#define STRETCH_WORDS 128

enum { WORD_DEFINE = 4, WORD_THREAD = 8, WORD_EXEC = 16, WORD_END = 20, WORD_TIME = 28, WORD_FIRST_SEGMENT = 64, NEXT_SEGMENT = 4 };
enum { MSG_HELLO = 1, MSG_FULL = 2 };
#define SITE_PC_BITS 48
#define SITE_OPS_BIT 60
#define BASE_OWN     (0xfffULL << 52)

struct message { uint32_t kind, buffer; uint64_t words, pid; };

struct control {
   uint64_t* cursor;
   uint64_t* limit;
   uint64_t  base;
   uint64_t  in_use;
   uint64_t  retired;
   int64_t   pending;
   uint64_t  pending_words;
};

/* Sizes: powers of two, then so many pieces. */
enum { PIECE = 3, JOINED = 8, SIZES = JOINED + 5 };

/* An instruction; what it was seen to do has a segment each. QEMU shows a
   vector in pieces of 8 bytes; those that one execution touches one behind the
   other are joined. */
struct site {
   uint64_t pc;
   uint64_t executions; /* of an instruction whose pieces are joined */
   uint32_t pieces;     /* that it can have */
   uint32_t segment[4][SIZES]; /* by load and store, by size; 0: not yet */
};

static uint64_t bytes_of(unsigned size) { return size < JOINED ? 1ULL << size : 8ULL * (size - JOINED); }

struct thread {
   struct control* control; /* and the buffers behind it */
   int   sock;              /* -1 when rdx has gone: what is written is lost */
   bool  is_free[NBUF_ORDER];
   uint64_t* due;           /* where the next time is to be written */
   bool* defined; /* by segment */
   uint32_t ndefined;
   /* The last access, if more pieces of it may come. */
   const struct site* site;
   uint64_t  execution, behind; /* behind: the address where it ends */
   uint64_t* at;
   unsigned  op, pieces;
   struct thread* next;
};

int qemu_plugin_version EXPORT = 1;

static char* path;
static bool  follow_children;
static bool  recording = true;
static bool  order;
static uint32_t nbuf = NBUF;
static uint32_t next_segment = WORD_FIRST_SEGMENT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct thread* threads;
static __thread struct thread* self __attribute__((tls_model("initial-exec")));

static uint64_t* data_of(struct thread* t, uint32_t b)
{
   return (uint64_t*)((char*)t->control + CONTROL_BYTES + b * (DATA_BYTES + TAIL_BYTES));
}

static void hang_up(struct thread* t)
{
   if (t->sock >= 0) close(t->sock);
   t->sock = -1;
}

static void use(struct thread* t, uint32_t b)
{
   t->is_free[b] = false;
   t->control->in_use = b;
   t->control->limit = data_of(t, b) + DATA_BYTES / 8;
   t->control->cursor = data_of(t, b);
   t->due = order ? t->control->cursor : (uint64_t*)UINTPTR_MAX;
}

/* Writes the time: what the thread has accessed since the last one lies between
   the two. A buffer's tail has room for it. */
static void stamp(struct thread* t)
{
   struct timespec now;
   clock_gettime(CLOCK_MONOTONIC, &now);
   uint64_t* p = t->control->cursor;
   p[0] = WORD_TIME | 1ULL << 32;
   p[1] = now.tv_sec * 1000000000ULL + now.tv_nsec;
   t->control->cursor = p + 2;
   t->due = p + 2 + STRETCH_WORDS;
}

static uint32_t next_buffer(struct thread* t)
{
   for (;;) {
      /* the first, so that no more memory is used than must be */
      uint32_t b, first = 0;
      while (first < nbuf && !t->is_free[first]) first++;
      if (t->sock < 0) return t->control->in_use == 0;
      ssize_t r = recv(t->sock, &b, sizeof b, first < nbuf ? MSG_DONTWAIT : MSG_WAITALL);
      if (r < 0 && errno == EAGAIN) return first;
      if (r < 0 && errno == EINTR) continue;
      if (r != sizeof b || b >= nbuf) hang_up(t);
      else t->is_free[b] = true;
   }
}

static void swap(struct thread* t)
{
   if (order) stamp(t);
   uint32_t full = t->control->in_use;
   struct message m = { MSG_FULL, full, t->control->cursor - data_of(t, full), getpid() };
   uint32_t next = next_buffer(t);
   t->control->retired++;
   use(t, next);
   if (t->sock >= 0 && send(t->sock, &m, sizeof m, MSG_NOSIGNAL) != sizeof m) hang_up(t);
}

static void put(struct thread* t, uint32_t kind, const uint64_t* words, uint32_t n)
{
   uint64_t* p = t->control->cursor;
   *p++ = kind | (uint64_t)n << 32;
   for (uint32_t i = 0; i < n; i++) *p++ = words[i];
   t->control->cursor = p;
   if (p >= t->control->limit) swap(t);
}

static bool greet(struct thread* t, int fd)
{
   struct message m = { MSG_HELLO, STREAM_VERSION, REGION_BYTES, getpid() };
   struct iovec iov = { &m, sizeof m };
   union { char b[CMSG_SPACE(sizeof fd)]; struct cmsghdr h; } rights = { { 0 } };
   struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = rights.b, .msg_controllen = sizeof rights.b };
   struct cmsghdr* c = CMSG_FIRSTHDR(&h);
   c->cmsg_level = SOL_SOCKET;
   c->cmsg_type = SCM_RIGHTS;
   c->cmsg_len = CMSG_LEN(sizeof fd);
   memcpy(CMSG_DATA(c), &fd, sizeof fd);
   return sendmsg(t->sock, &h, MSG_NOSIGNAL) == sizeof m;
}

/* The program gets the lowest numbers that are free, as outside. */
static int move_up(int fd)
{
   int high = fcntl(fd, F_DUPFD_CLOEXEC, 900);
   if (high < 0) return fd;
   close(fd);
   return high;
}

static struct thread* open_thread(void)
{
   struct thread* t = calloc(1, sizeof *t);
   if (t == NULL) abort();
   int fd = memfd_create("rdx", MFD_CLOEXEC);
   if (fd < 0 || ftruncate(fd, REGION_BYTES) != 0) abort();
   void* p = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
   if (p == MAP_FAILED) abort();
   t->control = p;
   t->control->base = (uint64_t)p;
   t->control->pending = -1;
   for (uint32_t b = 0; b < nbuf; b++) t->is_free[b] = true;
   use(t, 0);
   struct sockaddr_un a = { .sun_family = AF_UNIX };
   strncpy(a.sun_path, path, sizeof a.sun_path - 1);
   t->sock = move_up(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
   if (connect(t->sock, (struct sockaddr*)&a, sizeof a) != 0 || !greet(t, fd)) hang_up(t);
   close(fd);
   uint64_t tid = syscall(SYS_gettid);
   put(t, WORD_THREAD, &tid, 1);
   pthread_mutex_lock(&lock);
   t->next = threads;
   threads = t;
   pthread_mutex_unlock(&lock);
   self = t;
   return t;
}

static uint32_t segment_of(struct site* s, unsigned op, unsigned size)
{
   uint32_t* at = &s->segment[op][size];
   uint32_t id = __atomic_load_n(at, __ATOMIC_RELAXED);
   if (id == 0) {
      uint32_t mine = __atomic_fetch_add(&next_segment, NEXT_SEGMENT, __ATOMIC_RELAXED);
      if (__atomic_compare_exchange_n(at, &id, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) id = mine;
   }
   return id;
}

/* The segment of an access, which rdx knows from then on. */
static uint32_t define(struct thread* t, struct site* s, unsigned op, unsigned size)
{
   uint32_t id = segment_of(s, op, size);
   if (id >= t->ndefined) {
      uint32_t n = 2 * id;
      t->defined = realloc(t->defined, n);
      if (t->defined == NULL) abort();
      memset(t->defined + t->ndefined, 0, n - t->ndefined);
      t->ndefined = n;
   }
   if (t->defined[id]) return id;
   t->defined[id] = true;
   uint64_t w[3] = { id | 1ULL << 32,
                     (s->pc & ((1ULL << SITE_PC_BITS) - 1)) | bytes_of(size) << SITE_PC_BITS | (uint64_t)op << SITE_OPS_BIT,
                     BASE_OWN };
   put(t, WORD_DEFINE, w, 3);
   return id;
}

static void on_access(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void* data)
{
   (void)vcpu;
   struct thread* t = self;
   if (t == NULL) {
      if (!recording) return;
      t = open_thread();
   }
   struct site* s = data;
   unsigned op = info >> 16 & 3, size = qemu_plugin_mem_size_shift(info) & 7;
   if (t->site == s && t->behind == addr && t->execution == s->executions && t->op == op
       && size == PIECE && t->pieces < s->pieces && t->at + 2 == t->control->cursor) {
      t->at[0] = s->segment[op][JOINED + ++t->pieces] | 1ULL << 32;
      t->behind += 8;
      return;
   }
   if (t->control->cursor >= t->control->limit) swap(t);
   if (t->control->cursor >= t->due) stamp(t);
   uint32_t id = s->segment[op][size];
   if (id == 0 || id >= t->ndefined || !t->defined[id]) {
      for (unsigned i = 2; size == PIECE && i <= s->pieces; i++) define(t, s, op, JOINED + i);
      id = define(t, s, op, size);
   }
   uint64_t* p = t->control->cursor;
   p[0] = id | 1ULL << 32;
   p[1] = addr;
   t->control->cursor = p + 2;
   t->site = NULL;
   if (s->pieces && size == PIECE) {
      t->site = s;
      t->execution = s->executions;
      t->behind = addr + 8;
      t->at = p;
      t->op = op;
      t->pieces = 1;
   }
}

/* How many pieces of 8 bytes an instruction's access to memory can have: 2 with
   SSE or cmpxchg16b, 4 with AVX; 0 if each is an access of its own, as with
   gathers and masked moves. */
static uint32_t pieces_of(const uint8_t* b, size_t n)
{
   size_t i = 0;
   while (i < n && (strchr("\x66\xf2\xf3\x2e\x3e\x26\x36\x64\x65\x67\xf0", b[i]) && b[i])) i++;
   if (i < n && (b[i] & 0xf0) == 0x40) i++;
   if (i + 3 < n && b[i] == 0xc4) {
      uint8_t op = b[i + 3];
      bool each = (b[i + 1] & 0x1f) == 2 && ((op >= 0x90 && op <= 0x93) || (op >= 0x2c && op <= 0x2f) || op == 0x8c || op == 0x8e);
      return each ? 0 : 4;
   }
   if (i < n && b[i] == 0xc5) return 4;
   if (i + 1 >= n || b[i] != 0x0f) return 0;
   uint8_t op = b[i + 1];
   bool vector = (op >= 0x10 && op <= 0x17) || (op >= 0x28 && op <= 0x2f) || (op >= 0x50 && op <= 0x7f)
                 || op == 0x38 || op == 0x3a || op == 0xc2 || (op >= 0xc4 && op <= 0xc7) || op >= 0xd0;
   return vector ? 2 : 0;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb* tb)
{
   (void)id;
   size_t n = qemu_plugin_tb_n_insns(tb);
   struct site* sites = calloc(n, sizeof *sites); /* code may run as long as the program does */
   if (sites == NULL) abort();
   for (size_t i = 0; i < n; i++) {
      struct qemu_plugin_insn* insn = qemu_plugin_tb_get_insn(tb, i);
      sites[i].pc = qemu_plugin_insn_vaddr(insn);
      sites[i].pieces = pieces_of(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn));
      if (sites[i].pieces)
         qemu_plugin_register_vcpu_insn_exec_inline(insn, QEMU_PLUGIN_INLINE_ADD_U64, &sites[i].executions, 1);
      qemu_plugin_register_vcpu_mem_cb(insn, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, &sites[i]);
   }
}

static void on_syscall(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a, uint64_t b, uint64_t c,
                       uint64_t d, uint64_t e, uint64_t f, uint64_t g, uint64_t h)
{
   (void)id; (void)vcpu; (void)a; (void)b; (void)c; (void)d; (void)e; (void)f; (void)g; (void)h;
   if (self && order) {
      stamp(self);
      self->due = self->control->cursor;
   }
   if (self && (number == SYS_execve || number == SYS_execveat)) put(self, WORD_EXEC, NULL, 0);
}

static void end(struct thread* t)
{
   put(t, WORD_END, NULL, 0);
   swap(t);
   hang_up(t);
}

static void on_thread_exit(qemu_plugin_id_t id, unsigned vcpu)
{
   (void)id; (void)vcpu;
   struct thread* t = self;
   if (t == NULL) return;
   self = NULL;
   pthread_mutex_lock(&lock);
   for (struct thread** p = &threads; *p; p = &(*p)->next)
      if (*p == t) {
         *p = t->next;
         break;
      }
   pthread_mutex_unlock(&lock);
   end(t);
   munmap(t->control, REGION_BYTES);
   free(t->defined);
   free(t);
}

static void on_program_exit(qemu_plugin_id_t id, void* data)
{
   (void)id; (void)data;
   pthread_mutex_lock(&lock);
   for (struct thread* t = threads; t; t = t->next) end(t);
   pthread_mutex_unlock(&lock);
}

/* A child shares no buffer with its parent. */
static void in_child(void)
{
   for (struct thread* t = threads; t; t = t->next) hang_up(t);
   threads = NULL;
   self = NULL;
   pthread_mutex_init(&lock, NULL);
   recording = follow_children;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t* info, int argc, char** argv);

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t* info, int argc, char** argv)
{
   (void)info;
   for (int i = 0; i < argc; i++) {
      if (strncmp(argv[i], "socket=", 7) == 0) path = strdup(argv[i] + 7);
      else if (strcmp(argv[i], "children=on") == 0) follow_children = true;
      else if (strcmp(argv[i], "order=on") == 0) order = true;
      else return -1;
   }
   if (order) nbuf = NBUF_ORDER;
   if (path == NULL || pthread_atfork(NULL, NULL, in_child) != 0) return -1;
   qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
   qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
   qemu_plugin_register_vcpu_exit_cb(id, on_thread_exit);
   qemu_plugin_register_atexit_cb(id, on_program_exit, NULL);
   return 0;
}
