// A known chain of calls through virtual functions, std::function and a frame
// that catches exceptions; it ends in stop().
#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

volatile int never = 0;

extern "C" NOINLINE void stop()
{
	kill(getpid(), SIGSTOP);
	while (!never)
		pause();
}

NOINLINE int leaf(int a)
{
	stop();
	return a + never;
}

struct Shape {
	virtual ~Shape() {}
	virtual int area(int) = 0;
};

struct Square : Shape {
	int area(int n) override;
};

NOINLINE int Square::area(int n)
{
	std::string s(n + 100, 'x');
	return leaf(n) + (int)s.size() + never;
}


template <class T> NOINLINE int apply(const std::function<int(T)> &f, T v)
{
	return f(v) + never;
}

NOINLINE int caught(Shape *s)
{
	try {
		int r = apply<int>([s](int n) { return s->area(n) + never; }, 7);
		if (r == -1)
			throw std::runtime_error("never");
		return r;
	} catch (const std::exception &) {
		return 1;
	}
}

int main()
{
	std::unique_ptr<Shape> s(new Square);
	return caught(s.get()) + never;
}
