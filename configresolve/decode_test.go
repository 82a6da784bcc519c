// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package configresolve_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-dev/slipway/configresolve"
)

type common struct {
	Cluster string `config:"cluster-name,required"`
}

// size is a type with a form of its own.
type size int64

func (s *size) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return fmt.Errorf("%q is not a size", text)
	}
	*s = size(n)
	return nil
}

type settings struct {
	common
	Common2  struct{ Ignored string }
	Mode     string         `config:"routing-mode"`
	MTU      int            `config:"mtu"`
	Port     uint16         `config:"port"`
	Mark     uint32         `config:"mark"`
	Rate     float64        `config:"rate"`
	On       bool           `config:"on"`
	Period   time.Duration  `config:"gc-interval"`
	Devices  []string       `config:"devices"`
	CPUs     []int          `config:"cpus"`
	Buffer   size           `config:"buffer"`
	Subnet   netip.Prefix   `config:"subnet"`
	Subnets  []netip.Prefix `config:"subnets"`
	Level    slog.Level     `config:"log-level"`
	Untagged string
}

func given(t *testing.T, values map[string]string) *configresolve.Config {
	t.Helper()
	c, err := configresolve.Resolve(t.Context(), configresolve.Static("test", values))
	require.NoError(t, err)
	return c
}

func TestDecode(t *testing.T) {
	s := settings{Mode: "tunnel", Port: 7, Untagged: "kept"}
	require.NoError(t, configresolve.Decode(given(t, map[string]string{
		"cluster-name": "a\n", "on": "False\n", "mtu": " 9000\n", "mark": "0xf00", "rate": "0.5", "gc-interval": "1m30s",
		"devices": "eth0, eth1\neth2", "cpus": "", "buffer": "1610612736",
		"subnet": "10.0.0.0/8", "subnets": "10.0.0.0/8,fd00::/8", "log-level": "warn",
	}), &s))
	require.Equal(t, settings{
		common: common{"a\n"}, Mode: "tunnel", MTU: 9000, Port: 7, Mark: 0xf00, Rate: 0.5, Period: 90 * time.Second,
		Devices: []string{"eth0", "eth1", "eth2"}, CPUs: []int{}, Buffer: 3 << 29,
		Subnet: netip.MustParsePrefix("10.0.0.0/8"), Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")},
		Level: slog.LevelWarn, Untagged: "kept",
	}, s)
}

func TestDecodeSaysAllThatIsWrongAndDecodesTheRest(t *testing.T) {
	s := settings{MTU: 1}
	err := configresolve.Decode(given(t, map[string]string{
		"mtu": "1400\n1500", "port": "65536", "mark": "-1", "rate": "", "on": "perhaps", "gc-interval": "5", "cpus": "1,x",
		"buffer": "5 apples", "subnet": "10.0.0.0", "routing-mode": "native",
	}), &s)
	require.Equal(t, `config key "cluster-name" is not set
config key "mtu" from static:test: "1400\n1500" does not fit into a field of the type int
config key "port" from static:test: "65536" does not fit into a field of the type uint16
config key "mark" from static:test: "-1" does not fit into a field of the type uint32
config key "rate" from static:test: "" does not fit into a field of the type float64
config key "on" from static:test: "perhaps" does not fit into a field of the type bool
config key "gc-interval" from static:test: "5" is not a duration such as 1m30s
config key "cpus" from static:test: "x" does not fit into a field of the type int
config key "buffer" from static:test: "5 apples" is not a size
config key "subnet" from static:test: netip.ParsePrefix("10.0.0.0"): no '/'`, err.Error())
	require.Equal(t, 1, s.MTU)
	require.Equal(t, "native", s.Mode)
}

func TestSEC8_DecodeKeepsASecretToItself(t *testing.T) {
	var s struct {
		Token int            `config:"etcd-token"`
		Keys  []netip.Prefix `config:"api-key"`
	}
	err := configresolve.Decode(given(t, map[string]string{"etcd-token": "hunter2", "api-key": "hunter2"}), &s)
	require.ErrorContains(t, err, "etcd-token")
	require.ErrorContains(t, err, "api-key")
	require.NotContains(t, err.Error(), "hunter2")
}

func TestDecodeIntoWhatItCannot(t *testing.T) {
	c := given(t, map[string]string{"a": "1"})
	for want, v := range map[string]any{
		"a pointer to a struct": settings{},
		"decode into a *int":    new(int),
		"decode into a <nil>":   nil,
		"pointer to a struct":   (*settings)(nil),
		"two fields have": &struct {
			A string `config:"a"`
			B string `config:"a"`
		}{},
		"with a capital": &struct {
			a string `config:"a"`
		}{},
		"it must be a key": &struct {
			A string `config:",required"`
		}{},
		`"a,requird"`: &struct {
			A string `config:"a,requird"`
		}{},
		"the type chan int": &struct {
			A chan int `config:"a"`
		}{},
		"the type map[string]int": &struct {
			A map[string]int `config:"a"`
		}{},
	} {
		require.ErrorContains(t, configresolve.Decode(c, v), want)
	}
}

func TestKeysFindsWhatMeansNothing(t *testing.T) {
	var lines []string
	for _, unknown := range given(t, map[string]string{"rooting-mode": "native", "mtu": "1", "x": "", "other": ""}).Unknown(&settings{}, "other") {
		lines = append(lines, unknown.String())
	}
	require.Equal(t, []string{`unknown key "rooting-mode" from static:test: is not known ("routing-mode" is)`, `unknown key "x" from static:test: is not known`}, lines)
}

// A number is decoded as the whole of its text says, or it is an error and the field stays.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{"1", "-1", "0x10", " 7\n", "10\n20", "1e3", "1 2", "true", "65536", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := configresolve.Resolve(t.Context(), configresolve.Static("test", map[string]string{"mtu": text}))
		if err != nil {
			return
		}
		fields := struct {
			MTU int `config:"mtu"`
		}{MTU: 3}
		err = configresolve.Decode(c, &fields)
		want, wantErr := strconv.ParseInt(strings.TrimSpace(text), 0, strconv.IntSize)
		if wantErr != nil {
			want = 3
		}
		require.Equal(t, wantErr == nil, err == nil, "%q: %v", text, err)
		require.EqualValues(t, want, fields.MTU, "%q", text)
	})
}
