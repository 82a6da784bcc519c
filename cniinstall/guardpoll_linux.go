// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// poller looks at the places again and again: at what is in them, not at the
// content.
type poller struct {
	places []place
	seen   map[string]string // by folder
	until  time.Time
}

func newPoller(places []place) *poller {
	p := &poller{places: places, seen: map[string]string{}}
	p.extend()
	p.look()
	return p
}

func (p *poller) close() {}

func (p *poller) extend() { p.until = time.Now().Add(pollFor) }

// expired says that it is time to try inotify again.
func (p *poller) expired() bool { return time.Now().After(p.until) }

// wait returns also if it is time to try inotify again.
func (p *poller) wait(ctx context.Context, until time.Time) (scope, error) {
	for {
		next := pollEvery
		if !until.IsZero() {
			next = min(next, time.Until(until))
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return 0, nil
		case <-timer.C:
		}
		if what := p.look(); what != 0 {
			return what, nil
		}
		if !until.IsZero() && !time.Now().Before(until) {
			return 0, nil
		}
		if p.expired() {
			return 0, nil
		}
	}
}

// look says which places differ from the last time.
func (p *poller) look() (what scope) {
	for _, place := range p.places {
		now := fingerprint(place)
		if p.seen[place.dir+"\x00"+fmt.Sprint(place.what)] != now {
			what |= place.what
		}
		p.seen[place.dir+"\x00"+fmt.Sprint(place.what)] = now
	}
	return what
}

// fingerprint is the identity, size and times of what is in the place: each
// change of a file changes its time of change, which nobody can set.
func fingerprint(p place) string {
	var b strings.Builder
	entries, err := os.ReadDir(p.dir)
	describe(&b, p.dir, err)
	for _, e := range entries {
		if p.interesting(e.Name()) {
			describe(&b, filepath.Join(p.dir, e.Name()), nil)
		}
	}
	return b.String()
}

func describe(w io.Writer, path string, err error) {
	var st unix.Stat_t
	if statErr := unix.Lstat(path, &st); statErr != nil {
		err = statErr
	}
	fmt.Fprintln(w, path, err, st.Dev, st.Ino)
	if st.Mode&unix.S_IFMT != unix.S_IFDIR { // a folder's times change with our own temporary files
		fmt.Fprintln(w, st.Mode, st.Uid, st.Gid, st.Size, st.Mtim, st.Ctim)
	}
}
