// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

// findSystemdSysctl returns the path of systemd's own program, and its version.
func findSystemdSysctl(t *testing.T) (program string, version int) {
	t.Helper()
	for _, program := range []string{"/usr/lib/systemd/systemd-sysctl", "/lib/systemd/systemd-sysctl"} {
		if out, err := exec.Command(program, "--version").Output(); err == nil {
			version, err := strconv.Atoi(strings.Fields(string(out))[1])
			require.NoError(t, err)
			return program, version
		}
	}
	testns.Skip(t, "needs systemd-sysctl")
	return "", 0
}

// For generated trees of files, Effective and a Kernel that expands its globs agree
// with systemd's own program: on the keys, their values, their order, and which of
// them may fail. With a drop-in of ours among them, Advise names exactly the values that
// systemd does not take from it.
func TestSYS5_RealSystemdReadsGeneratedTreesAlike(t *testing.T) {
	testns.Root(t)
	program, version := findSystemdSysctl(t)
	testns.Enter(t, testns.Mount|testns.Net)
	veth(t, "lxc1", "lxc2.7")
	veth(t, "eth0", "hub0")
	veth(t, "br[0]", "lxc[1]")
	veth(t, "caf\xe9", "café")
	mounted := []string{"/etc", "/run", "/usr/local/lib", "/usr/lib/sysctl.d"}
	if _, err := os.Stat("/lib/sysctl.d"); err == nil && !sameDir(t, "/lib", "/usr/lib") {
		mounted = append(mounted, "/lib/sysctl.d")
	}
	for _, dir := range mounted {
		require.NoError(t, unix.Mount("tmpfs", dir, "tmpfs", 0, ""))
	}
	trees := uint64(500)
	if testing.Short() {
		trees = 40
	}
	for seed := range trees {
		for _, dir := range mounted {
			empty(t, dir)
		}
		g := generator{Rand: rand.New(rand.NewPCG(seed, 0)), t: t}
		g.tree()
		want, wantFailing := bySystemd(t, program)
		got, gotFailing := byEffective(t)
		require.Equal(t, want, got, "seed %d, systemd %d:\n%s", seed, version, &g.notes)
		require.Equal(t, wantFailing, gotFailing, "seed %d, systemd %d: which may fail:\n%s", seed, version, &g.notes)
		require.Equal(t, lostBySystemd(t, program), lostByAdvise(t), "seed %d, systemd %d: our lines that are lost:\n%s", seed, version, &g.notes)
	}
	t.Logf("%d generated trees, read as systemd %d reads them", trees, version)
}

// ownFile is a drop-in of ours between the generated ones.
func ownFile() sysctl.DropIn {
	return sysctl.DropIn{Name: "55-own.conf", Settings: []sysctl.Setting{
		{Key: "net.ipv4.conf.lxc*.tag", Value: "77"}, {Key: "net.ipv4.conf.b*.tag", Value: "77"}, {Key: "net.ipv4.conf.all.log_martians", Value: "77"},
		{Key: "net.ipv4.conf.eth0.tag", Value: "77"}, {Key: "net.ipv4.conf.hub0.tag", Value: "77"}, {Key: "net.ipv4.ip_forward", Value: "77"},
	}}
}

func ownKeys() []string {
	var keys []string
	for _, link := range []string{"lxc1", "lxc2.7", "lxc[1]", "br[0]", "eth0", "hub0"} {
		keys = append(keys, "net/ipv4/conf/"+link+"/tag")
	}
	return append(keys, "net/ipv4/conf/all/log_martians", "net/ipv4/ip_forward")
}

// lostBySystemd lists those of our keys that systemd does not set to our value.
func lostBySystemd(t *testing.T, program string) (lost []string) {
	t.Helper()
	require.NoError(t, os.MkdirAll("/etc/sysctl.d", 0o755))
	var lines strings.Builder
	for _, s := range ownFile().Settings {
		lines.WriteString(s.Line() + "\n")
	}
	require.NoError(t, os.WriteFile("/etc/sysctl.d/55-own.conf", []byte(lines.String()), 0o644))
	by, _ := bySystemd(t, program)
	for _, key := range ownKeys() {
		if by.values[key] != "77" {
			lost = append(lost, key)
		}
	}
	return lost
}

// lostByAdvise lists those that Advise names, or whose pattern it says is cancelled.
func lostByAdvise(t *testing.T) (lost []string) {
	t.Helper()
	advice, _ := ownFile().Advise(t.Context())
	said := strings.NewReplacer(",", " ").Replace(strings.Join(advice, "\n"))
	for _, key := range ownKeys() {
		name := strings.NewReplacer(".", "/", "/", ".").Replace(key)
		cancelled := strings.Contains(said, " net.ipv4.conf.lxc*.tag  which cancels") && strings.Contains(key, "/lxc") ||
			strings.Contains(said, " net.ipv4.conf.b*.tag  which cancels") && strings.Contains(key, "/br")
		if cancelled || strings.Contains(said, " "+name+" ") {
			lost = append(lost, key)
		}
	}
	return lost
}

func sameDir(t *testing.T, a, b string) bool {
	t.Helper()
	infoA, err := os.Stat(a)
	require.NoError(t, err)
	infoB, err := os.Stat(b)
	require.NoError(t, err)
	return os.SameFile(infoA, infoB)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
}

// set is the result for the keys: the last value of each, and the order of those
// that are named rather than matched.
type set struct {
	values map[string]string
	order  []string
}

var (
	setting    = regexp.MustCompile(`^<\d+>Setting '(?:/proc/sys/)?(.*)' to '(.*)'\.?$`)
	notWritten = regexp.MustCompile(`^<(\d+)>Couldn't write '.*' to '(.*)'(?:, ignoring)?: No such file or directory$`)
)

// bySystemd parses the program's log of the values that it sets. For missing keys
// it logs the priority at which it goes on, and so whether they may fail.
func bySystemd(t *testing.T, program string) (s set, mayFail map[string]bool) {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = []string{"SYSTEMD_LOG_LEVEL=debug", "SYSTEMD_LOG_TARGET=console-prefixed"}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	s.values, mayFail = map[string]string{}, map[string]bool{}
	var seen []string
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if m := setting.FindStringSubmatch(line); m != nil && isKey(m[1]) {
			s.values[m[1]] = m[2]
			seen = append(seen, m[1])
		}
		if m := notWritten.FindStringSubmatch(line); m != nil && isKey(m[2]) {
			priority, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			mayFail[m[2]] = priority&7 == 7
		}
	}
	named := map[string]bool{}
	all, _ := sysctl.Effective()
	for _, a := range all {
		named[pathOf(a.Key)] = !a.Exclude
	}
	for _, path := range seen {
		if named[path] {
			s.order = append(s.order, path)
		}
	}
	return s, mayFail
}

// isKey reports whether path may be a key, and not a pattern: systemd also tries one that
// matches nothing and, since about version 258, a line that begins with ";".
func isKey(path string) bool {
	_, err := os.Lstat("/proc/sys/" + path)
	return err == nil || !strings.ContainsAny(path, "*?[") && path[0] != ';'
}

func byEffective(t *testing.T) (s set, mayFail map[string]bool) {
	t.Helper()
	all, _ := sysctl.Effective()
	s.values, mayFail = map[string]string{}, map[string]bool{}
	other := others{}
	var settings []sysctl.Setting
	for _, a := range all {
		path := pathOf(a.Key)
		a.IfExists = true // as systemd treats every key
		settings = append(settings, a.Setting)
		if a.Exclude || strings.ContainsAny(path, "*?[") {
			continue
		}
		s.order = append(s.order, path)
		_, err := os.Stat("/proc/sys/" + path)
		other[path] = err != nil
		if errors.Is(err, fs.ErrNotExist) {
			mayFail[path] = a.IgnoreFailure
		}
	}
	changes, err := sysctl.Kernel{Files: other}.Changes(settings...)
	require.NoError(t, err)
	for _, c := range changes {
		s.values[pathOf(c.Key)] = c.Value
	}
	return s, mayFail
}

func pathOf(key sysctl.Key) string {
	return strings.NewReplacer(".", "/", "/", ".").Replace(string(key))
}

// others has the machine's keys and more, all with values that no setting wants.
type others map[string]bool

func (o others) ReadFile(name string) ([]byte, error) {
	if _, err := os.Lstat("/proc/sys/" + name); err != nil && !o[name] {
		return nil, err
	}
	return []byte("another\n"), nil
}

func (o others) ReadDir(name string) (names []string, err error) {
	entries, err := os.ReadDir("/proc/sys/" + name)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (others) WriteFile(string, []byte) error { return fs.ErrPermission }
func (others) Writable(string) error          { return nil }

// generator makes trees with everything found in the wild, and more.
type generator struct {
	*rand.Rand
	t     *testing.T
	notes strings.Builder // a log of the generated tree
}

func one[T any](g *generator, of ...T) T { return of[g.IntN(len(of))] }

func (g *generator) tree() {
	for _, dir := range []string{"/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"} {
		if g.IntN(6) == 0 && dir != "/usr/lib/sysctl.d" {
			continue // it need not exist
		}
		require.NoError(g.t, os.MkdirAll(dir, 0o755))
		for range g.IntN(6) {
			name := one(g, "10-a.conf", "20-b.conf", "50-c.conf", "9.conf", "99-z.conf", "A.conf", "a b.conf", "ä.conf", "zz.conf",
				".hidden.conf", "README", "x.conf~", "y.conf.dpkg-old")
			g.entry(filepath.Join(dir, name))
		}
	}
}

func (g *generator) entry(path string) {
	if _, err := os.Lstat(path); err == nil {
		return
	}
	switch g.IntN(12) {
	case 0:
		g.link(path, one(g, "/dev/null", "../../dev/null"))
	case 1:
		g.link(path, one(g, "nowhere", "/nowhere/x.conf"))
	case 2:
		g.link(path, one(g, "/etc", ".", "..", "/usr/lib/sysctl.d"))
	case 3:
		fmt.Fprintf(&g.notes, "%s: a directory\n", path)
		require.NoError(g.t, os.MkdirAll(filepath.Join(path, "50-c.conf"), 0o755))
	case 4:
		fmt.Fprintf(&g.notes, "%s: empty\n", path)
		require.NoError(g.t, os.WriteFile(path, []byte(one(g, "", " ", "\n", "\t\r\n")), 0o644))
	case 5:
		target := fmt.Sprintf("/etc/target%d", g.IntN(3))
		if _, err := os.Stat(target); err != nil {
			g.file(target)
		}
		g.link(path, one(g, target, filepath.Join("../..", target), filepath.Join("../../..", target)))
	default:
		g.file(path)
	}
}

func (g *generator) link(path, target string) {
	fmt.Fprintf(&g.notes, "%s -> %s\n", path, target)
	require.NoError(g.t, os.Symlink(target, path))
}

func (g *generator) file(path string) {
	var content strings.Builder
	for range g.IntN(9) {
		content.WriteString(g.line() + one(g, "\n", "\n", "\n", "\n\n", "\r\n", "\r", "\x00"))
	}
	text := content.String()
	if g.IntN(5) == 0 {
		text = strings.TrimRight(text, "\r\n")
	}
	fmt.Fprintf(&g.notes, "%s: %q\n", path, text)
	require.NoError(g.t, os.WriteFile(path, []byte(text), 0o644))
}

func (g *generator) line() string {
	indent := one(g, "", "", "", " ", "\t ")
	switch g.IntN(14) {
	case 0:
		return indent + one(g, "#", "# net.ipv4.ip_forward = 7", ";", ";net.ipv4.ip_forward=7", "#-x")
	case 1:
		return indent + one(g, "no assignment", "net.ipv4.ip_forward", "[section]", "-")
	case 2, 3:
		return indent + "-" + one(g, "", " ") + g.key() + one(g, "", " ")
	}
	dash := one(g, "", "", "-", "- ")
	return indent + dash + g.key() + one(g, "=", " = ", "\t=", "= ") + g.value() + one(g, "", "", " ", "\t")
}

func (g *generator) value() string {
	return one(g, "0", "1", "2", "1", "0", "4096\t65536 1048576", "", "a = b", "1 # no comment", "0   # why", "0#", "x;y", "-1", "0x1", "\"quoted\"", "ä")
}

// key is an existing key, one that does not exist, or a pattern, in any spelling.
func (g *generator) key() string {
	link := one(g, "lxc1", "lxc2.7", "eth0", "hub0", "lo", "all", "default", "none0", "lxc*", "*", "?xc1", "lxc[!1]*",
		"[a-h]*[0-9]", "{eth,hub}?", "{lxc1,eth*}", "{lxc1,eth0}", "lx{c*", `lxc\1*`, `\lxc?`, "*.*", ".*", "[^l]*",
		"br[0]", "br0", "lxc[1]", `br\[0]`, "br[[]0]", "b*", "caf\xe9", "caf?", "café", "caf*")
	name := one(g, "tag", "rp_filter", "log_martians", "arp_ignore", "no_such", "{tag,medium_id}", "ta?", "t*g", "*_martians")
	path := one(g,
		"net/ipv4/conf/"+link+"/"+name, "net/ipv4/conf/"+link+"/"+name, "net/ipv4/conf/"+link+"/"+name, "net/ipv4/conf/"+link+"/"+name,
		"net/ipv4/ip_forward", "net/ipv4/tcp_rmem", "net/ipv4/no_such", "none", "net/ipv4/ip_f*", "net/ipv4/*/"+link+"/"+name,
		"net/ipv4/ip_forward/"+name, "net/ipv4/conf", "net/ipv6/conf/"+link+"/tag", "net/*/conf/lxc1/"+name, "net/ipv4/{conf,neigh}/l*1/"+name)
	switch g.IntN(8) {
	case 0:
		path = strings.Replace(path, "/", one(g, "//", "/./", "///"), 1+g.IntN(3))
	case 1:
		path += one(g, "/", "//", "/.")
	case 2:
		path = one(g, "/", "//") + path
	}
	if g.IntN(2) == 0 {
		return path
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(path) // if it has no dot in its first element, it is the same key
}
