package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/rdx-profiler/rdx/fleet"
)

var levels = map[string]zapcore.Level{"debug": zap.DebugLevel, "info": zap.InfoLevel, "warn": zap.WarnLevel, "error": zap.ErrorLevel}

// Logger writes JSON to standard error, of each message a few a minute.
func Logger(level string) *zap.Logger {
	e := zap.NewProductionEncoderConfig()
	e.EncodeTime = zapcore.ISO8601TimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(e), zapcore.Lock(os.Stderr), levels[level])
	return zap.New(zapcore.NewSamplerWithOptions(core, time.Minute, 5, 100))
}

// Options are what the agent takes from its command line.
type Options struct {
	Config  Config
	Reload  func() (Config, error) // reads it again
	Version string
	Log     *zap.Logger
	Session []string // command that runs one, default this program
	Proc    string   // default /proc
}

// Agent samples a machine.
type Agent struct {
	config  Config
	options Options
	proc    Proc
	log     *zap.Logger
	metrics *metrics
	health  *health
	notify  notifier
	spool   *Spool
	pusher  *pusher
	namer   *Namer
	pods    *podLister
	budget  Budget
	rand    *rand.Rand
	child   child

	known    map[Key]time.Duration // CPU time at the last draw
	busy     time.Duration         // of the machine, then
	agentCPU time.Duration         // of the agent, when the metrics were last told
	since    time.Duration         // of the agent, since the last draw
	uptime   uint64                // ticks, then
	peak     int64                 // memory of a session, bytes
	wg       sync.WaitGroup
	ended    chan outcome
	running  map[Key]map[string]string // labels
}

// Ending is the time in which a signal ends all.
const Ending = 5 * time.Second

const (
	agentMemory = 40 << 20
	ending      = Ending
	grace       = 20 * time.Second
)

// New checks the configuration and opens what the agent needs, and nothing else.
func New(o Options) (*Agent, error) {
	c := o.Config
	if err := c.Check(); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	client, err := fleet.NewClient(c.Server, 30*time.Second)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if o.Proc == "" {
		o.Proc = "/proc"
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if len(o.Session) == 0 {
		o.Session = []string{"/proc/self/exe", SessionArg}
	}
	a := &Agent{config: c, options: o, proc: Proc{o.Proc}, log: o.Log, metrics: newMetrics(o.Version), notify: newNotifier(),
		health: &health{beat: time.Now(), patience: 2*c.Discover + 30*time.Second}, known: map[Key]time.Duration{},
		rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), ended: make(chan outcome, 64), running: map[Key]map[string]string{}}
	if a.spool, err = openSpool(c.Spool, func(reason string, n int) {
		a.metrics.dropped.WithLabelValues(reason).Add(float64(n))
		a.log.Warn("windows are dropped", zap.String("reason", reason), zap.Int("windows", n))
	}); err != nil {
		return nil, err
	}
	a.metrics.watchSpool(a.spool)
	a.pusher = newPusher(a.spool, a.metrics, a.log, client)
	if err := a.configure(c); err != nil {
		return nil, err
	}
	return a, nil
}

// configure takes what can change while the agent runs.
func (a *Agent) configure(c Config) error {
	a.config = c
	sets := map[string]time.Time{}
	if a.namer != nil {
		sets = a.namer.sets
	}
	a.namer = newNamer(&a.config, a.proc)
	a.namer.sets = sets
	a.namer.name = dockerNames(c.DockerDir)
	var err error
	if a.pods, err = newPodLister(c.Kubernetes); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	a.namer.pod = a.pods.pod
	a.budget.Share, a.budget.CPUs, a.budget.Most = c.Overhead/100, runtime.NumCPU(), c.Sessions
	a.child = child{args: a.options.Session, memory: max((int64(c.Memory)-agentMemory)/int64(c.Sessions), 50<<20), grace: grace,
		spend: func(d time.Duration) { a.metrics.spent.WithLabelValues("sessions").Add(d.Seconds()) }}
	return nil
}

// Ended is the message of an agent's last line in the log. Its field counters has what no reader of its metrics
// has seen any more, by their names.
const Ended = "the agent has ended"

// Run samples until the context ends. Signals of reload read the configuration again.
func (a *Agent) Run(ctx context.Context, reload <-chan os.Signal) error {
	closeListener, err := serve(a.config.Listen, a.metrics, a.health)
	if err != nil {
		return err
	}
	defer closeListener()
	pushing, stopPushing := context.WithCancel(context.Background())
	pushed := make(chan struct{})
	go func() {
		a.pusher.run(pushing)
		close(pushed)
	}()
	sampling, stopSampling := context.WithCancel(context.Background())
	defer stopSampling()
	a.look(time.Now())
	a.log.Info("the agent runs", zap.String("server", a.config.Server.Server), zap.Float64("overhead", a.config.Overhead), zap.Duration("period", a.config.Period))
	a.notify.ready()
	a.loop(ctx, sampling, reload)

	a.notify.stopping()
	a.log.Info("the agent ends: sessions give what they have")
	deadline := time.Now().Add(ending - 500*time.Millisecond)
	stopPushing()
	<-pushed
	a.child.grace = ending / 2
	stopSampling()
	a.collect(deadline.Add(-time.Second))
	last, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	a.pusher.flush(last)
	n, _ := a.spool.Held()
	a.log.Info(Ended, zap.Int("windows in the spool", n), zap.Any("counters", a.metrics.counters()))
	return nil
}

// loop draws at the beginning of each period.
func (a *Agent) loop(ctx, sampling context.Context, reload <-chan os.Signal) {
	tick := time.NewTicker(a.config.Discover)
	defer tick.Stop()
	var dog <-chan time.Time
	if d := watchdog(); d > 0 {
		t := time.NewTicker(d)
		defer t.Stop()
		dog = t.C
	}
	// The first look was at what processes have used so far; a short one after it tells who is busy.
	next := time.Now().Add(min(a.config.Discover, a.config.Period))
	for {
		select {
		case <-ctx.Done():
			return
		case <-dog:
			a.notify.alive()
		case o := <-a.ended:
			a.settle(o)
		case <-reload:
			a.reload()
			tick.Reset(a.config.Discover)
		case <-tick.C:
			now := time.Now() // monotonic: a clock that is set changes nothing
			a.health.live(now)
			a.spool.Expire()
			a.tellOwn()
			if !now.Before(next) {
				a.period(sampling, now)
				next = next.Add(a.config.Period)
				if next.Before(now) {
					next = now.Add(a.config.Period)
				}
			}
		}
	}
}

func (a *Agent) reload() {
	a.notify.reloading()
	defer a.notify.ready()
	c, err := a.options.Reload()
	if err == nil {
		err = c.Check()
	}
	var client *fleet.Client
	if err == nil {
		client, err = fleet.NewClient(c.Server, 30*time.Second)
	}
	if err == nil && (c.Listen != a.config.Listen || c.Spool.Dir != a.config.Spool.Dir) {
		err = errors.New("listen and the spool's dir take a restart")
	}
	if err == nil {
		err = a.configure(c)
	}
	if err != nil {
		a.metrics.reloads.WithLabelValues("refused").Inc()
		a.log.Error("the configuration is not taken, the one before stays", zap.Error(err))
		return
	}
	a.pusher.use(client)
	a.metrics.reloads.WithLabelValues("taken").Inc()
	a.log.Info("the configuration is read again")
}

// A candidate is a process that can be drawn.
type candidate struct {
	Process
	size    float64 // CPU time expected in a period, seconds
	details *Details
	labels  map[string]string
}

// look lists the processes, and says what each has used since the look before.
func (a *Agent) look(now time.Time) (all []candidate) {
	processes, err := a.proc.Processes()
	if err != nil {
		a.log.Error("processes can't be listed", zap.Error(err))
		return nil
	}
	busy, err := a.proc.Busy()
	uptime, err2 := a.proc.Uptime()
	if err = errors.Join(err, err2); err != nil {
		a.log.Error("the machine's CPU time is not known", zap.Error(err))
	}
	known := make(map[Key]time.Duration, len(processes))
	since := float64(uptime-a.uptime) / ticksPerSecond
	var drawable, fresh time.Duration
	for _, p := range processes {
		known[p.Key] = p.CPU
		if p.Kernel || p.Zombie {
			continue
		}
		before, seen := a.known[p.Key]
		used, over := p.CPU-before, since
		if !seen {
			// It has begun since: what it used, it used in its own time.
			over = float64(uptime-min(p.Start, uptime)) / ticksPerSecond
			if a.uptime == 0 {
				over = max(over, 1)
			} else {
				fresh += used
			}
		} else {
			drawable += used
		}
		if used > 0 {
			all = append(all, candidate{Process: p, size: used.Seconds() / max(over, .1) * a.config.Period.Seconds()})
		}
	}
	if a.uptime > 0 && err == nil {
		spent := busy - a.busy
		a.metrics.cpu.WithLabelValues("drawable").Add(max(drawable, 0).Seconds())
		a.metrics.cpu.WithLabelValues("begun since the draw").Add(max(fresh, 0).Seconds())
		a.metrics.cpu.WithLabelValues("ended since the draw, or the kernel's").Add(max(spent-drawable-fresh, 0).Seconds())
	}
	a.known, a.busy, a.uptime = known, busy, uptime
	return all
}

// period books the last one and draws for the next.
func (a *Agent) period(ctx context.Context, now time.Time) {
	all := a.look(now)
	a.tellOwn()
	a.budget.Agent(a.since)
	a.since = 0
	a.metrics.allowed.Add(a.budget.Allow(a.config.Period).Seconds())
	a.pods.refresh(ctx, a.log)
	worth, states := a.eligible(all)
	sizes := make([]float64, len(worth))
	for i, c := range worth {
		sizes[i] = c.size
	}
	m := a.budget.Sessions()
	p := probabilities(sizes, m)
	for _, i := range draw(p, a.rand) {
		a.start(ctx, worth[i], p[i])
	}
	for state, n := range states {
		a.metrics.processes.WithLabelValues(state).Set(float64(n))
	}
	a.notify.status(fmt.Sprintf("%d processes worth a session, %.2f sessions a period, %d run", len(worth), m, len(a.running)))
	a.log.Debug("drawn", zap.Int("candidates", len(worth)), zap.Float64("sessions", m), zap.Int("running", len(a.running)))
}

func (a *Agent) tellOwn() {
	now, err := ownCPU()
	if err != nil {
		return
	}
	a.since += now - a.agentCPU
	a.metrics.spent.WithLabelValues("agent").Add((now - a.agentCPU).Seconds())
	a.agentCPU = now
}

func ownCPU() (time.Duration, error) {
	var ru unix.Rusage
	err := unix.Getrusage(unix.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), err
}

// states a process can be in, all of which are shown, 0 or not.
var allStates = []string{whyIdle, whyTraced, whyAsked, whySelf, whyConfig, whyUnread, "worth a session", "still sampled"}

// eligible are those that may be drawn and are worth it.
func (a *Agent) eligible(all []candidate) (worth []candidate, states map[string]int) {
	states = map[string]int{}
	for _, s := range allStates {
		states[s] = 0
	}
	for _, c := range all {
		if c.size < a.config.Worth.Seconds() {
			states[whyIdle]++
			continue
		}
		if _, still := a.running[c.Key]; still {
			states["still sampled"]++ // its session ends late: it has been drawn for this time, too
			continue
		}
		d, err := a.proc.Details(c.PID, a.config.OptOut, serviceVariable, resourceVariable)
		if err != nil {
			continue // it has ended
		}
		cut := a.namer.Cut
		labels := a.namer.Labels(d)
		a.metrics.cutLabels.Add(float64(a.namer.Cut - cut))
		if why := a.config.refuses(d, labels); why != "" {
			states[why]++
			continue
		}
		states["worth a session"]++
		c.details, c.labels = d, labels
		worth = append(worth, c)
	}
	return worth, states
}

// start begins a session, somewhat later than the period, by lot.
func (a *Agent) start(ctx context.Context, c candidate, probability float64) {
	slack := max(3*time.Second, a.config.Period/15)
	wait := rand.N(slack / 3)
	request := Request{Key: c.Key, Duration: a.config.Period - slack, Overhead: a.config.TargetOverhead / 100, Weight: 1 / probability, Period: a.config.Period, Host: a.namer.host}
	a.running[c.Key] = c.labels
	a.metrics.running.Set(float64(len(a.running)))
	config, child, spool := a.config, a.child, a.spool
	a.wg.Go(func() {
		o := outcome{Request: request}
		select {
		case <-ctx.Done():
			o.err = context.Canceled
		case <-time.After(wait):
			// It may be another program by now.
			d, err := a.proc.Details(c.PID, config.OptOut)
			switch {
			case err != nil:
				o.err = errEnded
			case config.refuses(d, c.labels) != "":
				o.err = errRefuses
			default:
				done := spool.Mark(c.Key)
				o = child.run(ctx, request)
				if o.err == nil {
					a.keep(o, c.labels)
				}
				done()
			}
		}
		a.ended <- o
	})
}

var (
	errEnded   = errors.New("the process has ended before its session")
	errRefuses = errors.New("the process is not to be sampled any more")
)

// keep puts a window into the spool; where that fails it is tried at once, and only once.
func (a *Agent) keep(o outcome, labels map[string]string) {
	request := fleet.EncodePush([]fleet.Series{
		{Labels: seriesLabels(fleet.PeopleName, o.Config, labels), Profile: o.people},
		{Labels: seriesLabels(fleet.RawName, o.Config, labels), Profile: o.raw}})
	err := a.spool.Put(o.Time, request)
	if err == nil {
		a.pusher.nudge()
		return
	}
	a.log.Warn("a window can't be spooled, and is sent at once or lost", zap.Error(err))
	ctx, cancel := context.WithTimeout(context.Background(), ending/2)
	defer cancel()
	a.pusher.mu.Lock()
	client := a.pusher.client
	a.pusher.mu.Unlock()
	if err := client.PushRequest(ctx, request); err != nil {
		a.metrics.dropped.WithLabelValues(dropDisk).Inc()
		return
	}
	a.metrics.pushes.WithLabelValues("taken").Inc()
}

// settle books a session that has ended.
func (a *Agent) settle(o outcome) {
	labels := a.running[o.Key]
	delete(a.running, o.Key)
	a.metrics.running.Set(float64(len(a.running)))
	a.budget.Session(o.cpu + o.Held)
	a.metrics.spent.WithLabelValues("sessions").Add(max(o.cpu-o.told, 0).Seconds())
	a.metrics.spent.WithLabelValues("holds").Add(o.Held.Seconds())
	a.childMemory(o.memory)
	switch {
	case errors.Is(o.err, errEnded), errors.Is(o.err, context.Canceled):
		a.metrics.sessions.WithLabelValues("process ended before").Inc()
		return
	case errors.Is(o.err, errRefuses):
		a.metrics.sessions.WithLabelValues("process refused").Inc()
		return
	case o.killed != "":
		a.metrics.sessions.WithLabelValues("killed").Inc()
	case o.err != nil:
		if _, err := a.proc.Process(o.PID); err != nil {
			a.metrics.sessions.WithLabelValues("process ended").Inc()
			return
		}
		a.metrics.sessions.WithLabelValues("failed").Inc()
	default:
		a.metrics.sessions.WithLabelValues("done").Inc()
	}
	a.health.session(o.CPU, o.Observations, o.err)
	if o.err != nil {
		a.log.Warn("a session has failed", zap.Error(o.err), zap.String("service", labels[serviceLabel]))
		return
	}
	a.metrics.watched.Add(o.CPU.Seconds())
	a.metrics.observations.Add(float64(o.Observations))
	for reason, n := range o.Lost {
		a.metrics.lost.WithLabelValues(lossReason(reason)).Add(float64(n))
	}
	a.log.Debug("a session has ended", zap.Any("labels", maps.Clone(labels)), zap.Int64("observations", o.Observations), zap.Duration("own", o.cpu), zap.Duration("held", o.Held), zap.Int64("memory", o.memory))
}

func (a *Agent) childMemory(peak int64) {
	a.peak = max(a.peak, peak)
	a.metrics.childMemory.Set(float64(a.peak))
}

// lossReason bounds the values of the label: reasons may come with details behind a colon.
func lossReason(s string) string {
	s = tidy(s)
	for i, r := range s {
		if r == ':' || r == '(' {
			return s[:i]
		}
	}
	return s
}

// collect waits for the sessions that run.
func (a *Agent) collect(deadline time.Time) {
	t := time.NewTimer(time.Until(deadline))
	defer t.Stop()
	for len(a.running) > 0 {
		select {
		case o := <-a.ended:
			a.settle(o)
		case <-t.C:
			a.log.Warn("sessions did not end in time", zap.Int("sessions", len(a.running)))
			return
		}
	}
}
