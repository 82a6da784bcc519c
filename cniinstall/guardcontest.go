// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import "time"

const (
	sameLimit  = 5                // repairs of the same state in a row before it is a fight
	totalLimit = 1000             // repairs of any states in a row before it is a fight
	spellEnd   = 10 * time.Second // without a repair: a later change is unrelated
)

// contest distinguishes a fight from a series of accidents: the same state keeps
// returning, or the repairs do not end.
type contest struct {
	found       string
	same, total int
	last, since time.Time
	on          bool
}

type contestState uint8

const (
	noContest contestState = iota
	contestBegins
	contestGoesOn
)

// add records that the state found was repaired at the time now.
func (c *contest) add(found string, now time.Time) contestState {
	if now.Sub(c.last) > spellEnd {
		*c = contest{}
	}
	if found != c.found {
		c.found, c.same = found, 0
	}
	if c.total++; c.total == 1 {
		c.since = now
	}
	c.same++
	c.last = now
	was := c.on
	c.on = c.same > sameLimit || c.total > totalLimit
	switch {
	case c.on && was:
		return contestGoesOn
	case c.on:
		c.since = now
		return contestBegins
	}
	return noContest
}
