-- work.lua reads two words of a table in turn, and then all of it in order, again and again until the
-- standard input ends. Each time all compiled code is dropped, and compiled anew. It checks the sums,
-- and says which share of its time it did the former.
local ffi = require("ffi")
ffi.cdef("struct pollfd { int fd; short events, revents; }; int poll(struct pollfd *, unsigned long, int);")
local input = ffi.new("struct pollfd", { fd = 0, events = 1 })

local words, rounds = 256, 4000000
local word = ffi.new("double[?]", words)
for i = 0, words - 1 do word[i] = i end

-- Of each round nothing else is in memory.
local function few()
	local sum, word, band = 0, word, bit.band
	for i = 1, rounds do sum = sum + word[band(i, 1)] end
	return sum
end

local function all()
	local sum, word, band, last = 0, word, bit.band, words - 1
	for i = 1, rounds do sum = sum + word[band(i, last)] end
	return sum
end

local function check(f, want)
	local start = os.clock()
	if f() ~= want then
		print("BAD sum")
		os.exit(1)
	end
	jit.flush()
	return os.clock() - start
end

local wantFew, wantAll = rounds / 2, 0
for i = 1, rounds do wantAll = wantAll + i % words end
print("ready")
io.flush()
local inFew, inAll = 0, 0
repeat
	inFew = inFew + check(few, wantFew)
	inAll = inAll + check(all, wantAll)
until ffi.C.poll(input, 1, 0) > 0
print(string.format("ok few=%f", inFew / (inFew + inAll)))
