// work.js walks a table in two threads until the standard input ends, each time to the
// same sum.
const { Worker, isMainThread, parentPort } = require('worker_threads');

const table = new Uint32Array(1 << 17);

function churn() {
	let x = 123456789, sum = 0;
	for (let i = 0; i < table.length; i++) {
		x ^= x << 13;
		x ^= x >>> 17;
		x ^= x << 5;
		table[(x >>> 0) % table.length] += i;
	}
	for (let i = 0; i < table.length; i++) {
		sum = (Math.imul(sum, 31) + table[i]) | 0;
		table[i] = 0;
	}
	return sum;
}

const want = churn();
let stop = false;

function rounds() {
	for (let i = 0; i < 10; i++)
		if (churn() !== want) {
			console.log('BAD sum');
			process.exit(1);
		}
	if (!stop)
		setImmediate(rounds);
	else if (isMainThread)
		console.log('ok');
}

for (let i = 0; i < 100; i++)
	churn(); // until it is compiled
if (isMainThread) {
	const worker = new Worker(__filename);
	worker.on('message', () => {
		console.log('ready');
		rounds();
	});
	process.stdin.on('end', () => {
		stop = true;
		worker.postMessage('stop');
	}).resume();
} else {
	parentPort.on('message', () => {
		stop = true;
		parentPort.close();
	});
	parentPort.postMessage('ready');
	rounds();
}
