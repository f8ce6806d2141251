package report

import "fmt"

// GPUs is what rdx exact --gpu=list prints.
type GPUs struct {
	Devices []GPU `json:"devices"`
}

// GPU is a device that rdx exact --gpu may use: what package gpu tells of it.
type GPU struct {
	Number   int    `json:"number"`
	Name     string `json:"name"`
	Platform string `json:"platform"`
	Vendor   string `json:"vendor"`
	Driver   string `json:"driver"`
	Version  string `json:"opencl"`
	Kind     string `json:"kind"`
	Units    uint32 `json:"compute_units"`
	Memory   uint64 `json:"memory_bytes"`
	MaxAlloc uint64 `json:"largest_buffer_bytes"`
	Local    uint64 `json:"local_memory_bytes"`
	Group    uint64 `json:"largest_work_group"`
	Segment  int    `json:"segment_touches"` // the default
	Blocks   uint64 `json:"most_blocks"`     // distinct ones that an analysis has room for, about
	Unfit    string `json:"unfit,omitempty"` // why it can't be used
}

func (d *GPUs) Table() [][]string {
	rows := [][]string{{"number", "name", "platform", "driver", "opencl", "kind", "compute_units", "memory_bytes", "largest_buffer_bytes", "segment_touches", "most_blocks", "unfit"}}
	for _, x := range d.Devices {
		rows = append(rows, []string{fmt.Sprint(x.Number), x.Name, x.Platform, x.Driver, x.Version, x.Kind, fmt.Sprint(x.Units), fmt.Sprint(x.Memory),
			fmt.Sprint(x.MaxAlloc), fmt.Sprint(x.Segment), fmt.Sprint(x.Blocks), x.Unfit})
	}
	return rows
}

func (d *GPUs) Text() string {
	s := ""
	for _, x := range d.Devices {
		s += fmt.Sprintf("%d  %s (%s)\n   %s, driver %s; %s, %d compute units\n   %s of memory: room for %s distinct blocks beside segments of %s touches\n",
			x.Number, x.Name, x.Kind, x.Platform, x.Driver, x.Version, x.Units, Bytes(float64(x.Memory)), Amount(float64(x.Blocks)), Amount(float64(x.Segment)))
		if x.Unfit != "" {
			s += "   cannot be used: " + x.Unfit + "\n"
		}
	}
	return s
}
