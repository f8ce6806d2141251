// Prints what LLVM knows about instructions, for the differential tests.
// Arguments: triple, features. Input: one instruction a line in hexadecimal,
// possibly with bytes behind it. Output, a line for each:
//   length opcode-name flags defs
// flags: L may load, S may store, B branch, I indirect branch, C call,
// R return, or - ; defs: comma-separated registers written, or - ; "0" alone
// when LLVM does not decode it.
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
using namespace llvm;

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: llvm_oracle TRIPLE FEATURES <hex-lines\n");
    return 2;
  }
  InitializeAllTargetInfos();
  InitializeAllTargetMCs();
  InitializeAllDisassemblers();
  std::string err;
  const Target *t = TargetRegistry::lookupTarget(argv[1], err);
  if (!t) {
    fprintf(stderr, "%s\n", err.c_str());
    return 1;
  }
  MCTargetOptions opts;
  auto *mri = t->createMCRegInfo(argv[1]);
  auto *mai = t->createMCAsmInfo(*mri, argv[1], opts);
  auto *mii = t->createMCInstrInfo();
  auto *sti = t->createMCSubtargetInfo(argv[1], "", argv[2]);
  MCContext ctx(Triple(argv[1]), mai, mri, sti);
  auto *dis = t->createMCDisassembler(*sti, ctx);
  char line[256];
  while (fgets(line, sizeof line, stdin)) {
    std::vector<uint8_t> bytes;
    unsigned b;
    for (char *p = line; sscanf(p, "%2x", &b) == 1; p += 2)
      bytes.push_back(b);
    MCInst inst;
    uint64_t size = 0;
    if (dis->getInstruction(inst, size, bytes, 0, nulls()) != MCDisassembler::Success) {
      puts("0");
      continue;
    }
    const MCInstrDesc &d = mii->get(inst.getOpcode());
    std::string flags, defs;
    if (d.mayLoad()) flags += 'L';
    if (d.mayStore()) flags += 'S';
    if (d.isBranch()) flags += 'B';
    if (d.isIndirectBranch()) flags += 'I';
    if (d.isCall()) flags += 'C';
    if (d.isReturn()) flags += 'R';
    for (unsigned i = 0; i < d.getNumDefs(); i++)
      if (inst.getOperand(i).isReg() && inst.getOperand(i).getReg()) {
        defs += mri->getName(inst.getOperand(i).getReg());
        defs += ',';
      }
    for (const MCPhysReg *r = d.getImplicitDefs(); r && *r; r++) {
      defs += mri->getName(*r);
      defs += ',';
    }
    printf("%llu %s %s %s\n", (unsigned long long)size, mii->getName(inst.getOpcode()).str().c_str(),
           flags.empty() ? "-" : flags.c_str(), defs.empty() ? "-" : defs.c_str());
  }
}
