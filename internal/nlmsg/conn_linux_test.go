// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package nlmsg_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/internal/nlmsg"
	"github.com/slipway-dev/slipway/internal/testns"
)

// message is a message as the kernel sends it.
func message(typ, flags uint16, sequence uint32, body ...byte) []byte {
	b := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags)
	b = binary.NativeEndian.AppendUint32(b, sequence)
	b = binary.NativeEndian.AppendUint32(b, 7)
	return append(b, append(body, make([]byte, (4-len(body)%4)%4)...)...)
}

// errno is the kernel's number of an error.
func errno(err unix.Errno) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(-int32(err))) }

const (
	sequence  = 5
	reply     = 20
	multi     = unix.NLM_F_MULTI
	changed   = unix.NLM_F_MULTI | unix.NLM_F_DUMP_INTR
	withWords = unix.NLM_F_ACK_TLVS
)

func TestAnswers(t *testing.T) {
	stop := errors.New("stop")
	words := nlmsg.String(unix.NLMSGERR_ATTR_MSG, "in words")
	header := make([]byte, unix.SizeofNlMsghdr)
	one, two := message(reply, multi, sequence, 1), message(reply, multi, sequence, 2)
	done := message(unix.NLMSG_DONE, multi, sequence, errno(0)...)
	for name, c := range map[string]struct {
		sent  [][]byte
		got   []byte // the first bytes of what comes
		whole bool
		want  string
	}{
		"one object":                   {[][]byte{message(reply, 0, sequence, 1), two}, []byte{1}, true, ""},
		"a dump":                       {[][]byte{one, two, done}, []byte{1, 2}, true, ""},
		"more is to come":              {[][]byte{one, two}, []byte{1, 2}, false, ""},
		"an end without a number":      {[][]byte{one, message(unix.NLMSG_DONE, multi, sequence)}, []byte{1}, true, ""},
		"the end of another answer":    {[][]byte{message(unix.NLMSG_ERROR, 0, sequence-1, errno(unix.EPERM)...), one, done}, []byte{1}, true, ""},
		"of another type":              {[][]byte{message(reply+1, multi, sequence, 3), one, done}, []byte{1}, true, ""},
		"interrupted":                  {[][]byte{one, message(reply, changed, sequence, 2), done}, []byte{1, 2}, true, "interrupted system call"},
		"interrupted, as its end says": {[][]byte{one, message(unix.NLMSG_DONE, changed, sequence, errno(0)...)}, []byte{1}, true, "interrupted system call"},
		"acknowledged":                 {[][]byte{message(unix.NLMSG_ERROR, 0, sequence, append(errno(0), header...)...)}, nil, true, ""},
		"refused":                      {[][]byte{message(unix.NLMSG_ERROR, 0, sequence, append(errno(unix.ENOENT), header...)...)}, nil, true, "no such file or directory"},
		"refused in words":             {[][]byte{message(unix.NLMSG_ERROR, withWords, sequence, slices.Concat(errno(unix.EBUSY), header, words)...)}, nil, true, "device or resource busy: in words"},
		"refused at the end, in words": {[][]byte{one, message(unix.NLMSG_DONE, multi|withWords, sequence, append(errno(unix.EINVAL), words...)...)}, []byte{1}, true, "invalid argument: in words"},
		"words that are not whole":     {[][]byte{message(unix.NLMSG_ERROR, withWords, sequence, slices.Concat(errno(unix.EBUSY), header, words[:6])...)}, nil, true, "device or resource busy"},
		"no words":                     {[][]byte{message(unix.NLMSG_ERROR, withWords, sequence, errno(unix.EBUSY)...)}, nil, true, "device or resource busy"},
		"the reader's error is first":  {[][]byte{message(reply, changed, sequence, 9), one, done}, []byte{9}, true, "stop"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []byte
			whole, err := nlmsg.Answer(slices.Concat(c.sent...), sequence, reply, func(body []byte) error {
				if got = append(got, body[0]); body[0] == 9 {
					return stop
				}
				return nil
			})
			require.Equal(t, c.got, got)
			require.Equal(t, c.whole, whole)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.want)
			}
		})
	}
}

func TestConnAsksTheKernel(t *testing.T) {
	testns.Enter(t, testns.Net)
	c, err := nlmsg.Open(unix.NETLINK_ROUTE)
	require.NoError(t, err)
	defer c.Close()
	links := nlmsg.Request{Type: unix.RTM_GETLINK, Flags: unix.NLM_F_DUMP, Body: make([]byte, unix.SizeofIfInfomsg)}
	var names []string
	read := func(body []byte) error {
		name, err := nlmsg.Attr(body[unix.SizeofIfInfomsg:], unix.IFLA_IFNAME)
		names = append(names, unix.ByteSliceToString(name))
		return err
	}
	require.NoError(t, c.Do(links, unix.RTM_NEWLINK, read))
	require.Contains(t, names, "lo")

	// The unread rest of an answer does not count as the answer to the next request.
	_, err = c.Send(links)
	require.NoError(t, err)
	lo := nlmsg.Request{Type: unix.RTM_GETLINK, Body: append(make([]byte, unix.SizeofIfInfomsg), nlmsg.String(unix.IFLA_IFNAME, "lo")...)}
	names = nil
	require.NoError(t, c.Do(lo, unix.RTM_NEWLINK, read))
	require.Equal(t, []string{"lo"}, names)

	lo.Body = append(make([]byte, unix.SizeofIfInfomsg), nlmsg.String(unix.IFLA_IFNAME, "none")...)
	require.Equal(t, unix.ENODEV, c.Do(lo, unix.RTM_NEWLINK, read))
}

// Messages of the kernel come whole; a reader survives those that do not.
func FuzzAnswer(f *testing.F) {
	words := nlmsg.String(unix.NLMSGERR_ATTR_MSG, "in words")
	f.Add(slices.Concat(message(reply, changed, sequence, 1), message(unix.NLMSG_DONE, multi|withWords, sequence, append(errno(unix.EINVAL), words...)...)))
	f.Add(message(unix.NLMSG_ERROR, withWords, sequence, errno(unix.EBUSY)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, err := nlmsg.Answer(b, sequence, reply, func(body []byte) error { return nlmsg.Attrs(body, func(uint16, []byte) error { return nil }) })
		if err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
