// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package installers_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/internal/verify/faults"
)

// point is a call of the new installer's main thread, in one of its turns.
type point struct {
	turn int
	call string
	when int // ordinal among the calls of its name, from 1
}

func (p point) String() string {
	return fmt.Sprintf("turn %d, %s, %s %d", p.turn+1, turns[p.turn].verb, p.call, p.when)
}

// The number of a migration's calls at which the new installer is killed, each time from
// the start.
var points = flag.Int("points", 50, "kill the installers at this many calls; 0 means at each")

// Killed at any call that changes something, in any of its turns, the new installer
// reaches the same state when it is started again.
func TestPLAN3_MigrationKilled(t *testing.T) {
	testns.Root(t)
	if _, err := exec.LookPath("strace"); err != nil {
		testns.Skip(t, "strace is not installed")
	}
	for agent := range migrations() {
		t.Run(agent, func(t *testing.T) {
			t.Parallel()
			all, killed := record(t, agent), 0
			sample := min(len(all), *points)
			switch {
			case *points == 0:
				sample = len(all)
			case testing.Short():
				sample = 4
			}
			for i := range sample {
				p := all[i*len(all)/sample]
				t.Run(p.String(), func(t *testing.T) {
					if newStand(t, agent, i%2 == 0).migrateKilled(p) {
						killed++
					}
				})
			}
			t.Logf("%s: %d calls, %d points, killed at %d", agent, len(all), sample, killed)
			require.Greater(t, killed, sample*3/4)
		})
	}
}

// record lists the points of an undisturbed migration.
func record(t *testing.T, agent string) (all []point) {
	t.Helper()
	s := newStand(t, agent, true)
	for i, turn := range turns {
		s.comes(turn)
		out, err := s.traced(turn, "--seccomp-bpf", "-e", "trace=?"+strings.Join(faults.Changing(), ",?"))
		require.NoError(t, err, out)
		all = append(all, s.calls(i)...)
	}
	s.isUninstalled()
	return all
}

// traced plays a turn under strace, with these options.
func (s *stand) traced(t turn, options ...string) (string, error) {
	s.t.Helper()
	strace, err := exec.LookPath("strace")
	require.NoError(s.t, err)
	cmd := s.Command(strace, slices.Concat([]string{"-f", "-o", s.trace()}, options, []string{"--", os.Args[0]})...)
	cmd.Env = s.environment(t)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *stand) trace() string { return filepath.Join(s.image, "trace") }

// traceLine matches a call: thread and name.
var traceLine = regexp.MustCompile(`(?m)^(\d+) +(\w+)\(`)

// calls returns the calls of the main thread, which is the first in the trace.
func (s *stand) calls(turn int) (points []point) {
	s.t.Helper()
	text, err := os.ReadFile(s.trace())
	require.NoError(s.t, err)
	lines, count := traceLine.FindAllStringSubmatch(string(text), -1), map[string]int{}
	for _, line := range lines {
		if line[1] == lines[0][1] {
			count[line[2]]++
			points = append(points, point{turn, line[2], count[line[2]]})
		}
	}
	return points
}

// migrateKilled plays all turns, and the point's turn twice, since it is killed there.
func (s *stand) migrateKilled(p point) (killed bool) {
	s.t.Helper()
	for i, turn := range turns {
		s.comes(turn)
		if i == p.turn {
			_, err := s.traced(turn, "-e", "trace="+p.call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", p.call, p.when))
			exit := (*exec.ExitError)(nil)
			killed = errors.As(err, &exit) && exit.ExitCode() == -1 // else it was a plugin that it ran
			s.do(wholeConfigurations)
		}
		s.play(turn)
	}
	s.isUninstalled()
	return killed
}

// wholeConfigurations returns an error if a runtime could find half of a configuration.
func wholeConfigurations() error {
	files, err := filepath.Glob(conf + "/*.conf*")
	if err != nil {
		return err
	}
	for _, path := range files {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !json.Valid(content) {
			return fmt.Errorf("%s is torn: %q", path, content)
		}
	}
	return nil
}
