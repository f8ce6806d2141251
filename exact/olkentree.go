package exact

// runTree counts the live positions of closed runs: how many lie after a run, and
// in which run the k-th from the end is. Each of its nodes is a cache line of sixteen
// numbers, so that few of them are read on the way up.
type runTree struct {
	nodes []treeNode
	// base is the first node of each level, the lowest first, whose children are runs.
	base   [treeLevels]uint64
	levels int
}

// treeNode says of each of its children how many live positions are in the children
// after it: that of child k is the half k%2 of word k/2, the low one first.
type treeNode [treeFan / 2]uint64

const (
	treeShift  = 4
	treeFan    = 1 << treeShift // olkenbelow_amd64.s knows it
	treeLevels = (32 - runShift + treeShift - 1) / treeShift
)

// childrenBefore[k] is 1 in the numbers of a node's children before k.
var childrenBefore = func() (b [treeFan]treeNode) {
	for k := 1; k < treeFan; k++ {
		b[k] = b[k-1]
		b[k][(k-1)/2] += 1 << (32 * ((k - 1) % 2))
	}
	return b
}()

// of is the number of child k.
func (n *treeNode) of(k uint32) uint32 { return uint32(n[k/2%(treeFan/2)] >> (32 * (k % 2))) }

func (t *runTree) bytes() uint64 { return 8 * treeFan / 2 * uint64(cap(t.nodes)) }

// reset empties the tree and makes it one of so many runs, at least one.
func (t *runTree) reset(runs uint64) {
	t.levels = 0
	var n uint64
	for below := runs; below > 1 || t.levels == 0; t.levels++ {
		below = (below + treeFan - 1) / treeFan
		t.base[t.levels] = n
		n += below
	}
	t.nodes = cleared(t.nodes, int(n))
}

// add enters n live positions of a run.
func (t *runTree) add(run, n uint32) {
	for _, base := range t.base[:t.levels] {
		node, before := &t.nodes[base+uint64(run>>treeShift)], &childrenBefore[run%treeFan]
		for i := range node {
			node[i] += before[i] * uint64(n)
		}
		run >>= treeShift
	}
}

// remove takes one live position out of a run and returns the number of those in the runs after it.
func (t *runTree) remove(run uint32) uint32 {
	if haveAVX2 {
		return removeRun(t, run)
	}
	return t.plainRemove(run)
}

// plainRemove is removeRun where that cannot run.
func (t *runTree) plainRemove(run uint32) uint32 {
	var after uint32
	for _, base := range t.base[:t.levels] {
		node, before := &t.nodes[base+uint64(run>>treeShift)], &childrenBefore[run%treeFan]
		after += node.of(run % treeFan)
		// No number gets below 0, and so none takes from the next.
		node[0] -= before[0]
		node[1] -= before[1]
		node[2] -= before[2]
		node[3] -= before[3]
		node[4] -= before[4]
		node[5] -= before[5]
		node[6] -= before[6]
		node[7] -= before[7]
		run >>= treeShift
	}
	return after
}

// after is the number of live positions in the runs after a run.
func (t *runTree) after(run uint32) (n uint32) {
	for _, base := range t.base[:t.levels] {
		n += t.nodes[base+uint64(run>>treeShift)].of(run % treeFan)
		run >>= treeShift
	}
	return n
}

// find returns the run of the live position that has k live ones above it, and how many of them are in that run.
// No branch depends on where that is, as none of them could be predicted.
func (t *runTree) find(k uint32) (run, left uint32) {
	for l := t.levels - 1; l >= 0; l-- {
		node := &t.nodes[t.base[l]+uint64(run)]
		var child uint32
		for half := uint32(treeFan / 2); half > 0; half /= 2 {
			child += half & -less(k, node.of(child+half-1))
		}
		k -= node.of(child)
		run = run<<treeShift + child
	}
	return run, k
}

// less is 1 if a < b, else 0.
func less(a, b uint32) uint32 { return uint32((uint64(a) - uint64(b)) >> 63) }
