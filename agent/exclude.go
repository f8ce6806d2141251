package agent

import (
	"slices"
	"strings"
)

// Why a process is not sampled.
const (
	whyKernel  = "kernel thread"
	whySelf    = "rdx itself"
	whyTraced  = "already traced"
	whyAsked   = "asks not to be"
	whyConfig  = "excluded by the configuration"
	whyUnread  = "not known whether it asks not to be"
	whyIdle    = "not worth a session"
	whyZombie  = "has ended"
	whyNoTime  = "too little of the period left"
	whyNothing = ""
)

// refuses says why a process must not be sampled, "" if it may.
func (c *Config) refuses(d *Details, labels map[string]string) string {
	value, asked := d.Env[c.OptOut]
	switch {
	case d.Traced:
		return whyTraced
	case d.EnvUnread != nil:
		return whyUnread
	case asked && slices.Contains([]string{"0", "off", "no", "false", "never"}, strings.ToLower(value)):
		return whyAsked
	case d.Self:
		return whySelf
	}
	for i := range c.Exclude {
		if _, ok := c.Exclude[i].of(d, labels); ok {
			return whyConfig
		}
	}
	if len(c.Only) == 0 {
		return whyNothing
	}
	for i := range c.Only {
		if _, ok := c.Only[i].of(d, labels); ok {
			return whyNothing
		}
	}
	return whyConfig
}
