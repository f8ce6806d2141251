package main

// mutants are mends of faults from the field, see docs/reference/field.md.
var mutants = []mutant{
	// What others may have put where rdx looks.
	{"a pipe is opened", "sampler/safeopen/safeopen.go",
		"if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG {", "if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFDIR {", "TestPlanted", ""},
	{"a link of /proc that leads to a pipe is followed", "sampler/safeopen/safeopen.go",
		"if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFREG {", "if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFDIR {", "TestLink", ""},
	{"another user's file is believed", "sampler/safeopen/safeopen.go",
		"if owners != nil && !slices.Contains(owners, st.Uid) {", "if owners != nil && !slices.Contains(owners, st.Uid) && st.Uid == 1 {", "TestOwners", ""},
	{"a link leads out of the target's root", "sampler/safeopen/safeopen.go",
		"Resolve: r.resolve | unix.RESOLVE_NO_MAGICLINKS,", "Resolve: r.resolve &^ unix.RESOLVE_IN_ROOT,", "TestPlanted", ""},
	{"/proc's own links are followed", "sampler/safeopen/safeopen.go",
		"Resolve: r.resolve | unix.RESOLVE_NO_MAGICLINKS,", "Resolve: r.resolve,", "TestKernelsFiles", ""},
	{"the kernel's endless files are read", "sampler/safeopen/safeopen.go",
		"if slices.Contains(pseudo, int64(sys.Type)) {", "if slices.Contains(pseudo[:0], int64(sys.Type)) {", "TestKernelsFiles", ""},
	{"Go's poller asks a file system that may not answer", "sampler/safeopen/safeopen.go",
		"unix.SetNonblock(fd, false)", "unix.SetNonblock(fd, true)", "TestStalledFileSystem", ""},
	{"a file system is waited for that does not answer", "sampler/safeopen/patience.go",
		"t := time.NewTimer(p.each)", "t := time.NewTimer(1000 * p.each)", "TestStalledFileSystem", ""},
	{"the perf map of another user is believed", "collector/library/process.go",
		`file, err := root.Open("/tmp/perf-"+inner+".map", root.Owners())`, `file, err := root.Open("/tmp/perf-"+inner+".map", nil)`, "TestPlantedPerfMap/file of another", "cmd/rdx"},
	{"a pipe in place of a perf map is opened", "collector/library/process.go",
		`file, err := root.Open("/tmp/perf-"+inner+".map", root.Owners())`, `file, err := os.Open("/tmp/perf-" + inner + ".map")`, "TestPlantedPerfMap/fifo", "cmd/rdx"},
	{"the guard ends nothing", "sampler/ptrace/guard.go",
		"if stuck += passed; stuck >= guardLimit &&", "if stuck += passed; stuck >= 1000*guardLimit &&", "TestGuard", ""},

	// Files that lie.
	{"names that overlap are copied whole", "pprofout/gopcln.go",
		"b = b[:min(len(b), mostPerfMapName)]", "b = b[:min(len(b), len(b))]", "TestPCLNNamesOverlap", ""},
	{"a dictionary of any size is made room for, in a later block", "pprofout/minidebug.go",
		"b = b[min(header+(size+3)&^3+check, len(b)):]", "b = b[min(header+size*0+check+len(b), len(b)):]", "TestMiniDebugBounded", ""},
	{"what is packed becomes as large as it likes", "pprofout/minidebug.go",
		"if int64(len(data)) > most {", "if int64(len(data)) > 1<<40 {", "TestMiniDebugBounded", ""},

	// Names.
	{"a program's map is looked for only while it lives", "collector/library/process.go",
		"	p.l.Do(func() {\n		p.look()\n", "	p.l.Do(func() {\n", "TestJITLateMap", "cmd/rdx"},
	{"of two processes with code at one address one names both's", "collector/library/process.go",
		"l: l, pid: pid, via: via, inner: strconv.Itoa(pid)", "l: l, pid: os.Getppid(), via: via, inner: strconv.Itoa(pid)", "TestJITOfEach", "cmd/rdx"},
	{"the vdso's data can't be read", "sampler/ahead/targetmemory.go",
		"if err != nil && m.vvars.read(m.pid, addr, buf[:]) == nil {", "if err != nil && addr == 0 && m.vvars.read(m.pid, addr, buf[:]) == nil {", "TestVDSOTime", "cmd/rdx"},
	{"live profiles carry no build IDs", "collector/target/mappings.go",
		`if m.Held != nil && m.BuildID == "" {`, `if m.Held == nil && m.BuildID == "" {`, "TestBuildIDs", "cmd/rdx"},
	{"a datum has no name before its file is open", "collector/target/data.go",
		"		if !m.Held.Ready() {\n			return false\n", "		if !m.Held.Ready() {\n			continue\n", "TestDatumBeforeOpen", ""},
	{"debug files are looked for on the host alone", "pprofout/debugfile.go",
		"	for _, in := range debugRoots {\n		if len(id) > 2 {", "	for _, in := range debugRoots[min(1, len(debugRoots)):] {\n		if len(id) > 2 {", "TestDebugFileBelowRoot", ""},

	// What a first-time user types.
	{"a process's children are not found", "cmd/rdx/targets.go",
		"children[p.parent] = append(children[p.parent], pid)", "children[-p.parent] = append(children[-p.parent], pid)", "TestFindTargets", ""},
	{"pidof's answer is one process", "cmd/rdx/targets.go",
		"for _, name := range strings.Fields(arg) {", "for _, name := range strings.Fields(arg)[:1] {", "TestFindTargets", ""},
	{"a stopped target is not told of", "cmd/rdx/nosample.go",
		`case state == "T":`, `case state == "t":`, "TestWhyNoSample", ""},
	{"a target that uses no CPU time is told of in per cents", "collector/owncost.go",
		"case spent > sane*cpu:", "case spent > 1e30*cpu:", "TestOwnCost", ""},

	{"a trace in a pipe loses what its format was told by", "trace/drmemtrace.go",
		"if !info.Mode().IsRegular() {", "if info.IsDir() {", "TestTraceFromPipe", "cmd/rdx"},
	{"Ctrl-C while a program is launched is swallowed", "collector/session.go",
		"		if err = s.cfg.interrupted(); err == nil {\n			err = x.launched.Go()", "		if err = s.cfg.interrupted(); err == nil || true {\n			err = x.launched.Go()", "TestInterruptedBeforeStart", "cmd/rdx"},
	{"Ctrl-C before the first sample is swallowed", "collector/attaching.go",
		"if c.Context != nil && c.Context.Err() != nil {", "if c.Context != nil && c.Context.Err() != nil && c.PID < 0 {", "TestInterruptedStart", "cmd/rdx"},
	{"a pipe that may be executed is opened", "trace/engine_linux.go",
		"if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {", "if fi, err := os.Stat(path); err == nil && fi.IsDir() {", "TestPipeAsProgram", ""},

	// Rights, and counters.
	{"a process is traced before it is known what can be read of it", "sampler/ahead/ahead.go",
		"	l.Prepare(pid)\n	select {\n	case <-l.memory.userfault.scan.known:\n	case <-time.After(most):\n	}\n", "	l.memory.userfault.of(pid)\n	_ = most\n	_ = time.After\n", "TestAwait", ""},
	{"what counts time is taken for a counter of accesses", "sampler/counter.go",
		"if min(per, slow) < low || max(per, slow) > high {", "if per < low || per > high {", "TestPlausible", ""},
}
