// Package bpf holds rdx's BPF programs and the Go code generated from them.
//
// The C is compiled by make generate, which needs clang and libbpf's headers;
// the result is committed, so that building rdx needs neither.
//
// The package is rdx's own and may change.
package bpf

//go:generate go tool bpf2go -cc clang -strip llvm-strip -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -target amd64,arm64 -type thread -type slot -type group -type trap -type stack_head -type stamp -type slot_state -type trap_kind -type stat -type counts RDX rdx.bpf.c
//go:generate go tool bpf2go -cc clang -strip llvm-strip -cflags "-O2 -g -Wall -Werror -mcpu=v3 -I/usr/include/x86_64-linux-gnu -I/usr/include/aarch64-linux-gnu" -target amd64,arm64 -type block -type block_key Heap heap.bpf.c
