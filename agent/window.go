package agent

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A Request is what a session is asked for, on its standard input, which then stays open:
// when it ends, the agent is gone, and the session has to be, too.
type Request struct {
	Key
	Duration time.Duration // from now on, in which all of it but the symbols must be done
	Overhead float64       // share of the process's CPU time
	// Weight is 1 over the probability with which the process was drawn; Period is what the
	// session stands for.
	Weight float64
	Period time.Duration
	Host   string
}

// A Result is the head of a session's answer, on its standard output: a line of JSON, with both
// profiles behind it.
type Result struct {
	Error string `json:",omitempty"` // why there is no profile

	Time         time.Time     // of the window
	Sampled      time.Duration // from attaching on
	CPU          time.Duration // of the process, meanwhile
	Held         time.Duration // what sampling cost it, by rdx's own account
	Observations int64
	Lost         map[string]int64
	Config       string // fleet.Config
	Clock        string
	People, Raw  int // bytes
}

const (
	mostResult = 1 << 20
	mostBlob   = 32 << 20
)

// WriteResult writes an answer.
func WriteResult(w io.Writer, r Result, people, raw []byte) error {
	r.People, r.Raw = len(people), len(raw)
	head, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	for _, b := range [][]byte{head, {'\n'}, people, raw} {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	return nil
}

// readResult reads one. A session that went wrong may write anything.
func readResult(r io.Reader) (res Result, people, raw []byte, err error) {
	in := bufio.NewReaderSize(io.LimitReader(r, mostResult+2*mostBlob), mostResult)
	head, err := in.ReadSlice('\n')
	if err != nil {
		return res, nil, nil, fmt.Errorf("read result: %w", err)
	}
	if err := json.Unmarshal(head, &res); err != nil {
		return res, nil, nil, fmt.Errorf("read result: %w", err)
	}
	if res.People < 0 || res.Raw < 0 || res.People > mostBlob || res.Raw > mostBlob {
		return res, nil, nil, fmt.Errorf("read result: profiles of %d and %d bytes", res.People, res.Raw)
	}
	people, raw = make([]byte, res.People), make([]byte, res.Raw)
	if _, err = io.ReadFull(in, people); err == nil {
		_, err = io.ReadFull(in, raw)
	}
	if err != nil {
		return res, nil, nil, fmt.Errorf("read result: %w", err)
	}
	return res, people, raw, nil
}
