/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stream that the tool hands to rdx, and the buffers it travels in.
 *
 * The stream is a sequence of 64-bit words. A *segment* is a run of accesses
 * that generated code performs without any way out between them. It is
 * described once, when its code is translated (WORD_DEFINE). Each time it is
 * entered it writes its number and one address for every access whose address
 * cannot be worked out from the description and the addresses before it. So a
 * push next to another push, or a global variable, costs nothing.
 *
 * Such an entry is short if it has three addresses at most and the segment's
 * number is small: its first word has the number in the low 16 bits and the
 * first address in the others, where all addresses of programs find room (they
 * are sign extended). The low two bits, which are part of the number, say how
 * many words it has in all. They are 0 in the first word of all else: its low
 * half is a segment's number or one of those below, its high half the number of
 * words that follow.
 *
 * trace/stream.go reads this; the constants must agree.
 */
#ifndef RDX_STREAM_H
#define RDX_STREAM_H

#include "pub_tool_basics.h"

#define STREAM_VERSION 4

enum {
   WORD_PAD    = 0, /* nothing */
   WORD_DEFINE = 4, /* segment number | accesses << 32, then 2 words each */
   WORD_THREAD = 8, /* kernel thread id: what follows is this thread's */
   WORD_FAULT  = 12, /* guest pc: the segment just before stopped there */
   WORD_SYSCALL_EXEC = 16, /* the program asks to be replaced */
   WORD_END    = 20, /* the program has ended in an orderly way */
   WORD_SKIPPED = 24, /* accesses that went by unseen; StoreSampled only */
   WORD_TIME   = 28, /* ns of the monotonic clock; the QEMU plugin's alone */
   WORD_FIRST_SEGMENT = 64 /* the next ones are 68, 72, and so on */
};

/* The first word of a short entry. */
#define SHORT_WORDS   3 /* at most, the first one included */
#define SHORT_NUMBER  2 /* bits below the number */
#define SHORT_NUMBERS (1 << 14)
#define SHORT_ADDRESS 16 /* bits below the address */

/* The two words that describe an access. */
#define SITE_PC_BITS   48
#define SITE_SIZE_BITS 12 /* above the pc */
#define SITE_LOAD      (1ULL << 60)
#define SITE_STORE     (1ULL << 61)
#define SITE_GUARDED   (1ULL << 62) /* its word is 0 when it did not happen */
/* Second word: where the address comes from. The high 12 bits are BASE_OWN:
   a word of its own; BASE_NONE: the low 52 bits are the address (sign
   extended); otherwise the index of the segment's word to which the low 52
   bits (sign extended) are added. */
#define SITE_BASE_SHIFT 52
#define BASE_OWN  0xfffULL
#define BASE_NONE 0xffeULL
#define MAX_WORDS 0xf00 /* per segment */

typedef enum {
   StoreGuarded, /* no check: a protected page ends the buffer */
   StoreCheck,   /* one check and branch for each segment */
   StoreCheckEach, /* one for each access */
   StoreSampled   /* rdx says how many of the next accesses to leave out */
} StoreMode;

extern StoreMode store_mode;

/* What generated code reads and writes: the next free word of the buffer in
   use, and the first word it must not write (unused with StoreGuarded). */
extern ULong** const stream_cursor;
extern ULong** const stream_limit;

/* With StoreSampled generated code writes a segment to stream_place, after it
   has counted its accesses down. Below 0 it calls stream_enter first. */
extern ULong** const stream_place;
extern Long* const   stream_left;
void stream_enter(ULong room, ULong accesses);

/* With so many buffers, or 0: as many as there are, fewer with children. */
void stream_open(const HChar* socket_path, Bool children, UInt buffers);
#define MAX_BUFFERS 16
/* Makes room for a segment; called from generated code. */
void stream_make_room(void);
/* Called between segments, never from generated code. */
void stream_put(UInt kind, const ULong* words, UInt n);
void stream_running(void);
void stream_flush(void);
void stream_close(void);

#endif
