package pprofout

import (
	"io"
	"os"
	"time"

	"github.com/rdx-profiler/rdx/sampler/safeopen"
)

// hostFiles opens files below our own root, or below another directory, until it is closed. The names
// are the target's, and a file system may never answer.
type hostFiles struct {
	below    string
	patience *safeopen.Patience
	open     []*safeopen.File
}

func (h *hostFiles) Open(name string) (io.ReaderAt, error) {
	if h.patience == nil {
		h.patience = safeopen.NewPatience(3 * time.Second)
	}
	f, err := h.patience.Open(0, func() (*os.File, error) {
		root, err := safeopen.OfProcess()
		if err != nil {
			return nil, err
		}
		defer root.Close()
		return root.Open(h.below+name, nil)
	})
	if err != nil {
		return nil, err
	}
	h.open = append(h.open, f)
	return f, nil
}

func (h *hostFiles) Close() {
	for _, f := range h.open {
		f.Close()
	}
	h.open = nil
}
