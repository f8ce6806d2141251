package agent

import (
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// notifier tells systemd how the agent is (sd_notify(3)); without systemd it does nothing.
type notifier struct{ conn net.Conn }

func newNotifier() notifier {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return notifier{}
	}
	if path[0] == '@' {
		path = "\x00" + path[1:]
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return notifier{}
	}
	return notifier{conn}
}

func (n notifier) tell(state string) {
	if n.conn != nil {
		_, _ = n.conn.Write([]byte(state))
	}
}

func (n notifier) ready()          { n.tell("READY=1") }
func (n notifier) stopping()       { n.tell("STOPPING=1") }
func (n notifier) alive()          { n.tell("WATCHDOG=1") }
func (n notifier) status(s string) { n.tell("STATUS=" + s) }

// reloading is answered by ready; systemd wants to know since when.
func (n notifier) reloading() {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	n.tell("RELOADING=1\nMONOTONIC_USEC=" + strconv.FormatInt(ts.Nano()/1000, 10))
}

// watchdog is how often systemd wants to hear of the agent, 0 for never.
func watchdog() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 {
		return 0
	}
	return time.Duration(us) * time.Microsecond / 2
}
