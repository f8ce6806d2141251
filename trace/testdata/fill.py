# See fill.c.
import array

a = array.array("Q", bytes(8 * 100_000))
for i in range(100_000):
    a[i] = i
print(hex(a.buffer_info()[0]))
