package sharing

import (
	"cmp"
	"maps"
	"slices"
)

// mostWriters are told of for each line, and each class of lines, where hundreds of threads come and go: the others
// count with these, in proportion.
const mostWriters = 16

// threadWrite is a thread's.
type threadWrite struct {
	tid int
	Write
}

// writesOf are a thread's writes to the line, or the foremost of everybody's.
func (l *sharedLine) writesOf(writer int) (out []threadWrite) {
	if writer != everybody {
		for _, w := range l.writes[writer] {
			out = append(out, threadWrite{writer, w})
		}
		return out
	}
	if l.most == nil {
		for tid, writes := range l.writes {
			for _, w := range writes {
				l.most = append(l.most, threadWrite{tid, w})
			}
		}
		slices.SortFunc(l.most, func(a, b threadWrite) int {
			return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.tid, b.tid), cmp.Compare(a.PC, b.PC), cmp.Compare(a.Word, b.Word), cmp.Compare(a.Bytes, b.Bytes))
		})
		l.most = l.most[:min(len(l.most), mostWriters)]
	}
	return l.most
}

// foremost are those who write lines of the class most, once it is complete.
func (c *class) foremost() []classWrite {
	if c.most == nil {
		c.most = slices.Collect(maps.Keys(c.writes))
		slices.SortFunc(c.most, func(a, b classWrite) int {
			return cmp.Or(cmp.Compare(c.writes[b], c.writes[a]), cmp.Compare(a.tid, b.tid), cmp.Compare(a.pc, b.pc), cmp.Compare(a.word, b.word), cmp.Compare(a.bytes, b.bytes))
		})
		c.most = c.most[:min(len(c.most), mostWriters)]
	}
	return c.most
}
