package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/rdx-profiler/rdx/fleet"
)

// sender is a fleet.Client, or a test's.
type sender interface {
	PushRequest(ctx context.Context, request []byte) error
}

// pusher sends what is in the spool, oldest first, one request at a time.
type pusher struct {
	spool   *Spool
	metrics *metrics
	log     *zap.Logger
	wake    chan struct{} // something has come, or changed

	mu     sync.Mutex
	client sender

	wait  func(ctx context.Context, d time.Duration, wake <-chan struct{}) // a test's, too
	tries int                                                              // of the request at hand that the server throttled
	pause time.Duration
}

const (
	firstPause, longestPause = time.Second, 5 * time.Minute
	throttledTries           = 5
)

func newPusher(s *Spool, m *metrics, log *zap.Logger, c sender) *pusher {
	return &pusher{spool: s, metrics: m, log: log, client: c, wake: make(chan struct{}, 1), wait: waitFor}
}

func waitFor(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-wake:
	}
}

// use takes another client from the next request on.
func (p *pusher) use(c sender) {
	p.mu.Lock()
	p.client = c
	p.mu.Unlock()
	p.nudge()
}

func (p *pusher) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run sends until the context ends.
func (p *pusher) run(ctx context.Context) {
	for ctx.Err() == nil {
		name, request := p.spool.Oldest()
		if name == "" {
			p.wait(ctx, time.Minute, p.wake)
			continue
		}
		if pause := p.send(ctx, name, request); pause > 0 {
			p.wait(ctx, pause, nil) // what comes meanwhile has time
		}
	}
}

// flush sends what there is, as long as the server takes it.
func (p *pusher) flush(ctx context.Context) {
	for ctx.Err() == nil {
		name, request := p.spool.Oldest()
		if name == "" || p.send(ctx, name, request) > 0 {
			return
		}
	}
}

// send tries one request and says how long to wait before the next try.
func (p *pusher) send(ctx context.Context, name string, request []byte) time.Duration {
	p.mu.Lock()
	client := p.client
	p.mu.Unlock()
	start := time.Now()
	err := client.PushRequest(ctx, request)
	p.metrics.pushSeconds.Observe(time.Since(start).Seconds())
	var status *fleet.StatusError
	refused := errors.As(err, &status)
	switch {
	case err == nil:
		p.metrics.pushes.WithLabelValues("taken").Inc()
		p.spool.Done(name)
		p.tries, p.pause = 0, 0
		return 0
	case ctx.Err() != nil: // the agent ends: it stays for the next one
		return firstPause
	case refused && status.Status == http.StatusTooManyRequests:
		p.metrics.pushes.WithLabelValues("throttled").Inc()
		p.log.Warn("the server throttles", zap.Error(err))
		if p.tries++; p.tries >= throttledTries {
			p.drop(name, dropThrottle)
			return p.longer()
		}
		return p.longer()
	case refused && final(status):
		p.metrics.pushes.WithLabelValues("refused").Inc()
		p.log.Warn("the server refuses a window, which is dropped", zap.Error(err))
		p.drop(name, dropRefused)
		return 0
	}
	p.metrics.pushes.WithLabelValues("failed").Inc()
	p.log.Warn("a window could not be sent, it stays in the spool", zap.Error(err))
	return p.longer()
}

func (p *pusher) drop(name, reason string) {
	p.spool.Done(name)
	p.metrics.dropped.WithLabelValues(reason).Inc()
	p.tries = 0
}

// final says that the same request would be refused again. What a proxy says for lack of the
// right token or server is not: somebody will mend that.
func final(e *fleet.StatusError) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return !e.Foreign
	}
	return false
}

// longer doubles the pause, and draws it anew from its upper half, so that a thousand agents
// do not come back at once.
func (p *pusher) longer() time.Duration {
	p.pause = min(max(2*p.pause, firstPause), longestPause)
	return p.pause/2 + rand.N(p.pause/2+1)
}
