// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Kill stands in for the name of an error: the program dies at the call.
const Kill = "SIGKILL"

// Faults lists the faults that can be injected at a call.
func Faults() []string {
	return []string{"EIO", "ENOSPC", "EPERM", "EINTR", "EROFS", "ENOMEM", Kill}
}

// Calls that may change something on the node, and those that only look. Calls that do
// neither, such as fcntl, are left alone. So is close: whatever it returns, Linux has
// closed the descriptor, while strace's error would leave it open.
const (
	changing = "mkdirat,mknodat,fchmod,fchmodat,fchmodat2,fchown,fchownat,renameat,renameat2,unlinkat,symlinkat,linkat," +
		"fsync,fdatasync,write,pwrite64,ftruncate,flock,copy_file_range,sendfile,splice," +
		"mount,umount2,fsopen,fsconfig,fsmount,move_mount,open_tree,mount_setattr,setns,unshare,socket,sendto,sendmsg,bpf"
	looking = "openat,openat2,readlinkat,read,pread64,fstat,newfstatat,statx,fstatfs,statfs,getdents64,statmount,listmount," +
		"name_to_handle_at,bind,connect,setsockopt,getsockname,recvfrom,recvmsg"
)

// Changing lists the calls that may change something on a node.
func Changing() []string { return strings.Split(changing, ",") }

// faultsAt returns the faults to play at the nth call of a name. A kill at a call that
// only looks equals a kill at the next one that changes something. A call that only looks
// returns EIO, and one of its other possible errors.
func faultsAt(name, arguments string, n int) []string {
	if slices.Contains(Changing(), name) || strings.Contains(arguments, "O_CREAT") {
		return Faults()
	}
	return []string{"EIO", []string{"EPERM", "EINTR", "ENOMEM"}[n%3]}
}

// Point is one fault at one call of a scenario.
type Point struct {
	Scenario, Call string
	When           int // ordinal among the calls of its name, from 1
	Fault          string
}

func (p Point) String() string {
	return fmt.Sprintf("%s/%s/%d/%s", p.Scenario, p.Call, p.When, p.Fault)
}

// spread orders points so that each beginning of the list is a sample of all.
func spread(points []Point) {
	key := func(p Point) uint64 {
		h := fnv.New64a()
		h.Write([]byte(p.String()))
		return h.Sum64()
	}
	slices.SortFunc(points, func(a, b Point) int { return cmp.Compare(key(a), key(b)) })
}

// call matches a line of strace's: thread, name and arguments.
var call = regexp.MustCompile(`^(\d+) +(\w+)\((.*)`)

// strace runs the scenario's command traced, and returns strace's output.
func (s *stand) strace(ctx context.Context, options ...string) (o outcome, lines []string, err error) {
	trace := filepath.Join(s.node.work, "trace")
	args := slices.Concat([]string{"-f", "-o", trace, "-s", "200", "-y"}, options, []string{"--", s.node.binary}, s.run)
	if o, err = s.node.run(ctx, "strace", args...); err != nil {
		return o, nil, err
	}
	raw, err := os.ReadFile(trace)
	return o, strings.Split(string(raw), "\n"), err
}

// record runs the scenario's command undisturbed and returns a point for each
// fault at each of its calls. Writes to the standard streams are left out: their failure
// cannot be reported.
func (s *stand) record(ctx context.Context) (points []Point, err error) {
	o, lines, err := s.strace(ctx, "--seccomp-bpf", "-e", "trace=?"+strings.ReplaceAll(changing+","+looking, ",", ",?"))
	if err == nil && o.code != 0 {
		err = errors.New(o.String())
	}
	if err != nil {
		return nil, fmt.Errorf("record the calls of %s: %w", s.Name, err)
	}
	type counted struct{ thread, name string }
	count, known := map[counted]int{}, map[Point]bool{}
	for _, line := range lines {
		m := call.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		c := counted{m[1], m[2]}
		count[c]++
		if m[2] == "write" && (strings.HasPrefix(m[3], "1<") || strings.HasPrefix(m[3], "2<")) {
			continue
		}
		for _, fault := range faultsAt(m[2], m[3], count[c]) {
			if s.kills && fault != Kill {
				continue
			}
			if p := (Point{s.Name, m[2], count[c], fault}); !known[p] {
				known[p] = true
				points = append(points, p)
			}
		}
	}
	return points, nil
}

// inject runs the scenario's command with a fault. It returns the call that met
// it, or nothing if none did.
func (s *stand) inject(ctx context.Context, p Point) (o outcome, hit string, err error) {
	if p.Fault == Kill { // strace 6.1 does not deliver it to a process filtered by --seccomp-bpf
		o, lines, err := s.strace(ctx, "-e", "trace="+p.Call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", p.Call, p.When))
		if err == nil && o.code == -1 {
			hit = lastCall(lines)
		}
		return o, hit, err
	}
	o, lines, err := s.strace(ctx, "--seccomp-bpf", "-e", "trace="+p.Call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", p.Call, p.Fault, p.When))
	if at := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, "(INJECTED)") }); at >= 0 {
		hit = lines[at]
	}
	return o, hit, err
}

// lastCall is the last call that was begun.
func lastCall(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if call.MatchString(line) {
			return line
		}
	}
	return ""
}
