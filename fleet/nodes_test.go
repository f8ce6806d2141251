package fleet

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdx-profiler/rdx/fleet/backend"
	"github.com/rdx-profiler/rdx/model"
)

// Three nodes of which one is killed while windows are pushed. What was taken is counted exactly
// once. With two copies of each a push needs both, so that windows of some series are refused until the
// node is back: these stay in an agent's spool. With three two are enough, and all are taken.
func TestNodeIsKilled(t *testing.T) { // needs Pyroscope
	if testing.Short() {
		t.Skip("takes a while, and -short was asked for")
	}
	for _, replicas := range []int{2, 3} {
		killNode(t, replicas)
	}
}

func killNode(t *testing.T, replicas int) {
	s := startServers(t, 3, backend.Options{Replicas: replicas})
	clients := []*Client{client(t, s[0].URL), client(t, s[1].URL)}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	start := time.Now().Add(-30 * time.Minute).Truncate(time.Second)
	type window struct {
		at   time.Time
		pack []byte
	}
	var taken [][]byte
	var refused []window
	const windows, tries = 40, 2
	for i := range windows {
		m := backend.Made{Name: "checkout", Share: .2, Lines: 1 << 12, Seed: uint64(i), N: 60}
		w := Window{Profile: m.Profile(), Weight: 1 + float64(i%3), Drawn: true, Time: start.Add(time.Duration(i) * time.Second)}
		if i == windows/3 {
			s[2].Kill()
		}
		b, err := w.Pack()
		if err != nil {
			t.Fatal(err)
		}
		set := series(t, w, Label{"service_name", "checkout"}, Label{"host", string(rune('a' + i%5))})
		for try := range tries { // again, as an agent does
			if err = clients[(i+try)%2].Push(ctx, set); err == nil {
				taken = append(taken, b)
				break
			}
		}
		if err != nil {
			refused = append(refused, window{w.Time, b})
		}
	}
	if replicas == 3 && len(refused) > 0 || len(taken) < windows/3 {
		t.Errorf("%d copies: %d windows taken, %d refused", replicas, len(taken), len(refused))
	}
	q := Query{Labels: []string{"service_name=checkout"}, From: start.Add(-time.Minute), To: time.Now()}
	there := 0
	for _, w := range refused { // one of its nodes may have taken it
		alone := q
		alone.From, alone.To = w.at, w.at.Add(time.Second-time.Millisecond)
		if profileInTime(ctx, t, clients[0], alone) != nil {
			taken = append(taken, w.pack)
			there++
		}
	}
	t.Logf("%d copies: %d of %d windows refused, of which %d are there: one node has them", replicas, len(refused), windows, there)
	want, err := Unpack(taken, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range clients {
		same(t, profileInTime(ctx, t, c, q), want)
	}
}

// profileInTime asks until an answer comes, nil for nothing: queries fail as long as the node
// that is gone is taken to be there.
func profileInTime(ctx context.Context, t *testing.T, c *Client, q Query) *model.Profile {
	t.Helper()
	for {
		p, err := c.Profile(ctx, q)
		if _, empty := errors.AsType[*ErrEmpty](err); err == nil || empty {
			return p
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(500 * time.Millisecond):
		}
	}
}
