import random
table = {n: n for n in range(2_000_000)}
keys = list(table)
random.shuffle(keys)
while True:
    total = sum(table[k] for k in keys)
