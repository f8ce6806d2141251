package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

// requests are what a client saw in some time, one request after the other.
type requests struct {
	latencies []time.Duration
	in        time.Duration
}

// redis has one client make small requests, one after the other, by turns with rdx at its default budget and without.
func (b *bench) redis() error {
	var err error
	if b.dir, err = os.MkdirTemp("", "rdx-hold"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	socket := filepath.Join(b.dir, "redis.sock")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", b.dir)
	if err := server.Start(); err != nil {
		return err
	}
	defer server.Wait()
	defer server.Process.Kill()
	var c net.Conn
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if c, err = net.Dial("unix", socket); err == nil {
			break
		} else if time.Since(began) > 10*time.Second {
			return fmt.Errorf("reach redis: %w", err)
		}
	}
	defer c.Close()
	fmt.Println("| window | requests a second | p50 | p99 | p99.9 | longest |")
	fmt.Println("|---|---|---|---|---|---|")
	var all [2]requests
	for i := range 2*b.rounds + 1 {
		with := i % 2
		var rdx *exec.Cmd
		if with == 1 {
			rdx = exec.Command(b.rdx, "attach", fmt.Sprint(server.Process.Pid), "-q", "-d", (b.lasts + time.Second).String(), "-o", filepath.Join(b.dir, "p.pb.gz"))
			if err := rdx.Start(); err != nil {
				return err
			}
			time.Sleep(700 * time.Millisecond) // it is attached
		}
		r, err := request(c, b.lasts)
		if err != nil {
			return err
		}
		if rdx != nil {
			if err := rdx.Wait(); err != nil {
				return fmt.Errorf("rdx: %w", err)
			}
		}
		all[with].latencies, all[with].in = append(all[with].latencies, r.latencies...), all[with].in+r.in
	}
	for i, name := range []string{"bare", "with rdx"} {
		fmt.Println(all[i].row(name))
	}
	return nil
}

func (r *requests) row(name string) string {
	slices.Sort(r.latencies)
	at := func(q float64) float64 { return float64(r.latencies[int(q*float64(len(r.latencies)-1))]) / 1e3 }
	return fmt.Sprintf("| %s | %.0f | %.1f | %.1f | %.1f | %.0f µs |", name, float64(len(r.latencies))/r.in.Seconds(), at(.5), at(.99), at(.999), at(1))
}

// request makes requests until the time is over: of ten one sets a key, the others get one, of 10,000.
func request(c net.Conn, lasts time.Duration) (r requests, err error) {
	in := bufio.NewReader(c)
	var out []byte
	for began := time.Now(); r.in < lasts; {
		n := len(r.latencies)
		key := fmt.Sprintf("k%04d", n*7919%10000)
		if n%10 == 0 {
			out = fmt.Appendf(out[:0], "*3\r\n$3\r\nSET\r\n$5\r\n%s\r\n$5\r\nvalue\r\n", key)
		} else {
			out = fmt.Appendf(out[:0], "*2\r\n$3\r\nGET\r\n$5\r\n%s\r\n", key)
		}
		sent := time.Now()
		if _, err := c.Write(out); err != nil {
			return r, err
		}
		if err := reply(in); err != nil {
			return r, err
		}
		now := time.Now()
		r.latencies, r.in = append(r.latencies, now.Sub(sent)), now.Sub(began)
	}
	return r, nil
}

// reply reads one, see https://redis.io/docs/latest/develop/reference/protocol-spec/.
func reply(in *bufio.Reader) error {
	line, err := in.ReadString('\n')
	if err != nil || line[0] != '$' {
		if err == nil && line[0] == '-' {
			err = fmt.Errorf("redis: %s", line)
		}
		return err
	}
	var n int
	if _, err := fmt.Sscanf(line, "$%d", &n); err != nil || n < 0 {
		return err
	}
	_, err = in.Discard(n + 2)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
