// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/slipway-dev/slipway/bootstrap/ledger"
	"github.com/slipway-dev/slipway/internal/testledger"
	"github.com/slipway-dev/slipway/internal/testns"
	"github.com/slipway-dev/slipway/sysctl"
)

// otherwise has values that the kernel prints otherwise than they are written: each key's
// spellings have one meaning.
func otherwise() map[sysctl.Key][]string {
	return map[sysctl.Key][]string{
		"net.ipv4.ip_local_reserved_ports":                    {"30000-32767,8472", "8472,30000-32767", "8472,8472,31000-32767,30000-30999,30500-31500", "0x2118,30000-32767,"},
		"net.ipv6.icmp.ratemask":                              {"9,5-7,6", "5-7,9"},
		"net.ipv6.conf.lo.stable_secret":                      {"2001:DB8::1", "2001:db8:0:0::0.0.0.1", "2001:0db8:0000:0000:0000:0000:0000:0001"},
		"net.ipv4.tcp_rmem":                                   {"4096 65536 1048576", "4096 65536", "0x1000", "4096 65536 1048576 # why"},
		"net.ipv4.ip_local_port_range":                        {"40000", "40000\t60999"},
		"net.ipv4.neigh.lo.retrans_time_ms":                   {"1001"},
		"net.ipv4.neigh.lo.base_reachable_time_ms":            {"30007"},
		"net.ipv4.icmp_ratelimit":                             {"17"},
		"net.ipv4.tcp_fastopen_key":                           {"0000DEAD-00BEEF00-00000000-00000001", "0000dead-00beef00-00000000-00000001"},
		"net.ipv6.conf.all.mldv1_unsolicited_report_interval": {"9001"},
		"net.ipv4.ip_forward":                                 {"1", "01", "0x1", "1 # why", "1\t#"},
	}
}

func setTo(key sysctl.Key, value string) sysctl.Setting {
	return sysctl.Setting{Key: key, Value: value}
}

func TestSYS2_TheRealKernelPrintsAValueInAnotherForm(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	k := sysctl.Kernel{}
	for key, spellings := range otherwise() {
		for i, value := range spellings {
			changes, err := k.Diff(setTo(key, value))
			require.NoError(t, err)
			require.Equal(t, i == 0, len(changes) == 1, "%s = %s: %v", key, value, changes)
			require.NoError(t, k.Set(setTo(key, value)), "%s = %s", key, value)
		}
	}
}

// A value that the kernel clamps, or refuses silently, is not the wanted one.
func TestSYS2_TheRealKernelTakesAnotherValue(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	k := sysctl.Kernel{}
	for range 2 {
		err := k.Set(setTo("net.ipv4.ping_group_range", "9 3"))
		require.ErrorIs(t, err, ledger.ErrRefused)
		require.ErrorContains(t, err, "set net.ipv4.ping_group_range = 9 3 (is 1 0): written, but it is still different")
	}
	for _, value := range []string{"8472 8473", "5,x", "9-3"} {
		require.Error(t, k.Set(setTo("net.ipv4.ip_local_reserved_ports", value)), value)
	}
	require.NoError(t, k.Set(setTo("net.ipv4.ip_local_reserved_ports", "8472,8474"), setTo("net.ipv4.neigh.lo.retrans_time_ms", "1000")))
	changes, err := k.Diff(setTo("net.ipv4.ip_local_reserved_ports", "8472-8474"), setTo("net.ipv4.neigh.lo.retrans_time_ms", "989"))
	require.NoError(t, err)
	require.Len(t, changes, 2)
}

// The value is as it was before, however it is spelled, and a second agent that spells it
// otherwise wants the same.
func TestSYS2_AgentsThatSpellAValueDifferentlyAgree(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	for key, spellings := range otherwise() {
		if key == "net.ipv6.conf.lo.stable_secret" {
			continue // nothing unsets it
		}
		dir := filepath.Join(t.TempDir(), "state")
		before, err := sysctl.Kernel{}.Get(key)
		require.NoError(t, err)
		first, second := newNeighbour(t, dir, "first", nil), newNeighbour(t, dir, "second", nil)
		first.apply(setTo(key, spellings[0]))
		for _, value := range spellings {
			_, err := second.settings(setTo(key, value)).Check(t.Context())
			require.NoError(t, err, "%s = %s", key, value)
		}
		second.apply(setTo(key, spellings[len(spellings)-1]))
		first.uninstall()
		second.uninstall()
		after, err := sysctl.Kernel{}.Get(key)
		require.NoError(t, err)
		require.Equal(t, before, after, key)
		require.NoDirExists(t, dir)
	}
}

// A value that cannot be read before it is written is written, and then read. Nothing puts
// it back: that is said.
func TestSYS2_AValueThatIsNotSetYetIsWritten(t *testing.T) {
	for _, mayFail := range []bool{false, true} {
		testns.Enter(t, testns.Mount|testns.Net)
		const key, secret = "net.ipv6.conf.lo.stable_secret", "fe80::1"
		setting := sysctl.Setting{Key: key, Value: secret, IgnoreFailure: mayFail}
		d := recordedFile{
			sysctl.DropIn{Dir: t.TempDir(), Name: "50-x.conf", Settings: []sysctl.Setting{setting}},
			real(t, filepath.Join(t.TempDir(), "state")),
		}
		before := values(t)
		require.Contains(t, check(t, d), "set "+key+" = (masked) (is not set)")
		require.NoError(t, d.Apply(t.Context()))
		value, err := sysctl.Kernel{}.Get(key)
		require.NoError(t, err)
		require.Equal(t, "fe80:0000:0000:0000:0000:0000:0000:0001", value)
		require.Empty(t, check(t, d))
		require.Contains(t, checkRevert(t, d), "leave "+key+"#1 as it is: the kernel does not allow changing it back before the next boot")
		require.NoError(t, d.Revert(t.Context()))
		require.Empty(t, checkRevert(t, d))
		require.Len(t, differing(before, values(t)), 1, "addr_gen_mode, which the kernel changes along, is back")
	}
}

// An ignored failure does not count as set.
func TestSYS2_AnIgnoredFailureIsNotSet(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	for key, value := range map[sysctl.Key]string{"net.ipv6.conf.all.stable_secret": "fe80::1", "net.ipv4.ip_forward": "abc"} {
		setting := sysctl.Setting{Key: key, Value: value, IgnoreFailure: true}
		s := recordedValues{sysctl.Settings{Values: []sysctl.Setting{setting}}, real(t, filepath.Join(t.TempDir(), "state"))}
		require.NoError(t, s.Apply(t.Context()))
		require.Len(t, check(t, s), 1, "%s is not set", key)
		require.Empty(t, checkRevert(t, s), "and nothing is recorded")
	}
	// The file system of these values is read-only here.
	s := sysctl.Settings{Values: []sysctl.Setting{{Key: "kernel.pid_max", Value: "99", IgnoreFailure: true}}}
	require.Empty(t, check(t, testledger.Step{Wanter: s}))
	require.Equal(t, []string{"kernel.pid_max is not set to 99, and the - before it ignores that"}, advise(t, s))
}

func TestSEC8_AValueThatLooksSecretIsMasked(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	for key, values := range map[sysctl.Key][2]string{
		"net.ipv6.conf.lo.stable_secret": {"2001:db8::dead", "2001:db8::beef"},
		"net.ipv4.tcp_fastopen_key":      {"0000dead-00000000-00000000-00000000", "0000beef-00000000-00000000-00000000"},
	} {
		dir := filepath.Join(t.TempDir(), "state")
		first, second := newNeighbour(t, dir, "first", nil), newNeighbour(t, dir, "second", nil)
		var said []string
		say := func(lines []string, err error) {
			if said = append(said, lines...); err != nil {
				said = append(said, err.Error())
			}
		}
		say(first.settings(setTo(key, values[0])).Check(t.Context()))
		first.apply(setTo(key, values[0]))
		_, err := second.settings(setTo(key, values[1])).Check(t.Context())
		require.ErrorIs(t, err, ledger.ErrConflict)
		say(nil, err)
		say(nil, sysctl.Kernel{}.Set(setTo(key, values[1]+"x")))
		require.NoError(t, sysctl.Kernel{}.Set(setTo(key, values[1])))
		undone, err := first.book.CheckUndo(t.Context(), nil)
		say(nil, errors.Join(err, errors.New(fmt.Sprint(undone))))
		d := sysctl.DropIn{Dir: t.TempDir(), Name: "50-x.conf", Settings: []sysctl.Setting{setTo(key, values[0])}}
		require.NoError(t, os.WriteFile(filepath.Join(d.Dir, "60-y.conf"), []byte(string(key)+" = "+values[1]+"\n"), 0o644))
		say(d.Advise(t.Context()))
		text := strings.Join(said, "\n")
		require.GreaterOrEqual(t, strings.Count(text, "(masked)"), 5, text)
		require.NotRegexp(t, `dead|beef`, text)
	}
}

// The kernel has one value, and two files that show it: the second one rounds, or counts in
// another unit.
func TestSYS2_TwoNamesOfOneValueAreOneObject(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	for _, names := range [][2]sysctl.Setting{
		{setTo("net.ipv4.ip_forward", "1"), setTo("net.ipv4.conf.all.forwarding", "0")},
		{setTo("net.ipv4.neigh.lo.unres_qlen", "7"), setTo("net.ipv4.neigh.lo.unres_qlen_bytes", "9999")},
		{setTo("net.ipv4.neigh.lo.retrans_time", "80"), setTo("net.ipv4.neigh.lo.retrans_time_ms", "1500")},
		{setTo("net.ipv6.neigh.lo.base_reachable_time", "7"), setTo("net.ipv6.neigh.lo.base_reachable_time_ms", "1500")},
		{setTo("net.ipv6.route.gc_min_interval", "3"), setTo("net.ipv6.route.gc_min_interval_ms", "1500")},
	} {
		now := func() (now [2]string) {
			for i, s := range names {
				var err error
				now[i], err = sysctl.Kernel{}.Get(s.Key)
				require.NoError(t, err)
			}
			return now
		}
		dir, before := filepath.Join(t.TempDir(), "state"), now()
		for i, wanted := range names {
			first, second := newNeighbour(t, dir, "first", nil), newNeighbour(t, dir, "second", nil)
			first.apply(wanted)
			require.Equal(t, wanted.Value, now()[i])
			_, err := second.settings(names[1-i]).Check(t.Context())
			require.ErrorIs(t, err, ledger.ErrConflict, "%s", names[1-i])
			first.apply(names[1-i])
			require.Equal(t, names[1-i].Value, now()[1-i])
			first.uninstall()
			require.Equal(t, before, now(), "to the byte, in whichever unit it was set")
			require.NoDirExists(t, dir)
		}
	}
}

// The value of a link is that link's: another one that gets its name has others.
func TestPLAN6_ALinkThatGotTheNameOfAnotherIsLeftAlone(t *testing.T) {
	testns.Enter(t, testns.Mount|testns.Net)
	const key = "net.ipv4.conf.lxc1.rp_filter"
	veth(t, "lxc1", "peer")
	s := recordedValues{sysctl.Settings{Values: []sysctl.Setting{setTo(key, "2")}}, temp(t)}
	require.NoError(t, s.Apply(t.Context()))
	link, err := netlink.LinkByName("lxc1")
	require.NoError(t, err)
	require.NoError(t, netlink.LinkDel(link))
	veth(t, "lxc1", "peer")
	require.NoError(t, sysctl.Kernel{}.Set(setTo(key, "2"))) // by its owner
	require.Empty(t, checkRevert(t, s))
	require.NoError(t, s.Revert(t.Context()))
	value, err := sysctl.Kernel{}.Get(key)
	require.NoError(t, err)
	require.Equal(t, "2", value)
}
