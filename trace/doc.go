// Package trace sees every data access of a program: it runs the program
// under the project's own valgrind tool, or under QEMU with a plugin, and reads
// and writes recordings.
//
// Run hands the accesses on as they happen; Record writes them to an .rdt
// file; OpenFile reads one. What counts as an access is defined in
// docs/reference/access-model.md.
//
// Lifetime: the engine lives as long as the program it runs. Readers hold one
// decoded block per thread; recordings of any length are read in bounded
// memory.
//
// Known bias: under valgrind the program runs one thread at a time, changing
// over every 100,000 superblocks, so the interleaving of threads is not that
// of a real machine. The program sees the processor that the engine shows it
// (no AVX-512), and so may take other code paths than outside. String
// instructions appear as one access per element.
//
// # For others to import
//
// Stable: Reader, File, Writer, the readers of others' traces, Record and Run. Engines and their
// options may change. Units: addresses and sizes in bytes. Accesses are in the program's order,
// a read-modify-write is two. Shapes: a batch is valid until the next call. Errors: a bad line
// or a damaged block becomes a BadLine or a Damage, which the caller counts, and reading goes
// on; what ends it is in Err, io.EOF where that is how it ends. Sources: others' formats are those of Valgrind's lackey, of
// DynamoRIO's drmemtrace and of plain lines of text; docs/reference/access-model.md says what counts as an access.
//
// Recording needs Linux and valgrind or QEMU. The readers build on any OS.
package trace
