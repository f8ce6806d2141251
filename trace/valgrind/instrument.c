/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which statements are accesses, and the code that records them.
 *
 * A superblock is cut into segments at its side exits: once a segment is
 * entered all of it is executed, unless an access of the program faults. The
 * accesses are planned for a whole segment, described to rdx, and then the
 * stores are put in front of the statements they belong to.
 */
#include "instrument.h"
#include "stream.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_machine.h"

#define MAX_SITES 4096

/* An address as a temporary plus a constant; root is IRTemp_INVALID for a
   constant alone. */
struct place {
   IRTemp root;
   Long   offset;
};

struct site {
   Int     stmt;  /* index in the superblock */
   Addr    pc;
   UInt    size;
   ULong   op;    /* SITE_LOAD, SITE_STORE or both */
   IRExpr* addr;
   IRExpr* guard; /* NULL: always */
   struct place at;
   Int     word;  /* index of its own word, or -1 */
   ULong   base;  /* what the second word of the description says */
};

struct block {
   IRSB*    in;
   IRSB*    out;
   IRExpr** def; /* of each temporary of the superblock */
   Int*     at;  /* and the statement that it is */
   Int      first; /* statement: the mark of the first instruction */
   Int      ip;    /* where the program counter is in the guest's state */
};

/* Of the segment that is planned; one superblock is translated at a time. */
static struct site sites[MAX_SITES];
static Int         nsites;
static Int         nwords;

Bool instrument_spills = False;

static UInt next_segment = WORD_FIRST_SEGMENT;
static UInt next_short[SHORT_WORDS + 1]; /* by words of an entry */

/* A number for the segment that is planned. */
static UInt new_segment(void)
{
   UInt n = nwords > 0 ? nwords : 1;
   if (n <= SHORT_WORDS && next_short[n] < SHORT_NUMBERS) return next_short[n]++ << SHORT_NUMBER | n;
   UInt segment = next_segment;
   next_segment += 1 << SHORT_NUMBER;
   tl_assert2(segment < 1U << 31, "rdx: out of segment numbers");
   return segment;
}

static Bool is_short(UInt segment) { return segment % (1 << SHORT_NUMBER) != 0; }

/* Words of its entries. */
static UInt length_of(UInt segment) { return is_short(segment) ? segment % (1 << SHORT_NUMBER) : 1 + (UInt)nwords; }

static struct place place_of(const struct block* b, IRExpr* e)
{
   struct place p = { IRTemp_INVALID, 0 };
   for (;;) {
      if (e->tag == Iex_Const) {
         tl_assert(e->Iex.Const.con->tag == Ico_U64);
         p.offset += e->Iex.Const.con->Ico.U64;
         p.root = IRTemp_INVALID;
         return p;
      }
      tl_assert(e->tag == Iex_RdTmp);
      p.root = e->Iex.RdTmp.tmp;
      IRExpr* d = b->def[p.root];
      if (d == NULL) return p;
      if (d->tag == Iex_RdTmp || d->tag == Iex_Const) {
         e = d;
         continue;
      }
      if (d->tag != Iex_Binop) return p;
      IRExpr* l = d->Iex.Binop.arg1;
      IRExpr* r = d->Iex.Binop.arg2;
      if (d->Iex.Binop.op == Iop_Add64 && r->tag == Iex_Const) {
         p.offset += r->Iex.Const.con->Ico.U64;
         e = l;
      } else if (d->Iex.Binop.op == Iop_Add64 && l->tag == Iex_Const) {
         p.offset += l->Iex.Const.con->Ico.U64;
         e = r;
      } else if (d->Iex.Binop.op == Iop_Sub64 && r->tag == Iex_Const) {
         p.offset -= r->Iex.Const.con->Ico.U64;
         e = l;
      } else
         return p;
   }
}

static Bool fits(Long v)
{
   return v >= -(1LL << (SITE_BASE_SHIFT - 1)) && v < 1LL << (SITE_BASE_SHIFT - 1);
}

static ULong base_word(ULong base, Long offset)
{
   return base << SITE_BASE_SHIFT | ((ULong)offset & ((1ULL << SITE_BASE_SHIFT) - 1));
}

static void add_site(const struct block* b, Int stmt, Addr pc, IRExpr* addr, UInt size, ULong op, IRExpr* guard)
{
   tl_assert2(nsites < MAX_SITES && nwords < MAX_WORDS, "rdx: a segment with too many accesses");
   tl_assert2(size < 1 << SITE_SIZE_BITS, "rdx: an access of %u bytes", size);
   if (guard && guard->tag == Iex_Const) {
      if (!guard->Iex.Const.con->Ico.U1) return;
      guard = NULL;
   }
   struct site* s = &sites[nsites];
   *s = (struct site){ stmt, pc, size, op, addr, guard, place_of(b, addr), -1, 0 };

   /* A load and then a store of the same datum by one instruction share a
      word. A compare-and-swap that follows its own load does the store. */
   struct site* last = nsites ? s - 1 : NULL;
   if (last && last->pc == pc && !last->guard && !guard && last->op == SITE_LOAD && (op & SITE_STORE)
       && last->size == size && last->at.root == s->at.root && last->at.offset == s->at.offset) {
      last->op |= SITE_STORE;
      return;
   }
   nsites++;
   if (guard == NULL) {
      if (s->at.root == IRTemp_INVALID && fits(s->at.offset)) {
         s->base = base_word(BASE_NONE, s->at.offset);
         return;
      }
      for (Int i = 0; s->at.root != IRTemp_INVALID && i < nsites - 1; i++) {
         struct site* o = &sites[i];
         if (o->word >= 0 && !o->guard && o->at.root == s->at.root && fits(s->at.offset - o->at.offset)) {
            s->base = base_word(o->word, s->at.offset - o->at.offset);
            return;
         }
      }
   }
   s->word = nwords++;
   s->base = base_word(BASE_OWN, 0);
}

/* A division can fault, and so end a segment early: a site without an
   access, so that the accesses behind it are known not to have happened. */
static void add_trap(Int stmt, Addr pc)
{
   tl_assert2(nsites < MAX_SITES, "rdx: a segment with too many accesses");
   sites[nsites++] = (struct site){ .stmt = stmt, .pc = pc, .word = -1,
                                    .at = { IRTemp_INVALID, 0 }, .base = base_word(BASE_NONE, 0) };
}

static Bool can_trap(const IRExpr* e)
{
   if (e->tag != Iex_Binop) return False;
   switch (e->Iex.Binop.op) {
   case Iop_DivModU64to32: case Iop_DivModS64to32:
   case Iop_DivModU128to64: case Iop_DivModS128to64:
      return True;
   default:
      return False;
   }
}

static UInt size_of(const struct block* b, const IRExpr* e)
{
   return sizeofIRType(typeOfIRExpr(b->in->tyenv, e));
}

/* VEX reads the elements that a gather leaves out from the stack pointer: the
   address is chosen within the instruction. Such a load is a guarded one. */
static void add_load(const struct block* b, Int i, Int mark, Addr pc, const IRExpr* load)
{
   IRExpr* addr = load->Iex.Load.addr;
   IRExpr* guard = NULL;
   if (addr->tag == Iex_RdTmp) {
      IRTemp t = addr->Iex.RdTmp.tmp;
      IRExpr* d = b->def[t];
      if (d && d->tag == Iex_ITE && b->at[t] > mark) {
         guard = d->Iex.ITE.cond;
         addr = d->Iex.ITE.iftrue;
      }
   }
   add_site(b, i, pc, addr, sizeofIRType(load->Iex.Load.ty), SITE_LOAD, guard);
}

/* bt, bts, btr or btc of a register. VEX puts the register on the program's
   stack for it, which the processor does not. */
static Bool tests_bit_of_register(Addr pc)
{
   const UChar* b = (const UChar*)pc;
   while (*b == 0x66 || *b == 0xf2 || *b == 0xf3) b++;
   if ((*b & 0xf0) == 0x40) b++;
   return b[0] == 0x0f && (b[1] & 0xe7) == 0xa3 && b[2] >= 0xc0;
}

/* The sites of statement i; mark is where its instruction begins. */
static void add_sites(const struct block* b, Int i, Int mark, Addr pc)
{
   const IRStmt* st = b->in->stmts[i];
   switch (st->tag) {
   case Ist_WrTmp: {
      IRExpr* d = st->Ist.WrTmp.data;
      if (d->tag == Iex_Load)
         add_load(b, i, mark, pc, d);
      else if (can_trap(d))
         add_trap(i, pc);
      break;
   }
   case Ist_Store:
      add_site(b, i, pc, st->Ist.Store.addr, size_of(b, st->Ist.Store.data), SITE_STORE, NULL);
      break;
   case Ist_StoreG: {
      const IRStoreG* g = st->Ist.StoreG.details;
      add_site(b, i, pc, g->addr, size_of(b, g->data), SITE_STORE, g->guard);
      break;
   }
   case Ist_LoadG: {
      const IRLoadG* g = st->Ist.LoadG.details;
      IRType result, loaded;
      typeOfIRLoadGOp(g->cvt, &result, &loaded);
      add_site(b, i, pc, g->addr, sizeofIRType(loaded), SITE_LOAD, g->guard);
      break;
   }
   case Ist_CAS: {
      const IRCAS* c = st->Ist.CAS.details;
      UInt size = size_of(b, c->dataLo) * (c->dataHi ? 2 : 1);
      add_site(b, i, pc, c->addr, size, SITE_LOAD | SITE_STORE, NULL);
      break;
   }
   case Ist_Dirty: {
      const IRDirty* d = st->Ist.Dirty.details;
      if (d->mFx == Ifx_None) break;
      ULong op = d->mFx == Ifx_Read ? SITE_LOAD : d->mFx == Ifx_Write ? SITE_STORE : SITE_LOAD | SITE_STORE;
      add_site(b, i, pc, d->mAddr, d->mSize, op, d->guard);
      break;
   }
   case Ist_LLSC:
      tl_assert2(0, "rdx: load-linked on a machine that has none");
   default:
      break;
   }
}

static void define(UInt segment)
{
   static ULong words[1 + 2 * MAX_SITES];
   words[0] = segment | (ULong)nsites << 32;
   for (Int i = 0; i < nsites; i++) {
      const struct site* s = &sites[i];
      words[1 + 2 * i] = (s->pc & ((1ULL << SITE_PC_BITS) - 1)) | (ULong)s->size << SITE_PC_BITS
                         | s->op | (s->guard ? SITE_GUARDED : 0);
      words[2 + 2 * i] = s->base;
   }
   stream_put(WORD_DEFINE, words, 1 + 2 * nsites);
}

/* ---- the code ---- */

static IRExpr* u64(ULong v) { return IRExpr_Const(IRConst_U64(v)); }

static IRExpr* assign(IRSB* out, IRType ty, IRExpr* e)
{
   IRTemp t = newIRTemp(out->tyenv, ty);
   addStmtToIRSB(out, IRStmt_WrTmp(t, e));
   return IRExpr_RdTmp(t);
}

static IRExpr* load_word(IRSB* out, void* from)
{
   return assign(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, u64((Addr)from)));
}

static void store_word(IRSB* out, IRExpr* to, IRExpr* v)
{
   addStmtToIRSB(out, IRStmt_Store(Iend_LE, to, v));
}

static IRExpr* plus(IRSB* out, IRExpr* p, ULong n)
{
   return n == 0 ? p : assign(out, Ity_I64, IRExpr_Binop(Iop_Add64, p, u64(n)));
}

/* Calls stream_make_room unless n bytes are left below the limit. */
static void check_room(IRSB* out, ULong n)
{
   IRExpr* end = plus(out, load_word(out, stream_cursor), n);
   IRExpr* full = assign(out, Ity_I1, IRExpr_Binop(Iop_CmpLT64U, load_word(out, stream_limit), end));
   IRDirty* call = unsafeIRDirty_0_N(0, "stream_make_room", VG_(fnptr_to_fnentry)(stream_make_room), mkIRExprVec_0());
   call->guard = full;
   addStmtToIRSB(out, IRStmt_Dirty(call));
}

/* Counts n accesses down, and has room made for the segment when they are to be
   recorded. */
static void count_down(IRSB* out, ULong room, ULong n)
{
   IRExpr* left = assign(out, Ity_I64, IRExpr_Binop(Iop_Sub64, load_word(out, stream_left), u64(n)));
   store_word(out, u64((Addr)stream_left), left);
   IRDirty* call = unsafeIRDirty_0_N(0, "stream_enter", VG_(fnptr_to_fnentry)(stream_enter), mkIRExprVec_2(u64(room), u64(n)));
   call->guard = assign(out, Ity_I1, IRExpr_Binop(Iop_CmpLT64S, left, u64(0)));
   addStmtToIRSB(out, IRStmt_Dirty(call));
}

/* A load and a store are two. */
static ULong accesses_of(const struct site* s)
{
   return (s->op & SITE_LOAD ? 1 : 0) + (s->op & SITE_STORE ? 1 : 0);
}

/* Takes the segment's room and returns the place of its first word. */
static IRExpr* take_room(IRSB* out, UInt segment)
{
   ULong n = length_of(segment);
   if (store_mode == StoreSampled) {
      ULong accesses = 0;
      for (Int i = 0; i < nsites; i++) accesses += accesses_of(&sites[i]);
      count_down(out, n, accesses);
      return load_word(out, stream_place);
   }
   if (store_mode != StoreGuarded) check_room(out, 8 * n);
   IRExpr* p = load_word(out, stream_cursor);
   store_word(out, u64((Addr)stream_cursor), plus(out, p, store_mode == StoreCheckEach ? 8 : 8 * n));
   return p;
}

/* Takes the segment's room and writes its first word, unless its first access
   is about to do that; returns the place of it. */
static IRExpr* open_segment(IRSB* out, UInt segment)
{
   IRExpr* p = take_room(out, segment);
   if (!is_short(segment))
      store_word(out, p, u64(segment | (ULong)nwords << 32));
   else if (sites[0].word != 0)
      store_word(out, p, u64(segment)); /* it may fault before it has an address */
   return p;
}

static void record(IRSB* out, UInt segment, const struct site* s, IRExpr* p)
{
   IRExpr* a = s->addr;
   if (s->guard) a = assign(out, Ity_I64, IRExpr_ITE(s->guard, a, u64(0)));
   if (s->guard && store_mode == StoreSampled) { /* counted, and did not happen */
      IRExpr* back = assign(out, Ity_I64, IRExpr_ITE(s->guard, u64(0), u64(accesses_of(s))));
      store_word(out, u64((Addr)stream_left), assign(out, Ity_I64, IRExpr_Binop(Iop_Add64, load_word(out, stream_left), back)));
   }
   Bool first = is_short(segment) && s->word == 0;
   if (first) {
      a = assign(out, Ity_I64, IRExpr_Binop(Iop_Shl64, a, IRExpr_Const(IRConst_U8(SHORT_ADDRESS))));
      a = assign(out, Ity_I64, IRExpr_Binop(Iop_Or64, a, u64(segment)));
   }
   /* The segment has its room already: what is measured is the branch. */
   if (store_mode == StoreCheckEach) check_room(out, 0);
   if (store_mode == StoreCheckEach && !first) {
      p = load_word(out, stream_cursor);
      store_word(out, u64((Addr)stream_cursor), plus(out, p, 8));
      store_word(out, p, a);
   } else
      store_word(out, plus(out, p, 8 * ((is_short(segment) ? 0 : 1) + (ULong)s->word)), a);
}

/* VEX repeats the code of a short loop within its superblock. It does not set the program
   counter at a superblock's first instruction, where it is known, and so not in the
   copies either, where a fault would be reported at the instruction before. */
static Bool starts_copy(const struct block* b, Int i)
{
   IRStmt** s = b->in->stmts;
   return s[i]->tag == Ist_IMark && i > b->first && s[i]->Ist.IMark.addr == s[b->first]->Ist.IMark.addr;
}

/* Copies statements [from, to), recording the accesses among them. */
static void emit_segment(const struct block* b, Int from, Int to)
{
   IRExpr* p = NULL;
   Int k = 0;
   UInt segment = 0;
   if (nsites > 0) {
      segment = new_segment();
      define(segment);
   }
   for (Int i = from; i < to; i++) {
      /* several sites can belong to one statement */
      for (; k < nsites && sites[k].stmt == i; k++) {
         if (p == NULL) p = open_segment(b->out, segment);
         if (sites[k].word >= 0) record(b->out, segment, &sites[k], p);
      }
      addStmtToIRSB(b->out, b->in->stmts[i]);
      if (starts_copy(b, i)) addStmtToIRSB(b->out, IRStmt_Put(b->ip, u64(b->in->stmts[i]->Ist.IMark.addr)));
   }
}

IRSB* instrument(VgCallbackClosure* closure, IRSB* in, const VexGuestLayout* layout,
                 const VexGuestExtents* extents, const VexArchInfo* host,
                 IRType guest_word, IRType host_word)
{
   (void)closure; (void)extents; (void)host;
   tl_assert2(guest_word == Ity_I64 && host_word == Ity_I64, "rdx: 64-bit programs only");
   struct block b = { in, deepCopyIRSBExceptStmts(in), NULL, NULL, 0, layout->offset_IP };

   Int i = 0;
   while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark)
      addStmtToIRSB(b.out, in->stmts[i++]);
   b.first = i;

   b.def = VG_(calloc)("rdx.instrument", in->tyenv->types_used + 1, sizeof *b.def);
   b.at = VG_(calloc)("rdx.instrument", in->tyenv->types_used + 1, sizeof *b.at);
   for (Int k = i; k < in->stmts_used; k++)
      if (in->stmts[k]->tag == Ist_WrTmp) {
         b.def[in->stmts[k]->Ist.WrTmp.tmp] = in->stmts[k]->Ist.WrTmp.data;
         b.at[in->stmts[k]->Ist.WrTmp.tmp] = k;
      }

   Addr pc = 0;
   Bool spill = False;
   Int from = i, mark = i;
   nsites = nwords = 0;
   for (; i < in->stmts_used; i++) {
      const IRStmt* st = in->stmts[i];
      if (st->tag == Ist_IMark) {
         pc = st->Ist.IMark.addr;
         mark = i;
         spill = tests_bit_of_register(pc);
      }
      if (!spill || instrument_spills) add_sites(&b, i, mark, pc);
      if (st->tag == Ist_Exit) {
         emit_segment(&b, from, i + 1);
         from = i + 1;
         nsites = nwords = 0;
      }
   }
   emit_segment(&b, from, i);
   VG_(free)(b.def);
   VG_(free)(b.at);
   return b.out;
}
