package exact

import "golang.org/x/sys/cpu"

// haveAVX2 is whether vectorStack and what is below it can run here.
var haveAVX2 = cpu.X86.HasAVX2 && cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasSSE42 && cpu.X86.HasPOPCNT
