package collector

// wire tells the owners of each other. It is called again when the kernel's programs are loaded.
func (s *Session) wire() *Session {
	s.timing.kernel = s.kernel
	s.ticks.account, s.ticks.rand = &s.account, s.rand
	s.kept.account = &s.account
	w := &s.watches
	w.account, w.timing, w.kept = &s.account, &s.timing, &s.kept
	w.cfg, w.kernel, w.locate, w.rand = &s.cfg, s.kernel, s.locate, s.rand
	w.drain, w.threadAt = s.drain, s.targets.threadAt
	h := &s.holds
	h.account, h.timing, h.kept, h.src, h.watches = &s.account, &s.timing, &s.kept, &s.src, w
	h.cfg, h.kernel, h.locate, h.rand, h.drain = &s.cfg, s.kernel, s.locate, s.rand, s.drain
	p := &s.prober
	p.timing, p.ticks = &s.timing, &s.ticks
	g := &s.targets
	g.kept, g.cfg, g.locate = &s.kept, &s.cfg, s.locate
	return s
}
