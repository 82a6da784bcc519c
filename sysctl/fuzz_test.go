// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package sysctl_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/sysctl"
)

// However it is written, a pattern names existing values or is an error.
func FuzzPattern(f *testing.F) {
	for _, seed := range []string{
		"net.ipv4.conf.lxc*.rp_filter", "net/ipv4/conf/{all,lx?}/rp_filter", "net.ipv4.conf.[!l]*.rp_filter",
		"*", "*/*/*/*/*", "{a,b}{c,d}", "{{{", "{,}", "net.ipv4.conf.\\*.rp_filter", "[", "..", "a//b", strings.Repeat("{a,b}", 40),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		kernel := bootstraptest.NewKernel("lo", "lxc1", "eth0.100")
		changes, err := sysctl.Kernel{Files: kernel}.Changes(sysctl.Setting{Key: sysctl.Key(key), Value: "12345"})
		for _, c := range changes {
			_, ok := kernel.Values()[string(c.Key)]
			require.True(t, ok || err != nil || !strings.ContainsAny(key, "*?[{"), "%q is none of %q", c.Key, key)
		}
	})
}

// Braces that expand to an absurd number of patterns are an error at once.
func TestSEC6_BracesThatSpellOutTooMuch(t *testing.T) {
	for key, want := range map[string]string{
		strings.Repeat("{a,b}", 40): "has braces that expand to more than 1024 patterns",
		strings.Repeat("{a,b", 100) + strings.Repeat("}", 100) + strings.Repeat("{a,b}", 20): "has braces that expand to more than 1024 patterns",
		strings.Repeat("{a}", 1000): "the pattern has ",
	} {
		_, err := sysctl.Kernel{Files: &bootstraptest.Kernel{}}.Diff(sysctl.Setting{Key: sysctl.Key("net.*." + key), Value: "1"})
		require.ErrorContains(t, err, want)
		require.Less(t, len(err.Error()), 5000)
	}
}

// A character class is reported, not misread as a list of characters.
func TestACharacterClassIsNotSupported(t *testing.T) {
	key := "net.ipv4.conf.[[:alpha:]]*.rp_filter"
	_, err := sysctl.Kernel{Files: bootstraptest.NewKernel("lo")}.Diff(sysctl.Setting{Key: sysctl.Key(key), Value: "1"})
	require.ErrorContains(t, err, key+" = 1: not a sysctl key: \"[[:alpha:]]*\" has a character class, which is not supported")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/x.conf", []byte("# x\n"+key+" = 1\n"), 0o600))
	_, err = sysctl.Effective(dir)
	require.EqualError(t, err, dir+"/x.conf: line 2: not a sysctl key: \""+key+"\" has a character class, which is not supported")
}
