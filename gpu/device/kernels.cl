// The kernels of package device, in OpenCL C 1.2 without extensions. See docs/explanation/gpu.md for what
// they compute; names of arrays are those of analysis.go.
//
// All work-groups are of WG work-items. Those with barriers take a tile of TILE elements, EACH
// that follow each other by one work-item; others one element a work-item.

#define WG 256u
#define EACH 8u
#define TILE 2048u

#define SMALL 4096u   // values that are counted one by one, as exact.Analysis does
#define NEAR 512u     // of them those that a work-group counts for itself first
#define NEARBINS 192u // and so many of the bins above SMALL

// A ulong4 is 16 numbers of 16 bits, one for each digit of 4 bits.
#define ALL 0x0001000100010001UL

kernel void fill(global uint *a, ulong n, uint value) {
	ulong i = get_global_id(0);
	if (i < n)
		a[i] = value;
}

// -- Sums ----------------------------------------------------------------------------------------

// The sum of x of the work-items before; *total of all.
uint sum_before(local uint *s, uint x, uint *total) {
	uint l = get_local_id(0);
	s[l] = x;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint o = 1; o < WG; o <<= 1) {
		uint t = l >= o ? s[l - o] : 0;
		barrier(CLK_LOCAL_MEM_FENCE);
		s[l] += t;
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	*total = s[WG - 1];
	x = s[l] - x;
	barrier(CLK_LOCAL_MEM_FENCE);
	return x;
}

// sums[t] is the sum of tile t.
kernel void scan_sums(global const uint *in, ulong n, global uint *sums) {
	local uint s[WG];
	ulong at = (ulong)get_group_id(0) * TILE + get_local_id(0);
	uint x = 0, total;
	for (uint e = 0; e < EACH; e++, at += WG)
		x += at < n ? in[at] : 0;
	sum_before(s, x, &total);
	if (get_local_id(0) == 0)
		sums[get_group_id(0)] = total;
}

// out[i] is the sum of in[0..i); before[t] that of the tiles before tile t. in may be out.
kernel void scan_tiles(global const uint *in, ulong n, global const uint *before, uint only, global uint *out) {
	local uint s[WG];
	ulong at = (ulong)get_group_id(0) * TILE + get_local_id(0) * EACH;
	uint x[EACH], sum = 0, total;
	for (uint e = 0; e < EACH; e++) {
		x[e] = at + e < n ? in[at + e] : 0;
		sum += x[e];
	}
	sum = sum_before(s, sum, &total) + (only ? 0 : before[get_group_id(0)]);
	for (uint e = 0; e < EACH; e++) {
		if (at + e < n)
			out[at + e] = sum;
		sum += x[e];
	}
}

// -- Digits of 4 bits ----------------------------------------------------------------------------

ulong fields(ulong4 a, uint digit) {
	uint w = digit >> 2;
	ulong x = w == 0 ? a.x : w == 1 ? a.y : w == 2 ? a.z : a.w;
	return x >> ((digit & 3) * 16);
}

ulong4 one(uint digit) {
	uint w = digit >> 2;
	ulong x = 1UL << ((digit & 3) * 16);
	return (ulong4)(w == 0 ? x : 0, w == 1 ? x : 0, w == 2 ? x : 0, w == 3 ? x : 0);
}

uint sum_fields(ulong x) { return (uint)((x * ALL) >> 48); }

// How many there are of greater digits.
uint greater(ulong4 a, uint digit) {
	uint w = digit >> 2;
	return sum_fields(fields(a, digit) >> 16) + (w < 1 ? sum_fields(a.y) : 0) + (w < 2 ? sum_fields(a.z) : 0) + (w < 3 ? sum_fields(a.w) : 0);
}

// Where the first of each digit is, if there are so many of each.
ulong4 starts(ulong4 n) {
	ulong x = sum_fields(n.x), y = x + sum_fields(n.y), z = y + sum_fields(n.z);
	return (ulong4)((n.x * ALL) << 16, ((n.y * ALL) << 16) + x * ALL, ((n.z * ALL) << 16) + y * ALL, ((n.w * ALL) << 16) + z * ALL);
}

// sum_before of ulong4; s keeps the sums up to and including each work-item.
ulong4 sum_before4(local ulong4 *s, ulong4 x, ulong4 *total) {
	uint l = get_local_id(0);
	barrier(CLK_LOCAL_MEM_FENCE);
	s[l] = x;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint o = 1; o < WG; o <<= 1) {
		ulong4 t = l >= o ? s[l - o] : (ulong4)(0);
		barrier(CLK_LOCAL_MEM_FENCE);
		s[l] += t;
		barrier(CLK_LOCAL_MEM_FENCE);
	}
	*total = s[WG - 1];
	return s[l] - x;
}

ulong4 count(const uint *digit) {
	ulong4 n = (ulong4)(0);
	for (uint e = 0; e < EACH; e++)
		n += one(digit[e]);
	return n;
}

// pos is where the tile's elements go when it is sorted by digit; equal ones stay in their order.
void split(local ulong4 *s, const uint *digit, uint *pos) {
	ulong4 total, at = sum_before4(s, count(digit), &total);
	at += starts(total);
	for (uint e = 0; e < EACH; e++) {
		pos[e] = fields(at, digit[e]) & 0xffff;
		at += one(digit[e]);
	}
}

// -- Sorting by block: digits of 8 bits, the lowest first ----------------------------------------

kernel void sort_count(global const ulong *key, uint n, uint shift, global uint *table) {
	local uint h[WG];
	uint l = get_local_id(0);
	h[l] = 0;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint e = 0; e < EACH; e++) {
		uint i = get_group_id(0) * TILE + e * WG + l;
		if (i < n)
			atomic_inc(&h[(key[i] >> shift) & 255]);
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	table[l * (uint)get_num_groups(0) + get_group_id(0)] = h[l];
}

// table now has sums; the first pass takes the elements' numbers for order.
kernel void sort_move(global const ulong *key, global const uint *order, uint first, uint n, uint shift, global const uint *table,
		global ulong *key_out, global uint *order_out) {
	local ulong4 s[WG];
	local uint p[TILE];
	local uint start[WG];
	uint l = get_local_id(0), tile = get_group_id(0), tiles = get_num_groups(0), base = tile * TILE;
	uint m = min(n - base, TILE);
	uint x[EACH], digit[EACH], pos[EACH];
	for (uint e = 0; e < EACH; e++) {
		uint j = l * EACH + e;
		uint d = j < m ? (uint)(key[base + j] >> shift) & 255 : 255;
		x[e] = d << 16 | j;
		digit[e] = d & 15;
	}
	split(s, digit, pos);
	for (uint e = 0; e < EACH; e++)
		p[pos[e]] = x[e];
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint e = 0; e < EACH; e++) {
		x[e] = p[l * EACH + e];
		digit[e] = x[e] >> 20;
	}
	split(s, digit, pos);
	for (uint e = 0; e < EACH; e++)
		p[pos[e]] = x[e];
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint j = l; j < TILE; j += WG) {
		uint d = p[j] >> 16;
		if (j == 0 || p[j - 1] >> 16 != d)
			start[d] = j;
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint j = l; j < m; j += WG) {
		uint d = p[j] >> 16, from = base + (p[j] & 0xffff);
		uint to = table[d * tiles + tile] + j - start[d];
		key_out[to] = key[from];
		order_out[to] = first ? from : order[from];
	}
}

// -- Uses ----------------------------------------------------------------------------------------

// length[i] is the touches of run i.
kernel void lengths(global const uchar *runs, uint n, global uint *length) {
	uint i = get_global_id(0);
	if (i <= n)
		length[i] = i < n ? (runs[i] >> 1) + 1u : 0;
}

ulong lower_bound(global const ulong *known, ulong m, ulong key) {
	ulong lo = 0, hi = m;
	while (lo < hi) {
		ulong mid = (lo + hi) >> 1;
		if (known[mid] < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

// For each run in the order of blocks: before is the run of the same block before it, or of the
// first one where the block is, or belongs, among those known.
kernel void match(global const ulong *key, global const uint *order, uint n, global const ulong *known, uint m, global const uint *rank,
		uint ranked, global uint *before, global uint *is_new, global uint *again, global uint *touched) {
	uint s = get_global_id(0);
	if (s > n)
		return;
	if (s == n) {
		is_new[n] = again[n] = 0;
		return;
	}
	ulong k = key[s];
	again[order[s]] = s + 1 < n && key[s + 1] == k;
	is_new[s] = 0;
	if (s > 0 && key[s - 1] == k) {
		before[s] = order[s - 1];
		return;
	}
	uint at = (uint)lower_bound(known, m, k);
	before[s] = at;
	if (at == m || known[at] != k)
		is_new[s] = 1;
	else if (ranked)
		touched[rank[at]] = 1;
}

// value numbers the uses of the runs in their order on the stack, from 0 to n-1: first touches before all others, then
// uses before this segment, then those in it. is_new, again, touched now have sums.
kernel void number(global const ulong *key, global const uint *order, uint n, uint m, global const uint *rank, global const uint *before,
		global const uint *is_new, global const uint *again, global const uint *touched, global uint *value, global uint *prior) {
	uint s = get_global_id(0);
	if (s >= n)
		return;
	uint i = order[s], p = before[s], v;
	if (s > 0 && key[s - 1] == key[s])
		v = is_new[n] + touched[m] + again[p];
	else if (is_new[s + 1] != is_new[s])
		v = is_new[s];
	else
		v = is_new[n] + touched[rank[p]];
	value[i] = v;
	prior[i] = p;
}

// -- Counting, for each element, those before it with a greater value ----------------------------
//
// Values are 0 to n-1, each once. A node is the elements whose values agree above some bit, in
// their order in time; that it has all such values makes its place known. It is split by the
// next bits; each element counts those before it that go to a greater child.

kernel void inv_count(global const uint *value, uint n, uint shift, uint mask, global uint *table) {
	local ulong4 s[WG];
	uint l = get_local_id(0), base = get_group_id(0) * TILE + l * EACH;
	uint digit[EACH];
	for (uint e = 0; e < EACH; e++)
		digit[e] = base + e < n ? (value[base + e] >> shift) & mask : 15;
	s[l] = count(digit);
	for (uint o = WG / 2; o > 0; o >>= 1) {
		barrier(CLK_LOCAL_MEM_FENCE);
		if (l < o)
			s[l] += s[l + o];
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	if (l < 16)
		table[l * (uint)get_num_groups(0) + get_group_id(0)] = fields(s[0], l) & 0xffff;
}

// A node has 1 << bits elements, that of the last one perhaps fewer. n elements of 15 more than there are do not matter: they come last.
kernel void inv_move(global const uint *value, global const uint *more, uint first, uint n, uint shift, uint bits, global const uint *table,
		global uint *value_out, global uint *more_out) {
	local ulong4 s[WG];
	local uint v[TILE], c[TILE];
	local uint before[16], over[16];
	uint l = get_local_id(0), tile = get_group_id(0), tiles = get_num_groups(0), base = tile * TILE;
	uint m = min(n - base, TILE), node = base >> bits << bits, mask = (1u << (bits - shift)) - 1;
	if (l < 16)
		before[l] = table[l * tiles + tile] - table[l * tiles + node / TILE];
	barrier(CLK_LOCAL_MEM_FENCE);
	if (l < 16) {
		uint x = 0;
		for (uint d = l + 1; d < 16; d++)
			x += before[d];
		over[l] = x;
	}
	uint x[EACH], digit[EACH];
	for (uint e = 0; e < EACH; e++) {
		uint j = l * EACH + e;
		x[e] = j < m ? value[base + j] : 0;
		digit[e] = j < m ? (x[e] >> shift) & mask : 15;
	}
	ulong4 total, at = sum_before4(s, count(digit), &total), start = starts(total);
	for (uint e = 0; e < EACH; e++) {
		uint d = digit[e], j = l * EACH + e;
		uint to = (fields(start, d) & 0xffff) + (fields(at, d) & 0xffff);
		v[to] = x[e];
		c[to] = over[d] + greater(at, d) + (first || j >= m ? 0 : more[base + j]);
		at += one(d);
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint j = l; j < m; j += WG) {
		uint d = (v[j] >> shift) & mask;
		uint to = node + (d << shift) + before[d] + j - (uint)(fields(start, d) & 0xffff);
		value_out[to] = v[j];
		more_out[to] = c[j];
	}
}

// The last 11 bits: a tile is a node. more_out is by value.
kernel void inv_tile(global const uint *value, global const uint *more, uint first, uint n, global uint *more_out) {
	local ulong4 s[WG];
	local uint v[TILE], c[TILE];
	uint l = get_local_id(0), base = get_group_id(0) * TILE, m = min(n - base, TILE);
	uint x[EACH], y[EACH], digit[EACH];
	for (uint e = 0; e < EACH; e++) {
		uint j = l * EACH + e;
		x[e] = j < m ? value[base + j] - base : TILE;
		y[e] = first || j >= m ? 0 : more[base + j];
		digit[e] = j < m ? x[e] >> 7 : 15;
	}
	ulong4 total, at = sum_before4(s, count(digit), &total);
	for (uint e = 0; e < EACH; e++) {
		uint d = digit[e];
		if (x[e] < TILE) {
			uint to = (d << 7) + (uint)(fields(at, d) & 0xffff);
			v[to] = x[e];
			c[to] = y[e] + greater(at, d);
		}
		at += one(d);
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	// Nodes of 128: 16 work-items each.
	for (uint e = 0; e < EACH; e++) {
		uint j = l * EACH + e;
		x[e] = j < m ? v[j] : TILE;
		y[e] = j < m ? c[j] : 0;
		digit[e] = j < m ? (x[e] >> 3) & 15 : 15;
	}
	at = sum_before4(s, count(digit), &total);
	if (l >= 16)
		at -= s[(l & ~15u) - 1];
	for (uint e = 0; e < EACH; e++) {
		uint d = digit[e];
		if (x[e] < TILE) {
			uint to = (x[e] & ~127u) + (d << 3) + (uint)(fields(at, d) & 0xffff);
			v[to] = x[e];
			c[to] = y[e] + greater(at, d);
		}
		at += one(d);
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	// Nodes of 8: one work-item each.
	for (uint e = 0; e < EACH; e++) {
		uint j = l * EACH + e;
		x[e] = j < m ? v[j] : 0;
		y[e] = j < m ? c[j] : 0;
	}
	for (uint e = 0; e < EACH; e++) {
		uint z = y[e];
		for (uint f = 0; f < e; f++)
			z += x[f] > x[e];
		if (l * EACH + e < m)
			more_out[base + x[e]] = z;
	}
}

// -- What was found ------------------------------------------------------------------------------

#define COLD 0xffffffffffffffffUL

// The distance of run i and the reuse time; COLD at a first touch. first_uses are the numbers of first touches and of uses before
// this segment.
#define FOUND(i, dist, time)                                                       \
	uint val_ = value[i], p_ = prior[i], use_ = m + p_;                            \
	ulong dist = COLD, time = COLD;                                                \
	if (val_ >= is_new[n]) {                                                       \
		if (val_ < is_new[n] + touched[m]) {                                       \
			use_ = rank[p_];                                                       \
			time = now + offset[i] + 1 - last[p_];                                 \
		} else                                                                     \
			time = offset[i] - offset[p_ + 1] + 1;                                 \
		dist = m + i - use_ - 1 - inv[val_];                                       \
	}

// For each run, for who counts it otherwise.
kernel void each(uint n, uint m, ulong now, global const uint *value, global const uint *prior, global const uint *inv,
		global const uint *is_new, global const uint *touched, global const uint *offset, global const uint *rank, global const ulong *last,
		global ulong *dists, global ulong *times) {
	uint i = get_global_id(0);
	if (i >= n)
		return;
	FOUND(i, dist, time)
	dists[i] = dist;
	times[i] = time;
}

// The histograms are words of 32 bits, of two or three where sums are; see tally.go.
#define H_TIME 0
#define H_TIMESUM (SMALL + bins)
#define H_WINDOW (H_TIMESUM + 3 * bins)
#define H_WINDOWBIN (H_WINDOW + 2 * SMALL)
#define H_DIST (H_WINDOWBIN + 2 * bins)
#define H_FIRST (H_DIST + 2 * (SMALL + bins))
#define H_FIRSTSUM (H_FIRST + SMALL + bins)
#define H_COLD (H_FIRSTSUM + 3 * bins)

// Of each bin near at hand: times and their sum, the windows' sum, distances of loads and of
// stores, first touches and their sum.
#define F_TIME 0
#define F_TIMESUM 1
#define F_WINDOW 4
#define F_DIST 7
#define F_FIRST 9
#define F_FIRSTSUM 10
#define F_WORDS 13

// The bin of v, from the one of SMALL on. octave[k] is the bin of 1 << k, among all.
uint bin_of(ulong v, global const ulong *edge, global const uint *octave) {
	uint k = 63 - (uint)clz(v), lo = octave[k], hi = octave[k + 1];
	while (lo < hi) {
		uint mid = (lo + hi + 1) >> 1;
		if (edge[mid] <= v)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo - octave[12];
}

// Adds to a number of three words, or of two where the sum is below 1 << 64 for certain.
#define ADD_LONG(a, v)                                                             \
	do {                                                                           \
		ulong v_ = (v);                                                            \
		uint lo_ = (uint)v_;                                                       \
		ulong hi_ = v_ >> 32;                                                      \
		if (lo_ != 0 && atomic_add((a), lo_) > ~lo_)                               \
			hi_++;                                                                 \
		if ((uint)hi_ != 0 && atomic_add((a) + 1, (uint)hi_) > ~(uint)hi_)         \
			hi_ += 1UL << 32;                                                      \
		if (hi_ >> 32 != 0)                                                        \
			atomic_add((a) + 2, (uint)(hi_ >> 32));                                \
	} while (0)

kernel void tally(uint n, uint m, ulong now, global const uint *value, global const uint *prior, global const uint *inv,
		global const uint *is_new, global const uint *touched, global const uint *offset, global const uint *rank, global const ulong *last,
		global const uchar *runs, uint timed, global const ulong *edge, global const uint *octave, uint bins, global uint *h) {
	local uint near[4 * NEAR]; // times, windows, distances of loads, of stores
	local uint far[F_WORDS * NEARBINS];
	local uint cold[2];
	uint l = get_local_id(0);
	for (uint j = l; j < 4 * NEAR; j += WG)
		near[j] = 0;
	for (uint j = l; j < F_WORDS * NEARBINS; j += WG)
		far[j] = 0;
	if (l < 2)
		cold[l] = 0;
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint i = get_global_id(0); i < n; i += (uint)get_global_size(0)) {
		FOUND(i, dist, time)
		uint store = runs[i] & 1;
		if (dist == COLD) {
			ulong nth = now + offset[i] + 1;
			uint b = nth < SMALL ? 0 : bin_of(nth, edge, octave);
			atomic_inc(&cold[store]);
			if (nth < SMALL) {
				atomic_inc(&h[H_FIRST + (uint)nth]);
			} else if (b < NEARBINS) {
				atomic_inc(&far[F_WORDS * b + F_FIRST]);
				ADD_LONG(&far[F_WORDS * b + F_FIRSTSUM], nth);
			} else {
				atomic_inc(&h[H_FIRST + SMALL + b]);
				ADD_LONG(&h[H_FIRSTSUM + 3 * b], nth);
			}
			continue;
		}
		uint b = dist < SMALL ? 0 : bin_of(dist, edge, octave);
		if (dist < NEAR)
			atomic_inc(&near[(2 + store) * NEAR + (uint)dist]);
		else if (dist < SMALL)
			atomic_inc(&h[H_DIST + store * (SMALL + bins) + (uint)dist]);
		else if (b < NEARBINS)
			atomic_inc(&far[F_WORDS * b + F_DIST + store]);
		else
			atomic_inc(&h[H_DIST + store * (SMALL + bins) + SMALL + b]);
		if (!timed)
			continue;
		b = time < SMALL ? 0 : bin_of(time, edge, octave);
		if (time < NEAR) {
			atomic_inc(&near[(uint)time]);
			atomic_add(&near[NEAR + (uint)time], (uint)dist + 1);
		} else if (time < SMALL) {
			atomic_inc(&h[H_TIME + (uint)time]);
			ADD_LONG(&h[H_WINDOW + 2 * (uint)time], dist + 1);
		} else if (b < NEARBINS) {
			atomic_inc(&far[F_WORDS * b + F_TIME]);
			ADD_LONG(&far[F_WORDS * b + F_TIMESUM], time);
			ADD_LONG(&far[F_WORDS * b + F_WINDOW], dist + 1);
		} else {
			atomic_inc(&h[H_TIME + SMALL + b]);
			ADD_LONG(&h[H_TIMESUM + 3 * b], time);
			ADD_LONG(&h[H_WINDOWBIN + 2 * b], dist + 1);
		}
	}
	barrier(CLK_LOCAL_MEM_FENCE);
	for (uint j = l; j < NEAR; j += WG) {
		if (near[j] != 0) {
			atomic_add(&h[H_TIME + j], near[j]);
			ADD_LONG(&h[H_WINDOW + 2 * j], near[NEAR + j]);
		}
		for (uint store = 0; store < 2; store++)
			if (near[(2 + store) * NEAR + j] != 0)
				atomic_add(&h[H_DIST + store * (SMALL + bins) + j], near[(2 + store) * NEAR + j]);
	}
	for (uint b = l; b < min(NEARBINS, bins); b += WG) {
		local uint *f = &far[F_WORDS * b];
		for (uint store = 0; store < 2; store++)
			if (f[F_DIST + store] != 0)
				atomic_add(&h[H_DIST + store * (SMALL + bins) + SMALL + b], f[F_DIST + store]);
		if (f[F_TIME] != 0) {
			atomic_add(&h[H_TIME + SMALL + b], f[F_TIME]);
			ADD_LONG(&h[H_TIMESUM + 3 * b], f[F_TIMESUM] | (ulong)f[F_TIMESUM + 1] << 32);
			if (f[F_TIMESUM + 2] != 0)
				atomic_add(&h[H_TIMESUM + 3 * b + 2], f[F_TIMESUM + 2]);
			ADD_LONG(&h[H_WINDOWBIN + 2 * b], f[F_WINDOW] | (ulong)f[F_WINDOW + 1] << 32);
		}
		if (f[F_FIRST] != 0) {
			atomic_add(&h[H_FIRST + SMALL + b], f[F_FIRST]);
			ADD_LONG(&h[H_FIRSTSUM + 3 * b], f[F_FIRSTSUM] | (ulong)f[F_FIRSTSUM + 1] << 32);
			if (f[F_FIRSTSUM + 2] != 0)
				atomic_add(&h[H_FIRSTSUM + 3 * b + 2], f[F_FIRSTSUM + 2]);
		}
	}
	if (l < 2 && cold[l] != 0)
		atomic_add(&h[H_COLD + l], cold[l]);
}

// At the end: how many touches from the last one of each block on, counted as first touches are.
kernel void tally_last(uint m, ulong touches, global const ulong *last, global const ulong *edge, global const uint *octave, uint bins,
		global uint *h) {
	for (uint i = get_global_id(0); i < m; i += (uint)get_global_size(0)) {
		ulong v = touches - last[i] + 1;
		uint b = v < SMALL ? 0 : bin_of(v, edge, octave);
		if (v < SMALL) {
			atomic_inc(&h[H_FIRST + (uint)v]);
		} else {
			atomic_inc(&h[H_FIRST + SMALL + b]);
			ADD_LONG(&h[H_FIRSTSUM + 3 * b], v);
		}
	}
}

// -- The stack after the segment -----------------------------------------------------------------

// new_at[c] is where the c-th new block belongs among those known.
kernel void list_new(global const uint *before, global const uint *is_new, uint n, global uint *new_at) {
	uint s = get_global_id(0);
	if (s < n && is_new[s + 1] != is_new[s])
		new_at[is_new[s]] = before[s];
}

// Blocks known before move up by the new ones that come before them; those not touched keep their order at the bottom.
kernel void keep(uint m, uint fresh, global const uint *new_at, global const uint *touched, uint ranked, global const ulong *known,
		global const uint *rank, global const ulong *last, global ulong *known_out, global uint *rank_out, global ulong *last_out) {
	uint i = get_global_id(0);
	if (i >= m)
		return;
	uint lo = 0, hi = fresh; // new ones that belong at i or before
	while (lo < hi) {
		uint mid = (lo + hi) >> 1;
		if (new_at[mid] <= i)
			lo = mid + 1;
		else
			hi = mid;
	}
	known_out[i + lo] = known[i];
	rank_out[i + lo] = rank[i] - (ranked ? touched[rank[i]] : 0);
	last_out[i + lo] = last[i];
}

kernel void add_new(global const ulong *key, global const uint *before, global const uint *is_new, uint n, global ulong *known_out) {
	uint s = get_global_id(0);
	if (s < n && is_new[s + 1] != is_new[s])
		known_out[before[s] + is_new[s]] = key[s];
}

// The last touches of the segment are on top, in their order. lasts is how many there are before a run, or with again how
// many others.
kernel void touch(global const ulong *key, global const uint *order, uint n, global const uint *lasts, uint again, global const uint *offset,
		ulong now, uint below, global const ulong *known_out, uint m, global uint *rank_out, global ulong *last_out) {
	uint s = get_global_id(0);
	if (s >= n || s + 1 < n && key[s + 1] == key[s])
		return;
	uint i = order[s], at = (uint)lower_bound(known_out, m, key[s]);
	rank_out[at] = below + (again ? i - lasts[i] : lasts[i]);
	last_out[at] = now + offset[i + 1];
}

// -- The approximate merge -----------------------------------------------------------------------

kernel void piece_starts(global const uint *starts, uint n, global uint *of) {
	uint i = get_global_id(0);
	if (i < n)
		of[starts[i]] = 1;
}

// of now has sums: of[i + 1] is the piece of run i.
kernel void piece_match(global const ulong *key, global const uint *order, uint n, global const uint *of, global uint *heads,
		global uint *firsts, global uint *lasts) {
	uint s = get_global_id(0);
	if (s > n)
		return;
	if (s == n) {
		heads[n] = firsts[n] = lasts[n] = 0;
		return;
	}
	uint i = order[s], piece = of[i + 1];
	bool head = s == 0 || key[s - 1] != key[s], tail = s + 1 == n || key[s + 1] != key[s];
	heads[s] = head;
	firsts[i] = head || of[order[s - 1] + 1] != piece;
	lasts[i] = tail || of[order[s + 1] + 1] != piece;
}

// As number; prior is NONE at a first touch of all.
#define NONE 0xffffffffu
kernel void piece_number(global const ulong *key, global const uint *order, uint n, global const uint *before, global const uint *is_new,
		global const uint *again, global const uint *heads, global uint *value, global uint *prior) {
	uint s = get_global_id(0);
	if (s >= n)
		return;
	uint i = order[s], p = before[s];
	bool head = heads[s + 1] != heads[s];
	value[i] = head ? heads[s] : heads[n] + again[p];
	prior[i] = is_new[s + 1] != is_new[s] ? NONE : p;
}

kernel void piece_tally(uint n, uint blocks, global const uint *value, global const uint *prior, global const uint *inv, global const uint *of,
		global const uint *heads, global const uint *firsts, global const uint *lasts, global const uint *rank, global const uchar *runs,
		global const ulong *edge, global const uint *octave, uint bins, global uint *h,
		global const ulong *fine_edge, global const uint *fine_octave, uint fine_bins, global uint *fine) {
	uint i = get_global_id(0);
	if (i >= n)
		return;
	uint store = runs[i] & 1, p = prior[i], v = value[i], dist;
	if (p == NONE) {
		atomic_inc(&h[H_COLD + store]);
		return;
	}
	if (v >= heads[n] && of[p + 1] == of[i + 1]) {
		dist = i - p - 1 - inv[v];
		uint at = dist < SMALL ? dist : SMALL + bin_of(dist, edge, octave);
		atomic_inc(&h[H_DIST + store * (SMALL + bins) + at]);
		return;
	}
	dist = v < heads[n] ? blocks + firsts[i] - rank[p] - 1 : firsts[i] - lasts[p] - 1;
	h = fine;
	bins = fine_bins; // of which H_TIME and H_FIRST have those by loads and by stores
	uint n_at = store ? H_FIRST : H_TIME, sum_at = store ? H_FIRSTSUM : H_TIMESUM;
	if (dist < SMALL) {
		atomic_inc(&h[n_at + dist]);
	} else {
		uint b = bin_of(dist, fine_edge, fine_octave);
		atomic_inc(&h[n_at + SMALL + b]);
		ADD_LONG(&h[sum_at + 3 * b], dist);
	}
}

// -- Counting for others -------------------------------------------------------------------------
//
// Elements are, in turn, one that is asked for and one that is counted; 0 is none, others have one added.
// A counted x has the key 2x, an asked one 2x+1; keys that there are get numbers without gaps.

kernel void count_keys(global const uint *counted, global const uint *asked, uint n, global uint *keys, global uint *none,
		global uint *asked_keys, global uint *asked_none) {
	uint i = get_global_id(0);
	if (i >= n)
		return;
	uint c = counted[i], q = asked[i];
	none[2 * i] = asked_none[i] = q == 0;
	none[2 * i + 1] = c == 0;
	if (q != 0)
		keys[2 * (q - 1) + 1] = asked_keys[q - 1] = 1;
	if (c != 0)
		keys[2 * (c - 1)] = 1;
}

kernel void count_values(global const uint *counted, global const uint *asked, uint n, global const uint *keys, global const uint *none,
		global const uint *asked_keys, global const uint *asked_none, global uint *value, global uint *asked_value) {
	uint i = get_global_id(0);
	if (i >= n)
		return;
	uint c = counted[i], q = asked[i];
	value[2 * i] = q == 0 ? none[2 * i] : none[2 * n] + keys[2 * (q - 1) + 1];
	value[2 * i + 1] = c == 0 ? none[2 * i + 1] : none[2 * n] + keys[2 * (c - 1)];
	asked_value[i] = q == 0 ? asked_none[i] : asked_none[n] + asked_keys[q - 1];
}

kernel void count_answer(uint n, global const uint *value, global const uint *inv, global const uint *asked_value, global const uint *asked_inv,
		global uint *greater) {
	uint i = get_global_id(0);
	if (i < n)
		greater[i] = inv[value[2 * i]] - asked_inv[asked_value[i]];
}
