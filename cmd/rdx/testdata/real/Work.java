// Work sorts and sums in threads until the standard input ends, each time to
// the same result.
public class Work {
	static volatile boolean stop;

	static long work(long[] a) {
		long x = 88172645463325252L;
		for (int i = 0; i < a.length; i++) {
			x ^= x << 13;
			x ^= x >>> 7;
			x ^= x << 17;
			a[(int) Long.remainderUnsigned(x, a.length)] += i;
		}
		long sum = 0;
		for (int i = 0; i < a.length; i++) {
			sum = sum * 31 + a[i];
			a[i] = 0;
		}
		return sum;
	}

	public static void main(String[] args) throws Exception {
		long[] first = new long[1 << 17];
		long want = work(first);
		for (int i = 0; i < 200; i++)
			work(first); // until it is compiled
		Thread[] threads = new Thread[2];
		for (int i = 0; i < threads.length; i++) {
			threads[i] = new Thread(() -> {
				while (!stop)
					if (work(new long[1 << 17]) != want) {
						System.out.println("BAD sum");
						System.exit(1);
					}
			});
			threads[i].start();
		}
		System.out.println("ready");
		while (System.in.read() >= 0)
			;
		stop = true;
		for (Thread t : threads)
			t.join();
		System.out.println("ok");
	}
}
